-- all pairs of texts within a distance: joins by edit distance, searched in batches
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
SET max_parallel_workers_per_gather = 0;

CREATE FUNCTION made_text(seed integer) RETURNS text AS $$
	SELECT translate(left(md5((seed % 900)::text), 6 + seed % 20), '0123456789abcdef', 'aabbccdd eéжжΩ漢😀')
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE titles (id integer PRIMARY KEY, kind integer, title text);
INSERT INTO titles SELECT i, i % 10, CASE WHEN i % 97 <> 0 THEN made_text(i) END FROM generate_series(1, 2000) i;
CREATE INDEX titles_title ON titles USING matchcount (title);
CREATE TABLE asked (id integer, q text, tau integer, wide float8);
INSERT INTO asked SELECT i, CASE WHEN i % 50 <> 0 THEN overlay(made_text(i * 7) PLACING 'x' FROM 2) END,
	CASE WHEN i % 41 <> 0 THEN i % 4 - 1 END, CASE i % 40 WHEN 1 THEN 'nan' WHEN 2 THEN '-infinity' ELSE (i % 3)::float8 END FROM generate_series(1, 300) i;
ANALYZE titles;
ANALYZE asked;
-- a join's rows by the index and by comparison of all pairs
CREATE FUNCTION pairs(by_index boolean, statement text) RETURNS text[] AS $$
DECLARE
	found text[];
BEGIN
	PERFORM set_config(name, (by_index = (name <> 'enable_seqscan'))::text, true) FROM unnest(ARRAY['enable_indexscan', 'enable_indexonlyscan']) name;
	EXECUTE format('SELECT array_agg(n::text ORDER BY n::text COLLATE "C") FROM (%s) n', statement) INTO found;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION compared(statement text, OUT found integer, OUT same boolean) AS $$
	SELECT cardinality(pairs(true, statement)), pairs(true, statement) IS NOT DISTINCT FROM pairs(false, statement)
$$ LANGUAGE sql;

EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 2 WHERE a.id < b.id;
EXPLAIN (COSTS OFF) SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= 2;
EXPLAIN (COSTS OFF) SELECT a.id, t.id FROM asked a LEFT JOIN titles t ON t.title <~~> a.q <= a.tau;
EXPLAIN (COSTS OFF) SELECT id FROM asked a WHERE EXISTS (SELECT FROM titles t WHERE t.title <~~> a.q <= 1);
EXPLAIN (COSTS OFF) SELECT id FROM asked a WHERE NOT EXISTS (SELECT FROM titles t WHERE t.title <~~> a.q <= 1);
EXPLAIN (COSTS OFF) SELECT a.id, n.id FROM asked a CROSS JOIN LATERAL (SELECT id FROM titles t WHERE t.title <~~> a.q <= 2 ORDER BY t.title <~~> a.q LIMIT 2) n;
SELECT * FROM compared('SELECT a.id, b.id FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 2 WHERE a.id < b.id');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= 2');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON 3 > edit_distance(t.title, a.q) AND t.kind IN (1, 2) WHERE a.id % 2 = 0');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= a.tau');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON edit_distance(a.q, t.title) < a.tau');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= a.wide WHERE a.id < 60');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= length(a.q) / 6');
SELECT * FROM compared('SELECT a.id, t.id FROM asked a LEFT JOIN titles t ON t.title <~~> a.q <= 1');
SELECT * FROM compared('SELECT a.id, t.id FROM titles t RIGHT JOIN asked a ON t.title <~~> a.q <= a.tau AND t.id > 100');
SELECT * FROM compared('SELECT a.id, t.id FROM (SELECT * FROM titles WHERE id < 300) t FULL JOIN asked a ON t.id = a.id AND t.title <~~> a.q <= 3');
SELECT * FROM compared('SELECT id FROM asked a WHERE EXISTS (SELECT FROM titles t WHERE t.title <~~> a.q <= 1)');
SELECT * FROM compared('SELECT id FROM asked a WHERE NOT EXISTS (SELECT FROM titles t WHERE t.title <~~> a.q <= 1)');
SELECT * FROM compared('SELECT a.id, t.id, u.id FROM asked a JOIN titles t ON a.q <~~> t.title <= 1 JOIN titles u ON t.title <~~> u.title <= 1 AND u.id <> t.id');
SELECT * FROM compared('SELECT a.id, t.id, u.id FROM asked a LEFT JOIN titles t ON a.q <~~> t.title <= 1 LEFT JOIN titles u ON t.title <~~> u.title <= 1 AND u.id > t.id');
SELECT * FROM compared('SELECT a.id, n.d FROM asked a CROSS JOIN LATERAL (SELECT t.title <~~> a.q AS d FROM titles t WHERE t.title <~~> a.q <= 2 ORDER BY t.title <~~> a.q LIMIT 2) n');
SELECT * FROM compared('SELECT a.id, n.d FROM asked a CROSS JOIN LATERAL (SELECT t.title <~~> a.q AS d FROM titles t WHERE t.title <~~> a.q <= a.tau ORDER BY t.title <~~> a.q LIMIT 2) n');
SELECT * FROM compared('SELECT a.id, (SELECT count(*) FROM titles t WHERE t.title <~~> a.q <= 2) FROM asked a');
-- more rows of a query than its first search is for; delta rows; dead rows
INSERT INTO titles SELECT i, i % 10, overlay(made_text(13) PLACING chr(97 + i % 5) FROM 1 + i % 3) FROM generate_series(2001, 2300) i;
DELETE FROM titles WHERE id % 13 = 5;
SELECT * FROM compared('SELECT a.id, b.id FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 2 WHERE a.id < b.id AND a.kind = 4');
CALL pgwarp_merge('titles_title');
SELECT * FROM compared('SELECT a.id, b.id FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 2 WHERE a.id < b.id AND a.kind = 4');
SET pgwarp.batch_size = 16;
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= a.tau');
RESET pgwarp.batch_size;
SET pgwarp.knn_batch = off;
EXPLAIN (COSTS OFF) SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= 2;
SELECT * FROM compared('SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= a.tau');
RESET pgwarp.knn_batch;

