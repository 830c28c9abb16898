-- Searches in sub-selects of conditions, in batches.
SET client_min_messages = warning;
SET jit = off;
SET seq_page_cost = 1000;

CREATE TABLE items (id integer, label integer, v vector(3));
INSERT INTO items SELECT i, i % 5, ARRAY[i % 17, i % 101, i]::vector FROM generate_series(1, 1000) i;
CREATE INDEX items_v ON items USING exact (v);
CREATE TABLE places (id integer, label integer, v vector(3));
INSERT INTO places SELECT id, label, v FROM items WHERE id % 2 = 0;
CREATE INDEX places_v ON places USING exact (v);
CREATE TABLE asked (id integer, label integer, v vector(3), w vector(3));
INSERT INTO asked SELECT g, g % 5, CASE WHEN g % 9 > 0 THEN ARRAY[g, 2 * g, 3 * g]::vector END, ARRAY[5 * g, g, g]::vector FROM generate_series(1, 100) g;
CREATE INDEX asked_id ON asked (id);
ANALYZE;

-- rows with batches and without; both numbers of rows when they are not the same
CREATE FUNCTION same_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE with_batches text[]; without text[]; plan text;
BEGIN
	SET LOCAL pgwarp.knn_batch = on;
	EXECUTE format('SELECT array_agg(t::text ORDER BY t::text) FROM (%s) t', query) INTO with_batches;
	EXECUTE format('EXPLAIN (FORMAT JSON) %s', query) INTO plan;
	SET LOCAL pgwarp.knn_batch = off;
	EXECUTE format('SELECT array_agg(t::text ORDER BY t::text) FROM (%s) t', query) INTO without;
	RESET pgwarp.knn_batch;
	RETURN format('%s, %s rows', CASE WHEN plan ~ 'KnnBatch' THEN 'batched' ELSE 'one at a time' END,
		CASE WHEN with_batches IS NOT DISTINCT FROM without THEN coalesce(cardinality(without), 0)::text
			ELSE format('%s instead of %s', with_batches, without) END);
END $$;
-- what the batches did; how a condition with a sub-select is written differs from version to version, and from 17 on ANY is a join
CREATE FUNCTION counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '(KnnBatch|Filter|Batches|Rows Read|Requests| Searches|Cache Hits|Deepened)' AND line !~ 'Index Searches|SubPlan' THEN
			RETURN NEXT regexp_replace(line, '(rows=\d+)\.\d+', '\1');
		END IF;
	END LOOP;
END $$;

-- conditions of all kinds
EXPLAIN (VERBOSE, COSTS OFF) SELECT q.id FROM asked q WHERE q.id > 20 AND q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
SELECT counts('SELECT q.id FROM asked q WHERE q.id % 5 > 0 AND q.label >= ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)');
SELECT condition, same_rows(format('SELECT q.id FROM asked q WHERE %s', condition)) FROM (VALUES
	('q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)'),
	('q.label NOT IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)'),
	('q.label < ANY (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2)'),
	('q.label <= ALL (SELECT i.label FROM items i WHERE i.id % 3 = 0 ORDER BY i.v <-> q.w LIMIT 2 OFFSET 1)'),
	('q.label = (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 1)'),
	('3 < (SELECT sum(s.label) FROM (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 3) s)'),
	('q.id = ANY (ARRAY(SELECT i.id % 100 FROM items i ORDER BY i.v <-> q.w LIMIT 20))'),
	('(q.label, q.id % 3) IN (SELECT i.label, i.id % 3 FROM items i ORDER BY i.v <-> q.w LIMIT 5)'),
	('EXISTS (SELECT FROM (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 3) s WHERE s.label = q.label)'),
	('NOT EXISTS (SELECT FROM (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 3) s WHERE s.label = q.label)'),
	('q.id < 10 OR q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)'),
	('q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 0)'),
	('q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 4) IS UNKNOWN'),
	('q.label <= ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 1 + 6 / (200 - q.id))'),
	('q.label <= ALL (SELECT i.label FROM items i ORDER BY i.v <-> (q.v + q.w) LIMIT 2)')) c(condition);
-- in the target list
SELECT same_rows('SELECT q.id, q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q');

