-- texts within a distance: WHERE title <~~> $1 <= n, as a bound of the search
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

CREATE FUNCTION made_text(seed integer) RETURNS text AS $$
	SELECT translate(left(md5((seed % 1500)::text), seed % 30), '0123456789abcdef', 'aabbccdd eéжжΩ漢😀')
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE titles (id integer PRIMARY KEY, kind integer, title text);
INSERT INTO titles SELECT i, i % 10, CASE WHEN i % 97 <> 0 THEN made_text(i) END FROM generate_series(1, 3000) i;
CREATE INDEX titles_title ON titles USING matchcount (title);
ANALYZE titles;
CREATE TABLE queries (q text);
INSERT INTO queries SELECT made_text(i * 131) FROM generate_series(1, 12) i;
INSERT INTO queries SELECT overlay(title PLACING 'xy' FROM 3) FROM titles WHERE id % 200 = 7;
INSERT INTO queries VALUES (''), ('a'), ('漢😀'), (repeat('no row is like it ', 40)), (NULL);

-- rows that a condition returns, by the index or without; the index must be used where it is allowed
CREATE FUNCTION rows_where(condition text, query text, by_index boolean) RETURNS integer[] AS $$
DECLARE
	found integer[];
BEGIN
	PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_bitmapscan']) name;
	EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM titles WHERE %s OFFSET 0) n', condition) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION compared(condition text, OUT queries bigint, OUT found bigint, OUT wrong bigint) AS $$
	SELECT count(*), sum(cardinality(found)), count(*) FILTER (WHERE found IS DISTINCT FROM rows_where(condition, q, false))
	FROM queries, rows_where(condition, q, true) found
$$ LANGUAGE sql;

EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE title <~~> 'abcd' <= 2;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance(title, 'abcd') < 3;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE 3 > 'abcd' <~~> title;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE 2 >= edit_distance('abcd', title) AND kind = 3 ORDER BY id;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE text_edit_distance(title, 'abcd') <= 2::real;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance(title, 'abcd') <= 2 ORDER BY title <~~> 'abcd' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE title <~~> 'abcd' <= 2 AND edit_distance('abcd', title) < 4::bigint;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> (SELECT 'abcd') <= (SELECT 2)$$) AS plan;
EXPLAIN (COSTS OFF) DELETE FROM titles WHERE title <~~> 'abcd' <= 1;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance(title, 'abcd', 2) <= 2;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance(title, 'abcd', 2) <= 3;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance(title, 'abcd', NULL) <= 2;
-- the planner expects few rows within a narrow bound, and a third within a wide one, as PostgreSQL does
\set planned_rows :tests '/sql/include/planned_rows.sql'
\i :planned_rows
SELECT planned_rows('SELECT FROM titles WHERE title <~~> ''abcd'' <= 2') AS narrow, planned_rows('SELECT FROM titles WHERE title <~~> ''abcd'' <= 20') AS wide,
	planned_rows('SELECT FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 2') AS pairs,
	planned_rows('SELECT FROM titles a WHERE EXISTS (SELECT FROM titles b WHERE edit_distance(a.title, b.title) <= 2 AND a.id <> b.id)') AS matched,
	planned_rows('SELECT FROM titles a LEFT JOIN titles b ON edit_distance(a.title, b.title) <= 2') AS left_pairs;
DROP FUNCTION planned_rows;
SELECT * FROM compared('title <~~> $1 <= 0');
SELECT * FROM compared('title <~~> $1 <= 2');
SELECT * FROM compared('title <~~> $1 < 2');
SELECT * FROM compared('edit_distance(title, $1, 2) <= 2');
SELECT * FROM compared('edit_distance($1, title, 5) < 3');
SELECT * FROM compared('edit_distance(title, $1, 2) <= 3');
SELECT * FROM compared('edit_distance(title, $1, length($1) / 4) <= length($1) / 4');
SELECT * FROM compared('title <~~> $1 <= 2.5');
SELECT * FROM compared('edit_distance($1, title) < 5');
SELECT * FROM compared('6::smallint >= edit_distance(title, $1)');
SELECT * FROM compared('title <~~> $1 <= 12');
SELECT * FROM compared('title <~~> $1 <= 40');
SELECT * FROM compared('title <~~> $1 <= 3 AND kind IN (3, 4)');
SELECT * FROM compared('title <~~> $1 <= 5 AND edit_distance(title, $1) <= 3 AND edit_distance(title, $1) > 1');
SELECT * FROM compared('title <~~> $1 <= length($1) / 4');
-- rows in the delta, dead rows, a merge
INSERT INTO titles SELECT i, i % 10, made_text(i) FROM generate_series(3001, 3400) i;
DELETE FROM titles WHERE id % 7 = 3;
SELECT * FROM compared('title <~~> $1 <= 3');
VACUUM titles;
SELECT * FROM compared('title <~~> $1 <= 3');
CALL pgwarp_merge('titles_title');
SELECT * FROM compared('title <~~> $1 <= 3');
SELECT * FROM compared('title <~~> $1 <= 12');