-- a generic plan, whose bound is a parameter
SET plan_cache_mode = force_generic_plan;
PREPARE joined (integer) AS SELECT count(*) FROM asked a JOIN titles t ON edit_distance(a.q, t.title) <= $1;
EXPLAIN (COSTS OFF) EXECUTE joined (2);
EXECUTE joined (2);
EXECUTE joined (0);
EXECUTE joined (-1);
EXECUTE joined (NULL);
DEALLOCATE joined;
RESET plan_cache_mode;
-- the rows that a LIMIT needs; a query too long is an error when its row is reached
SELECT count(*) FROM (SELECT a.id FROM asked a JOIN titles t ON a.q <~~> t.title <= 2 LIMIT 5) n;
CREATE TABLE long_asked AS SELECT i, CASE WHEN i = 25 THEN repeat('x', 65536) ELSE made_text(i) END AS q FROM generate_series(1, 40) i;
SELECT count(*) FROM (SELECT FROM long_asked a LEFT JOIN titles t ON t.title <~~> a.q <= 0 LIMIT 15) j;
SELECT count(*) FROM long_asked a LEFT JOIN titles t ON t.title <~~> a.q <= 0;
DROP TABLE long_asked;

SELECT a.id, c.n FROM asked a CROSS JOIN LATERAL (SELECT count(*) AS n FROM titles t WHERE t.title <~~> a.q <= 2 LIMIT 1) c WHERE a.id % 60 = 1 ORDER BY 1;
-- statements that change or lock the rows that they find
BEGIN;
EXPLAIN (COSTS OFF) UPDATE titles t SET kind = -1 FROM asked a WHERE edit_distance(a.q, t.title) <= 1;
UPDATE titles t SET kind = -1 FROM asked a WHERE edit_distance(a.q, t.title) <= 1;
SELECT count(*) = (SELECT count(DISTINCT t.id) FROM asked a JOIN (SELECT * FROM titles OFFSET 0) t ON edit_distance(a.q, t.title) <= 1) AS all_updated FROM titles WHERE kind = -1;
MERGE INTO titles t USING (SELECT DISTINCT ON (q) * FROM asked WHERE id < 20) a ON edit_distance(a.q, t.title) <= 0
	WHEN MATCHED THEN UPDATE SET kind = -2 WHEN NOT MATCHED THEN INSERT (id, title) VALUES (100000 + a.id, a.q);
SELECT count(*) FROM titles WHERE id > 100000 OR kind = -2;
SELECT count(*) FROM (SELECT t.id FROM asked a JOIN titles t ON edit_distance(a.q, t.title) <= 1 FOR UPDATE OF t) n;
DELETE FROM titles t USING asked a WHERE edit_distance(a.q, t.title) <= 1;
SELECT count(*) FROM asked a JOIN titles t ON edit_distance(a.q, t.title) <= 1;
ROLLBACK;