-- several: each has a batch of its own, for the rows that the one before lets through; the same query is searched once
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT i.id FROM places i ORDER BY i.v <-> q.w LIMIT 2) FROM asked q
	WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2) AND q.id IN (SELECT i.id % 100 FROM items i ORDER BY i.v <-> q.w LIMIT 40);
SELECT same_rows('SELECT q.id, ARRAY(SELECT i.id FROM places i ORDER BY i.v <-> q.w LIMIT 2) FROM asked q
	WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2) AND q.id IN (SELECT i.id % 100 FROM items i ORDER BY i.v <-> q.w LIMIT 40)');
SELECT counts('SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) FROM asked q
	WHERE q.label >= ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2) AND q.label < ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)');
SELECT counts('SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) FROM asked q WHERE q.label >= ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2)');

-- a condition on both sides of a join; on the rows of an outer join
EXPLAIN (VERBOSE, COSTS OFF) SELECT q.id FROM asked q JOIN asked p ON p.id + 0 = q.id + 1 WHERE p.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
SELECT same_rows('SELECT q.id, p.id AS other FROM asked q JOIN asked p ON p.id + 0 = q.id + 1 WHERE p.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)');
SELECT same_rows('SELECT q.id, p.id AS other FROM asked q LEFT JOIN asked p ON p.id = 2 * q.id AND p.id < 50 WHERE p.id IS NULL OR p.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)');
-- not where the join hands the query on to its inner side
EXPLAIN (COSTS OFF) SELECT q.id, p.id FROM asked q JOIN asked p ON p.id > q.id + 90 WHERE p.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
-- that a row of the inner side is the only one that matches may follow from the sub-select
CREATE TABLE named (id integer, kind integer);
INSERT INTO named SELECT g, g % 2 FROM generate_series(1, 1000) g;
ANALYZE named;
SET join_collapse_limit = 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT q.id, n.id AS named FROM asked q JOIN asked r ON r.id = q.id CROSS JOIN LATERAL (SELECT id, max(kind) AS kind FROM named WHERE named.id > q.id GROUP BY id) n
	WHERE n.id = (SELECT i.id FROM items i ORDER BY i.v <-> r.w LIMIT 1);
SELECT same_rows('SELECT q.id, n.id AS named FROM asked q JOIN asked r ON r.id = q.id CROSS JOIN LATERAL (SELECT id, max(kind) AS kind FROM named WHERE named.id > q.id GROUP BY id) n
	WHERE n.id = (SELECT i.id FROM items i ORDER BY i.v <-> r.w LIMIT 1)');
RESET join_collapse_limit;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- beside a lateral join of the same rows
SELECT same_rows('SELECT q.id, n.id AS near FROM asked q CROSS JOIN LATERAL (SELECT i.id FROM places i ORDER BY i.v <-> q.v LIMIT 2) n WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)');
-- where a row is left out that has a match
EXPLAIN (COSTS OFF) SELECT q.id FROM asked q LEFT JOIN LATERAL (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2) n ON n.label = q.label WHERE n.label IS NULL;
SELECT same_rows('SELECT q.id FROM asked q LEFT JOIN LATERAL (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2) n ON n.label = q.label WHERE n.label IS NULL');
-- rows that come from a search themselves
EXPLAIN (COSTS OFF) SELECT p.id FROM places p WHERE p.label < ANY (SELECT i.label FROM items i WHERE i.id <> p.id ORDER BY i.v <-> p.v LIMIT 2) ORDER BY p.v <-> '[1,2,3]' LIMIT 4;
SELECT same_rows('SELECT p.id FROM places p WHERE p.label < ANY (SELECT i.label FROM items i WHERE i.id <> p.id ORDER BY i.v <-> p.v LIMIT 2) ORDER BY p.v <-> ''[1,2,3]'' LIMIT 4');
SELECT same_rows('SELECT p.id, row_number() OVER () FROM (SELECT p.id FROM items p WHERE p.label < ANY (SELECT i.label FROM items i WHERE i.id <> p.id ORDER BY i.v <-> p.v LIMIT 2) ORDER BY p.v <-> ''[1,2,3]'' LIMIT 200) p');

-- stopped early, and executed again and again
SELECT counts('SELECT q.id FROM asked q WHERE q.label > ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2) LIMIT 1');
SELECT same_rows('SELECT o.id FROM asked o WHERE EXISTS (SELECT FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2) AND q.id > o.id OFFSET 0)');
SELECT counts('SELECT o.id FROM asked o WHERE EXISTS (SELECT FROM asked q WHERE q.label > ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2) AND q.id > o.id OFFSET 0)');
SELECT same_rows('SELECT o.id, (SELECT count(*) FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2) AND q.id > o.id) FROM asked o WHERE o.id % 10 = 0');
-- a sub-select whose result is kept follows what it depends on
SELECT same_rows('SELECT o.id, (SELECT string_agg(q.id::text, '' '') FROM asked q
	WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2) AND q.id IN (SELECT a.id + (SELECT max(b.id) FROM asked b WHERE b.id < o.id) FROM asked a)) FROM asked o WHERE o.id % 10 = 0');