-- bounds that no row or every row satisfies
SELECT condition, c.* FROM unnest(ARRAY['title <~~> $1 <= NULL', 'title <~~> $1 <= -1', 'title <~~> $1 < 0',
	'title <~~> $1 <= -0.5', 'title <~~> $1 < 1e-300', 'title <~~> $1 <= ''-infinity''', 'title <~~> $1 <= ''infinity''', 'title <~~> $1 < ''infinity''',
	'title <~~> $1 <= ''nan''', 'title <~~> $1 < ''nan''', 'title <~~> $1 <= 1e300', 'edit_distance(title, $1) <= 2147483647',
	'edit_distance(title, $1) <= 9223372036854775807', 'edit_distance(title, $1) < -9223372036854775808',
	'edit_distance(title, $1) <= NULL::integer']) condition, compared(condition) c;

-- not by the index: no bound from above, other functions, a bound or a query of the row, volatile ones
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'abcd' >= 2$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE edit_distance_transpositions(title, 'abcd') <= 2$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'abcd' <= id$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> kind::text <= 2$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'abcd' <= random()$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> clock_timestamp()::text <= 2$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'abcd' <= 2 OR kind = 3$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE NOT title <~~> 'abcd' <= 2$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE lower(title) <~~> 'abcd' <= 2$$) AS plan;
CREATE FUNCTION pg_temp.edit_distance(text, text) RETURNS integer AS 'SELECT 1' LANGUAGE sql IMMUTABLE;
SELECT plan_of($$SELECT id FROM titles WHERE pg_temp.edit_distance(title, 'abcd') <= 2$$) AS plan;
-- nor by an index whose rows may be missed
CREATE TABLE vectors (v vector(2));
INSERT INTO vectors SELECT format('[%s,%s]', i, i)::vector FROM generate_series(1, 100) i;
CREATE INDEX ON vectors USING exact (v);
SELECT plan_of($$SELECT * FROM vectors WHERE v <-> '[1,2]' <= 2$$) AS plan;
RESET enable_seqscan;

-- prepared statements: a plan for any value
SET plan_cache_mode = force_generic_plan;
PREPARE within (text, integer) AS SELECT id FROM titles WHERE edit_distance(title, $1) <= $2 ORDER BY id;
EXPLAIN (COSTS OFF) EXECUTE within ('abcd', 2);
EXECUTE within ('aabbc', 2);
EXECUTE within ('aabbc', 0);
EXECUTE within ('aabbc', NULL);
EXECUTE within (NULL, 2);
EXECUTE within ('aabbc', -3);
PREPARE near (text, float8) AS SELECT count(*) FROM titles WHERE title <~~> $1 <= $2;
EXECUTE near ('aabbc', 2.99);
EXECUTE near ('aabbc', 'infinity');
EXECUTE near ('aabbc', 'nan');
RESET plan_cache_mode;
DEALLOCATE ALL;
-- a stable function; the bound of each row of an outer query
CREATE FUNCTION tolerance() RETURNS float8 AS 'SELECT current_setting(''regress.tolerance'')::float8' LANGUAGE sql STABLE;
SET regress.tolerance = 1;
SELECT count(*) FROM titles WHERE title <~~> 'aabbc' <= tolerance();
SET regress.tolerance = 3;
SELECT count(*) FROM titles WHERE title <~~> 'aabbc' <= tolerance();
SELECT n, (SELECT count(*) FROM titles WHERE title <~~> 'aabbc' <= n) AS within,
	(SELECT count(*) FROM (SELECT title <~~> 'aabbc' AS d FROM titles OFFSET 0) t WHERE d <= n) AS right_count
	FROM generate_series(0, 4) n;
-- a cursor, backwards too; EXISTS; UPDATE and DELETE by the index
BEGIN;
DECLARE found SCROLL CURSOR FOR SELECT title <~~> 'aabbc' FROM titles WHERE title <~~> 'aabbc' <= 3;
FETCH 2 found;
MOVE 100 found;
FETCH BACKWARD 1 found;
CLOSE found;
ROLLBACK;
SELECT EXISTS (SELECT FROM titles WHERE title <~~> 'aabbc' <= 2), EXISTS (SELECT FROM titles WHERE title <~~> 'nothing is near this' <= 2);
BEGIN;
EXPLAIN (COSTS OFF) UPDATE titles SET kind = -1 WHERE title <~~> 'aabbc' <= 2;
UPDATE titles SET kind = -1 WHERE title <~~> 'aabbc' <= 2;
SELECT count(*) = (SELECT count(*) FROM (SELECT title <~~> 'aabbc' AS d FROM titles OFFSET 0) t WHERE d <= 2) AS all_updated FROM titles WHERE kind = -1;
DELETE FROM titles WHERE title <~~> 'aabbc' <= 2;
SELECT count(*) FROM titles WHERE kind = -1;
ROLLBACK;
SELECT id FROM titles WHERE title <~~> 'aabbc' <= 2 ORDER BY id LIMIT 2 FOR UPDATE;

