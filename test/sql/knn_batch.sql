SET client_min_messages = warning;
SET jit = off;
SET seq_page_cost = 1000;
SET enable_memoize = off;

CREATE TABLE items (id integer, kind integer, v vector(3));
INSERT INTO items SELECT i, i % 5, ARRAY[i % 17, i % 101, i]::vector FROM generate_series(1, 1000) i;
CREATE INDEX items_v ON items USING exact (v);
CREATE TABLE asked (id integer, v vector(3));
INSERT INTO asked VALUES (1, '[1,2,3]'), (2, '[5,5,500]'), (3, NULL), (4, '[0,0,1000]');
ANALYZE;

-- plans
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q LEFT JOIN LATERAL (SELECT id, kind FROM items i WHERE kind < 3 ORDER BY i.v <-> q.v LIMIT 3) n ON n.kind = 1;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT * FROM (SELECT id FROM items i ORDER BY i.v <-> (q.v + q.v) LIMIT 3) s) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id, m.id FROM asked q
	CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n
	CROSS JOIN LATERAL (SELECT id FROM items i WHERE i.id <> n.id ORDER BY i.v <-> q.v LIMIT 3) m;
-- not batched: nothing lateral about the query, a volatile one, no index, switched off
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT i.id, q.id AS asked FROM items i ORDER BY i.v <-> '[1,2,3]' LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (q.v * ARRAY[random(), 1, 1]::vector) LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <=> q.v LIMIT 3) n;
SET pgwarp.knn_batch = off;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
RESET pgwarp.knn_batch;

-- sub-selects of a target list
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q;
EXPLAIN (COSTS OFF) SELECT q.id, (SELECT array_agg(s.id) FROM (SELECT id FROM items i WHERE kind < 3 ORDER BY i.v <-> (q.v + q.v) LIMIT 3) s) FROM asked q ORDER BY q.id LIMIT 2;
SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) AS ids, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q ORDER BY q.id;
CREATE TABLE found AS SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) AS ids FROM asked q;
INSERT INTO found SELECT q.id + 10, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q;
SELECT * FROM found ORDER BY id;
DROP TABLE found;
-- not batched: a locked row, a volatile query, a scrollable cursor
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q FOR UPDATE;
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> (q.v * ARRAY[random(), 1, 1]::vector) LIMIT 3) FROM asked q;
BEGIN;
DECLARE rows_found SCROLL CURSOR FOR SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q WHERE q.v IS NOT NULL;
FETCH 2 FROM rows_found;
FETCH BACKWARD 1 FROM rows_found;
UPDATE asked SET id = id WHERE CURRENT OF rows_found;
ROLLBACK;
-- an aggregate over the rows of each search
EXPLAIN (COSTS OFF) SELECT q.id, n.ids FROM asked q CROSS JOIN LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) s) n;
SELECT q.id, n.ids FROM asked q CROSS JOIN LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) s) n ORDER BY q.id;
-- few different queries are remembered, many are batched
CREATE TABLE alike AS SELECT g AS id, ARRAY[g % 3, 1, 2]::vector(3) AS v FROM generate_series(1, 2000) g;
CREATE TABLE unlike AS SELECT g AS id, ARRAY[g, 1, 2]::vector(3) AS v FROM generate_series(1, 2000) g;
ANALYZE alike, unlike;
SET enable_memoize = on;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM alike q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM unlike q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT n.id FROM generate_series(1, 2000) g CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 3) n;
SET enable_memoize = off;
DROP TABLE alike, unlike;

-- rows
SELECT q.id, n.id, round(n.d::numeric, 4) AS d FROM asked q CROSS JOIN LATERAL (SELECT id, i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT 3) n
	WHERE q.v IS NOT NULL ORDER BY q.id, n.d;