-- what is only true of the row as it is read stays; so does the order of what has effects
EXPLAIN (COSTS OFF) SELECT q FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
CREATE SEQUENCE numbers;
EXPLAIN (COSTS OFF) SELECT nextval('numbers') FROM asked q WHERE nextval('numbers') > 0 AND q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
EXPLAIN (COSTS OFF) SELECT q.id FROM asked q WHERE nextval('numbers') > 0 AND q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
EXPLAIN (COSTS OFF) SELECT q.id FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> (q.v * ARRAY[random(), 1, 1]::vector) LIMIT 2);
EXPLAIN (COSTS OFF) SELECT q.id FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2) FOR UPDATE;
EXPLAIN (COSTS OFF) DELETE FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
CREATE TABLE found AS SELECT q.id FROM asked q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
SELECT count(*), sum(id) FROM found;
DROP TABLE found;

-- errors belong to their row
SELECT q.id FROM (SELECT * FROM asked WHERE id > 1 ORDER BY id) q WHERE q.label = ANY (SELECT i.label FROM items i ORDER BY i.v <-> ARRAY[1 / (q.id - 20), 2, 3]::vector LIMIT 2) LIMIT 5;
SELECT count(*) FROM asked q WHERE q.label = ANY (SELECT i.label FROM items i ORDER BY i.v <-> ARRAY[1 / (q.id - 20), 2, 3]::vector LIMIT 2);
SELECT same_rows('SELECT q.id FROM asked q WHERE q.id = 20 OR q.label = ANY (SELECT i.label FROM items i ORDER BY i.v <-> ARRAY[1 / (q.id - 20), 2, 3]::vector LIMIT 2)');
SELECT same_rows('SELECT q.id FROM asked q WHERE q.id <> 20 AND q.label = ANY (SELECT i.label FROM items i ORDER BY i.v <-> ARRAY[1 / (q.id - 20), 2, 3]::vector LIMIT 2)');