-- partitions on either side
CREATE TABLE parts (id integer, title text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (800);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (800) TO (5000);
INSERT INTO parts SELECT id, title FROM titles;
CREATE INDEX ON parts USING matchcount (title);
ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT a.id, p.id FROM asked a JOIN parts p ON p.title <~~> a.q <= 1;
SELECT * FROM compared('SELECT a.id, p.id FROM asked a JOIN parts p ON p.title <~~> a.q <= 1');
-- one row is expected for each outer row, of all partitions together
\getenv tests PG_ABS_SRCDIR
\set planned_rows :tests '/sql/include/planned_rows.sql'
\i :planned_rows
SELECT planned_rows('SELECT FROM asked a JOIN parts p ON p.title <~~> a.q <= 1') AS pairs, planned_rows('SELECT FROM parts WHERE title <~~> ''abcd'' <= 1') AS rows,
	planned_rows('SELECT FROM asked a JOIN (SELECT * FROM titles UNION ALL SELECT * FROM titles) u ON u.title <~~> a.q <= 1') AS of_union,
	planned_rows('SELECT FROM parts p JOIN asked a ON a.id = p.id WHERE p.title <~~> ''abcd'' <= 1') AS joined;
DROP FUNCTION planned_rows;
SELECT * FROM compared('SELECT p.id, t.id FROM parts p JOIN titles t ON t.title <~~> p.title <= 1 AND t.id < p.id WHERE p.id % 10 = 1');
-- partitions joined one by one, whose columns have other places
CREATE TABLE asked_parts (id integer, title text, half integer) PARTITION BY LIST (half);
CREATE TABLE asked_parts_1 PARTITION OF asked_parts FOR VALUES IN (0);
CREATE TABLE asked_parts_2 (half integer, title text, id integer);
ALTER TABLE asked_parts ATTACH PARTITION asked_parts_2 FOR VALUES IN (1);
INSERT INTO asked_parts SELECT id, q, id % 2 FROM asked;
CREATE TABLE halves (half integer, title text, id integer) PARTITION BY LIST (half);
CREATE TABLE halves_1 PARTITION OF halves FOR VALUES IN (0);
CREATE TABLE halves_2 PARTITION OF halves FOR VALUES IN (1);
INSERT INTO halves SELECT id % 2, title, id FROM titles;
CREATE INDEX ON halves USING matchcount (title);
ANALYZE asked_parts, halves;
SET enable_partitionwise_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT * FROM compared('SELECT a.id, h.id FROM asked_parts a JOIN halves h ON a.half = h.half AND h.title <~~> a.title <= 1');
SELECT * FROM compared('SELECT a.id, h.id FROM asked_parts a LEFT JOIN halves h ON a.half = h.half AND edit_distance(a.title, h.title) <= 1');
SELECT * FROM compared('SELECT a.id FROM asked_parts a WHERE NOT EXISTS (SELECT FROM halves h WHERE a.half = h.half AND h.title <~~> a.title <= 1)');
RESET enable_partitionwise_join;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- partitions whose rows are changed, as the outer side: no batch
EXPLAIN (COSTS OFF, VERBOSE) DELETE FROM asked_parts a USING titles t WHERE t.title <~~> a.title <= 1;
BEGIN;
SELECT count(DISTINCT a.id) AS pairs FROM asked_parts a JOIN (SELECT * FROM titles OFFSET 0) t ON t.title <~~> a.title <= 1;
WITH deleted AS (DELETE FROM asked_parts a USING titles t WHERE t.title <~~> a.title <= 1 RETURNING a.id) SELECT count(*) FROM deleted;
ROLLBACK;
DROP TABLE asked_parts, halves;

-- row level security on the inner table: no bound before the policy
CREATE ROLE regress_reader;
GRANT SELECT ON titles, asked TO regress_reader;
ALTER TABLE titles ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON titles TO regress_reader USING (kind % 2 = 1);
SET ROLE regress_reader;
EXPLAIN (COSTS OFF) SELECT a.id, t.id FROM asked a JOIN titles t ON a.q <~~> t.title <= 2;
SELECT count(*), count(*) FILTER (WHERE kind % 2 = 0) AS hidden FROM asked a JOIN titles t ON a.q <~~> t.title <= 2;
RESET ROLE;
SELECT count(*) FROM asked a JOIN titles t ON a.q <~~> t.title <= 2 AND kind % 2 = 1;
ALTER TABLE titles DISABLE ROW LEVEL SECURITY;
DROP POLICY odd ON titles;
REVOKE ALL ON titles, asked FROM regress_reader;
DROP ROLE regress_reader;

-- duplicates: groups of titles that a chain of near ones joins
CREATE TABLE near AS SELECT a.id, b.id AS other FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 1 AND a.id < b.id WHERE a.id < 2000 AND b.id < 2000;
WITH RECURSIVE edges AS (SELECT id, other FROM near UNION SELECT other, id FROM near),
	reached AS (SELECT id, id AS other FROM edges UNION SELECT r.id, e.other FROM reached r JOIN edges e ON e.id = r.other),
	groups AS (SELECT id, min(other) AS first FROM reached GROUP BY id)
SELECT count(*) AS titles, count(DISTINCT first) AS groups, bool_and(first <= id) AS right_first FROM groups;

DROP TABLE titles, asked, parts, near;
DROP FUNCTION made_text, pairs, compared;