SELECT q.id, count(n.id) FROM asked q LEFT JOIN LATERAL (SELECT id FROM items i WHERE kind = 9 ORDER BY i.v <-> q.v LIMIT 3) n ON true GROUP BY q.id ORDER BY q.id;
-- what the batch did: rows, hits, and scans that went on alone
CREATE FUNCTION counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *(Batches|Rows Read|Requests|Searches|Cache Hits|Deepened)' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END $$;
SELECT counts('SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n');
SET pgwarp.batch_size = 2;
SELECT counts('SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n');
RESET pgwarp.batch_size;
SELECT counts('SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q');
SELECT counts('SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q JOIN items j ON j.id = q.id WHERE j.kind < 4');
-- while rows are joined the engine searches for those that follow; scans that need more than was fetched come between
SET pgwarp.batch_size = 4;
SELECT counts('SELECT g FROM generate_series(1, 40) g CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n');
SELECT count(*), sum(n.id) FROM generate_series(1, 40) g CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n;
SET pgwarp.knn_batch = off;
SELECT count(*), sum(n.id) FROM generate_series(1, 40) g CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n;
RESET pgwarp.knn_batch;
RESET pgwarp.batch_size;
-- a query that is stopped early reads little ahead
SELECT counts('SELECT g FROM generate_series(1, 1000) g CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 3) n LIMIT 5');
-- a filter that takes most rows away
SELECT counts('SELECT g FROM generate_series(1, 200) g CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n');

-- a filter that takes most rows away is evaluated ahead: for each row once
CREATE FUNCTION filtered_ahead(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *Rows (Filtered|Dropped) Ahead' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END $$;
CREATE FUNCTION joined_rows(filter text, rows text = 'generate_series(1, 200) g') RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT g, n.id FROM %s CROSS JOIN LATERAL (SELECT id FROM items i WHERE %s ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n', rows, filter)
$$;
-- rows with and without it; true when they are the same
CREATE FUNCTION same_rows(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE with_batches text; without text;
BEGIN
	SET LOCAL pgwarp.knn_batch = on;
	EXECUTE format('SELECT string_agg(t::text, '' '' ORDER BY t::text) FROM (%s) t', query) INTO with_batches;
	SET LOCAL pgwarp.knn_batch = off;
	EXECUTE format('SELECT string_agg(t::text, '' '' ORDER BY t::text) FROM (%s) t', query) INTO without;
	RESET pgwarp.knn_batch;
	RETURN with_batches = without;
END $$;
SELECT filtered_ahead(joined_rows('id % 40 = 0'));
SELECT same_rows(joined_rows('id % 40 = 0'));
-- one that lets most through isn't
SELECT filtered_ahead(joined_rows('id % 40 <> 0'));
-- nor one that depends on the outer row, on a subquery or on when it is evaluated
SELECT filtered_ahead(joined_rows('id % 40 = g % 40'));
SELECT filtered_ahead(joined_rows('id % 40 = (SELECT 3)'));
SELECT filtered_ahead(joined_rows('id % 40 = 0 AND random() >= 0'));
SELECT same_rows(joined_rows('id % 40 = g % 40'));
-- two scans of one index with different filters
SELECT same_rows('SELECT g, n.id AS a, m.id AS b FROM generate_series(1, 60) g
	CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n
	CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 7 ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 2) m');
-- versions of rows, in this transaction and before
BEGIN;
UPDATE items SET kind = kind + 1 WHERE id % 80 = 0;
DELETE FROM items WHERE id % 120 = 0;
SELECT same_rows(joined_rows('id % 40 = 0'));
SELECT same_rows(joined_rows('kind = 1 AND id % 40 = 0'));
SELECT filtered_ahead(joined_rows('id % 40 = 0'));
ROLLBACK;
SELECT same_rows(joined_rows('id % 40 = 0'));
-- where it fails for a row that no scan reaches, it doesn't fail; where for one that a scan reaches, it does
SELECT filtered_ahead(joined_rows('id % 40 = 0 AND 1000 / (240 - id) > -1000', 'generate_series(1, 100) g'));
SELECT same_rows(joined_rows('id % 40 = 0 AND 1000 / (240 - id) > -1000', 'generate_series(1, 100) g'));
SELECT count(*) FROM generate_series(1, 300) g CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 20 = 0 AND 1000 / (100 - id) > -5000 ORDER BY i.v <-> ARRAY[g, g, g]::vector LIMIT 5) n;
-- too much to remember
SET work_mem = '64kB';
SELECT same_rows(joined_rows('id % 40 = 0'));
RESET work_mem;

-- errors belong to their row
SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (ARRAY[1 / (q.id - 4), 2, 3]::vector) LIMIT 3) n;
SELECT q.id, n.id FROM (SELECT * FROM asked ORDER BY id) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (ARRAY[1 / (q.id - 4), 2, 3]::vector) LIMIT 3) n LIMIT 4;
SELECT count(*) FROM (VALUES ('[1,2,3]'::vector), ('[1,2]')) q(v) CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;