-- effects of a sub-select, and conditions that depend on them, come in the order of the rows
CREATE TABLE told (id integer);
CREATE FUNCTION tell(id integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	INSERT INTO told VALUES (id);
	RETURN id;
END $$;
CREATE FUNCTION told() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM told';
SELECT q.id FROM asked q WHERE q.id BETWEEN 4 AND 12 AND told() < 3 AND (SELECT tell(i.id) FROM items i ORDER BY i.v <-> q.w LIMIT 1) > 0;
SELECT q.id, (SELECT tell(i.id) FROM items i ORDER BY i.v <-> q.w LIMIT 1) > 0 AS found FROM asked q WHERE q.id BETWEEN 4 AND 12 AND told() < 6;
SELECT q.id FROM asked q WHERE q.id BETWEEN 4 AND 12 AND (SELECT max(told()) FROM asked p WHERE p.id = q.id) < 9 AND (SELECT tell(i.id) FROM items i ORDER BY i.v <-> q.w LIMIT 1) > 0;
SELECT q.id, (SELECT tell(i.id) FROM items i ORDER BY i.v <-> q.w LIMIT 1) > 0 AS found, told FROM (SELECT id, w, told() FROM asked WHERE id < 4 OFFSET 0) q;
-- without such conditions they are batched
EXPLAIN (COSTS OFF) SELECT q.id, (SELECT tell(i.id) FROM items i ORDER BY i.v <-> q.w LIMIT 1) FROM asked q WHERE q.id BETWEEN 4 AND 12;
DROP FUNCTION tell(integer), told();
DROP TABLE told;
-- where a LIMIT may stop the rows, what may raise an error is not evaluated ahead
SELECT q.id, (SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 1) FROM asked q WHERE 100 / (q.id - 8) IS NOT NULL AND q.id > 3 LIMIT 2;
SELECT q.id, (SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 1) FROM asked q WHERE 100 / (q.id - 8) IS NOT NULL AND q.id > 3;
SELECT text, same_rows(text) FROM (SELECT format('SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) FROM asked q %s', rest) AS text FROM (VALUES
	('WHERE 100 / q.id > 3'),
	('WHERE 100 / q.id > 3 LIMIT 4'),
	('WHERE q.id % 2 = q.label LIMIT 4'),
	('WHERE q.label > 3 LIMIT 4'),
	('WHERE 100 / q.id > 3 ORDER BY q.label, q.id LIMIT 4'),
	('WHERE 100 / q.id > 3 ORDER BY q.id LIMIT 4'),
	('WHERE q.id > 3 ORDER BY q.id LIMIT 4'),
	('JOIN asked p ON p.id = q.label WHERE q.label > 2 LIMIT 4'),
	('JOIN asked p ON p.id = 100 / q.id LIMIT 4')) r(rest)) t;

-- prepared, with parameters
SET plan_cache_mode = force_generic_plan;
PREPARE asked_rows(integer, bigint) AS SELECT count(*) FROM asked q WHERE q.id > $1 AND q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT $2);
EXPLAIN (COSTS OFF) EXECUTE asked_rows(10, 2);
EXECUTE asked_rows(10, 2);
EXECUTE asked_rows(50, 0);
EXECUTE asked_rows(50, NULL);
SET pgwarp.knn_batch = off;
EXECUTE asked_rows(10, 2);
RESET pgwarp.knn_batch;
-- the cached plan is the one that is executed, as often as it is; it goes on when the setting is another
PREPARE asked_above(integer) AS SELECT count(*) FROM asked q WHERE q.id > $1 AND q.label >= ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
SELECT counts('EXECUTE asked_above(10)');
SELECT counts('EXECUTE asked_above(10)');
SET pgwarp.knn_batch = off;
SELECT counts('EXECUTE asked_above(10)');
RESET pgwarp.knn_batch;
RESET plan_cache_mode;
-- a function keeps nothing of its executions
CREATE FUNCTION asked_below(most integer) RETURNS bigint LANGUAGE sql STABLE AS
	'SELECT count(*) FROM asked q WHERE q.id < $1 AND q.label < ALL (SELECT i.label FROM items i ORDER BY i.v <-> q.w LIMIT 2)';
CREATE FUNCTION asked_arrays(most integer) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT sum(cardinality(s.ids)) FROM (SELECT ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) AS ids FROM asked q WHERE q.id < most) s);
END $$;
CREATE FUNCTION memory_used() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	RETURN (SELECT sum(total_bytes) FROM pg_backend_memory_contexts);
END $$;
SELECT sum(below), sum(arrays), max(memory) FILTER (WHERE g > 1000) - max(memory) FILTER (WHERE g <= 500) < 100000 AS none_kept
FROM (SELECT g, asked_below(3) AS below, asked_arrays(3) AS arrays, CASE WHEN g % 250 = 0 THEN memory_used() END AS memory FROM generate_series(1, 2000) g OFFSET 0) calls;
DROP FUNCTION asked_below(integer), asked_arrays(integer), memory_used();

-- rows that a cursor is at may be changed, also by a function; it may be read while others are batched
BEGIN;
DECLARE asked_near CURSOR FOR SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) AS near FROM asked q WHERE q.id < 4;
FETCH 2 FROM asked_near;
UPDATE asked SET label = 77 WHERE CURRENT OF asked_near;
FETCH 2 FROM asked_near;
CREATE FUNCTION mark_asked() RETURNS void LANGUAGE plpgsql AS $$
DECLARE near CURSOR FOR SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) FROM asked q WHERE q.id > 98;
	found record;
BEGIN
	OPEN near;
	FETCH near INTO found;
	UPDATE asked SET label = 78 WHERE CURRENT OF near;
	CLOSE near;
	FOR found IN SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.w LIMIT 2) AS ids FROM asked q WHERE q.id > 97 LOOP
		RAISE WARNING 'row % near %', found.id, found.ids;
	END LOOP;