-- row level security: a bound must not tell how many hidden rows are near, so it is a filter
CREATE ROLE regress_reader;
GRANT SELECT ON titles, queries TO regress_reader;
ALTER TABLE titles ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON titles TO regress_reader USING (kind % 2 = 1);
SET ROLE regress_reader;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'aabbc' <= 2$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'aabbc' <= 2 ORDER BY title <~~> 'aabbc' LIMIT 1$$) AS plan;
SELECT count(*), count(*) FILTER (WHERE kind % 2 = 0) AS hidden FROM titles WHERE title <~~> 'aabbc' <= 2;
RESET ROLE;
ALTER TABLE titles DISABLE ROW LEVEL SECURITY;
-- a security barrier likewise
CREATE VIEW odd_titles WITH (security_barrier) AS SELECT * FROM titles WHERE kind % 2 = 1;
SELECT plan_of($$SELECT id FROM odd_titles WHERE title <~~> 'aabbc' <= 2$$) AS plan;
RESET enable_seqscan;
DROP VIEW odd_titles;
DROP POLICY odd ON titles;
REVOKE ALL ON titles, queries FROM regress_reader;
DROP ROLE regress_reader;

-- partial and expression indexes, included columns, varchar, partitions
DROP INDEX titles_title;
CREATE INDEX titles_partial ON titles USING matchcount (title) WHERE kind = 3;
SELECT plan_of($$SELECT id FROM titles WHERE kind = 3 AND title <~~> 'aabbc' <= 2$$) AS plan;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM titles WHERE title <~~> 'aabbc' <= 2$$) AS plan;
RESET enable_seqscan;
SELECT * FROM compared('kind = 3 AND title <~~> $1 <= 4');
DROP INDEX titles_partial;
CREATE INDEX titles_lower ON titles USING matchcount (lower(title)) INCLUDE (id) WITH (gram = 4);
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance(lower(title), 'aabbc') <= 2;
SELECT * FROM compared('edit_distance(lower(title), $1) <= 2');
DROP INDEX titles_lower;
CREATE TABLE others (id integer, v varchar(20));
INSERT INTO others SELECT id, left(title, 20) FROM titles WHERE id < 2000;
CREATE INDEX ON others USING matchcount (v);
ANALYZE others;
EXPLAIN (COSTS OFF) SELECT id FROM others WHERE v <~~> 'aabbc' <= 2;
SELECT count(*) = (SELECT count(*) FROM (SELECT v <~~> 'aabbc' AS d FROM others OFFSET 0) t WHERE d <= 2) AS same FROM others WHERE v <~~> 'aabbc' <= 2;
-- near rows are few however large the table: it is not read in the hope to meet one soon
UPDATE pg_class SET reltuples = 1000000 WHERE oid = 'others'::regclass;
SELECT plan_of($$SELECT EXISTS (SELECT FROM others WHERE v <~~> 'aabbc' <= 2)$$) AS plan;
SELECT plan_of($$SELECT id FROM others WHERE v <~~> 'aabbc' <= 2 LIMIT 1$$) AS plan;
CREATE TABLE parts (id integer, title text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1500) TO (5000);
INSERT INTO parts SELECT id, title FROM titles;
CREATE INDEX ON parts USING matchcount (title);
ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE title <~~> 'aabbc' <= 2;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE title <~~> 'aabbc' <= 2 ORDER BY title <~~> 'aabbc' LIMIT 2;
SELECT array_agg(id ORDER BY id) = (SELECT array_agg(id ORDER BY id) FROM titles WHERE title <~~> 'aabbc' <= 3) AS same FROM parts WHERE title <~~> 'aabbc' <= 3;
SELECT array_agg(d) = (SELECT array_agg(d ORDER BY d) FROM (SELECT title <~~> 'aabbc' AS d FROM titles OFFSET 0) t WHERE d <= 4) AS same
	FROM (SELECT title <~~> 'aabbc' AS d FROM parts WHERE title <~~> 'aabbc' <= 4 ORDER BY title <~~> 'aabbc' LIMIT 1000) n;

EXPLAIN (COSTS OFF) UPDATE parts SET title = title || '!' WHERE edit_distance(title, 'aabbc') <= 2;
UPDATE parts SET title = title || '!' WHERE edit_distance(title, 'aabbc') <= 2 RETURNING tableoid::regclass, id;
DELETE FROM parts WHERE edit_distance(title, 'aabbc!') <= 2 AND id < 1000 RETURNING tableoid::regclass, id;

DROP TABLE titles, queries, others, parts, vectors;
DROP FUNCTION made_text, rows_where, compared, tolerance, plan_of;