-- an outer side that parallel workers read
CREATE TABLE many (id integer, v vector(3)) WITH (parallel_workers = 2);
INSERT INTO many SELECT g, ARRAY[g, g, g]::vector FROM generate_series(1, 5000) g;
ANALYZE many;
SET seq_page_cost = 1;
SET enable_sort = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM (SELECT * FROM many WHERE id % 500 = 0) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> (q.v + q.v) LIMIT 3) n;
SELECT q.id, n.id FROM (SELECT * FROM many WHERE id % 500 = 0) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> (q.v + q.v) LIMIT 3) n ORDER BY 1, 2;
SET pgwarp.knn_batch = off;
SELECT q.id, n.id FROM (SELECT * FROM many WHERE id % 500 = 0) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> (q.v + q.v) LIMIT 3) n ORDER BY 1, 2;
RESET pgwarp.knn_batch;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET enable_sort;
SET seq_page_cost = 1000;
DROP TABLE many;

-- prepared, with LIMIT as a parameter
SET plan_cache_mode = force_generic_plan;
PREPARE joined(bigint, real) AS SELECT count(*), min(n.d) >= 0 FROM asked q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT $1) n WHERE q.v <-> '[0,0,0]' > $2;
EXPLAIN (COSTS OFF) EXECUTE joined(3, 1);
EXECUTE joined(3, 1);
EXECUTE joined(200, 1);
EXECUTE joined(0, 1);
EXECUTE joined(NULL, 1);
RESET plan_cache_mode;

-- a cursor, read in pieces
BEGIN;
DECLARE joined_rows CURSOR FOR SELECT q.id, n.id FROM (SELECT * FROM asked WHERE v IS NOT NULL ORDER BY id) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) n;
FETCH 3 FROM joined_rows;
DELETE FROM items WHERE id = 998;
FETCH ALL FROM joined_rows;
ROLLBACK;

-- rows locked
BEGIN;
SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n WHERE q.v IS NOT NULL ORDER BY 1 FOR UPDATE OF q;
ROLLBACK;

-- row security
CREATE ROLE knn_batch_reader;
GRANT SELECT ON items, asked TO knn_batch_reader;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
-- rows that the policy hides never reach a function that would tell of them
CREATE FUNCTION tells(id integer) RETURNS boolean LANGUAGE plpgsql STABLE COST 0.1 AS $$
BEGIN
	IF id % 2 = 0 THEN RAISE WARNING 'row %', id; END IF;
	RETURN id % 20 = 1;
END $$;
CREATE POLICY odd ON items FOR SELECT TO knn_batch_reader USING (id % 2 = 1);
SET ROLE knn_batch_reader;
SELECT q.id, array_agg(n.id ORDER BY n.d, n.id) FROM asked q CROSS JOIN LATERAL (SELECT id, i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT 3) n WHERE q.v IS NOT NULL GROUP BY q.id ORDER BY q.id;
SELECT filtered_ahead(joined_rows('id % 20 < 10'));
SELECT same_rows(joined_rows('id % 20 < 10'));
SELECT filtered_ahead(joined_rows('tells(id)'));
SELECT same_rows(joined_rows('tells(id)'));
RESET ROLE;
DROP FUNCTION tells(integer);
DROP FUNCTION filtered_ahead(text), joined_rows(text, text), same_rows(text);
DROP FUNCTION counts(text);
DROP TABLE items, asked;
DROP ROLE knn_batch_reader;