END $$;
SELECT mark_asked();
SELECT id, label FROM asked WHERE label > 70 ORDER BY id;
ROLLBACK;

-- above rows that parallel workers read
CREATE TABLE many (id integer, label integer, v vector(3)) WITH (parallel_workers = 2);
INSERT INTO many SELECT g, g % 5, ARRAY[g, g, g]::vector FROM generate_series(1, 500) g;
ANALYZE many;
SET seq_page_cost = 1;
SET enable_sort = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT q.id FROM (SELECT id, label, v FROM many WHERE id % 3 = 0 OFFSET 0) q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2);
SELECT same_rows('SELECT q.id FROM (SELECT id, label, v FROM many WHERE id % 3 = 0 OFFSET 0) q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 2)');
SELECT split_part(same_rows('SELECT q.id FROM (SELECT id, label, v FROM many WHERE id % 3 = 0 OFFSET 0) q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> (q.v + q.v) LIMIT 2)'), ', ', 2);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET enable_sort;
SET seq_page_cost = 1000;

-- one sub-plan of several nodes, whose scans begin in another order than the plan's
CREATE TABLE shared (id integer, kind integer, v vector(3)) PARTITION BY LIST (kind);
CREATE TABLE shared_0 PARTITION OF shared FOR VALUES IN (0);
CREATE TABLE shared_1 PARTITION OF shared FOR VALUES IN (1);
INSERT INTO shared SELECT g, g % 2, ARRAY[(g % 2) * -1000, g, g]::vector FROM generate_series(1, 40) g;
CREATE INDEX ON shared USING exact (v);
ANALYZE shared;
SET statement_timeout = '60s';
SELECT kind, count(*) FROM (SELECT s.kind, q.id FROM (SELECT id, ARRAY[-1000, id, id]::vector AS v FROM asked UNION ALL SELECT id, v FROM asked) q, shared s
	WHERE s.id = (SELECT n.id FROM shared n ORDER BY n.v <-> q.v LIMIT 1)) t GROUP BY kind ORDER BY kind;
SELECT count(*) FROM (SELECT id, ARRAY[-1000, id, id]::vector AS v FROM asked UNION ALL SELECT id, w FROM asked) q WHERE q.id > (SELECT n.id FROM shared n ORDER BY n.v <-> q.v LIMIT 1);
RESET statement_timeout;
DROP TABLE shared;

-- row security: a policy that searches, and conditions that must not see what policies hide
CREATE ROLE subplan_batch_reader;
GRANT SELECT ON items, places, asked TO subplan_batch_reader;
ALTER TABLE asked ENABLE ROW LEVEL SECURITY;
CREATE POLICY near ON asked FOR SELECT TO subplan_batch_reader USING (id % 2 = 1 AND label IN (SELECT i.label FROM items i ORDER BY i.v <-> asked.w LIMIT 2));
CREATE FUNCTION tells(id integer, label integer) RETURNS boolean LANGUAGE plpgsql STABLE COST 0.1 AS $$
BEGIN
	IF id % 2 = 0 OR label NOT IN (SELECT i.label FROM items i ORDER BY i.v <-> ARRAY[5 * tells.id, tells.id, tells.id]::vector LIMIT 2) THEN RAISE WARNING 'row %', id; END IF;
	RETURN true;
END $$;
SET ROLE subplan_batch_reader;
EXPLAIN (COSTS OFF) SELECT q.id FROM asked q WHERE tells(q.id, q.label) AND q.label IN (SELECT i.label FROM places i ORDER BY i.v <-> q.v LIMIT 3);
SELECT same_rows('SELECT q.id FROM asked q WHERE tells(q.id, q.label)');
SELECT same_rows('SELECT q.id FROM asked q WHERE tells(q.id, q.label) AND q.label IN (SELECT i.label FROM places i ORDER BY i.v <-> q.v LIMIT 3)');
RESET ROLE;
DROP TABLE items, places, asked, named, many;
DROP SEQUENCE numbers;
DROP FUNCTION tells(integer, integer), counts(text), same_rows(text);
DROP ROLE subplan_batch_reader;
