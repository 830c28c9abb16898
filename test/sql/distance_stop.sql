SET client_min_messages = warning;
SET jit = off;
CREATE TABLE items (id integer, kind integer, v vector(3));
INSERT INTO items SELECT i, i % 5, ARRAY[i % 17, i % 101, i]::vector FROM generate_series(1, 5000) i;
CREATE INDEX items_v ON items USING exact (v);
VACUUM ANALYZE items;

EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 0 ORDER BY v <-> '[1,2,3]' LIMIT 2;
-- at the bound
SELECT id FROM items WHERE v <-> '[2,2,2]' <= 0 ORDER BY v <-> '[2,2,2]' LIMIT 2;
SELECT id FROM items WHERE v <-> '[2,2,2]' < 0 ORDER BY v <-> '[2,2,2]' LIMIT 2;
-- the other way round, with filters that stay
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE 5 >= v <-> '[1,2,3]' AND kind = 1 ORDER BY v <-> '[1,2,3]' LIMIT 100;
SELECT id FROM items WHERE 20 >= v <-> '[1,2,3]' AND kind = 1 ORDER BY v <-> '[1,2,3]' LIMIT 100;
-- few rows are looked at
CREATE FUNCTION rows_scanned(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Index Scan|DistanceStop' THEN RETURN NEXT trim(regexp_replace(line, '\.00', '')); END IF;
	END LOOP;
END $$;
SELECT rows_scanned($$SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 100$$);
-- another distance, another direction, a bound that changes: a filter
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,4]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' > 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < id ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < random() ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE within(vector, float8) AS SELECT array_agg(id) FROM (SELECT id FROM items WHERE v <-> $1 < $2 ORDER BY v <-> $1 LIMIT 100) s;
EXPLAIN (COSTS OFF) EXECUTE within('[1,2,3]', 5);
EXECUTE within('[1,2,3]', 5);
EXECUTE within('[1,2,3]', NULL);
EXECUTE within(NULL, 5);
RESET plan_cache_mode;
-- in a join, in batches
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM (SELECT * FROM items WHERE id < 4) q CROSS JOIN LATERAL (SELECT i.id FROM items i WHERE i.v <-> q.v < 9 ORDER BY i.v <-> q.v LIMIT 100) n;
SELECT q.id, array_agg(n.id ORDER BY n.id) FROM (SELECT * FROM items WHERE id < 4) q
	CROSS JOIN LATERAL (SELECT i.id FROM items i WHERE i.v <-> q.v < 9 ORDER BY i.v <-> q.v LIMIT 100) n GROUP BY q.id ORDER BY q.id;
-- a bound of another width
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < 5::real ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- where rows may come late, farther ones are only left out
SET pgwarp.iterative = relaxed;
SELECT array_agg(id) FROM (SELECT id FROM items WHERE v <-> '[1,2,3]' < 5::real ORDER BY v <-> '[1,2,3]' LIMIT 10) s;
RESET pgwarp.iterative;
-- a changed row is compared again
BEGIN;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10 FOR UPDATE;
ROLLBACK;
DROP TABLE items;

-- partitions
CREATE TABLE parts (id integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (2500);
CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (2500) TO (10000);
INSERT INTO parts SELECT i, ARRAY[i % 17, i % 101, i % 1000]::vector FROM generate_series(1, 5000) i;
CREATE INDEX ON parts USING exact (v);
VACUUM ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE v <-> '[1,2,3]' < 6 ORDER BY v <-> '[1,2,3]' LIMIT 100;
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM parts WHERE v <-> '[1,2,3]' < 6 ORDER BY v <-> '[1,2,3]' LIMIT 100) s;
SET enable_indexscan = off;
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM parts WHERE v <-> '[1,2,3]' < 6 ORDER BY v <-> '[1,2,3]' LIMIT 100) s;
DROP TABLE parts;
DROP FUNCTION rows_scanned(text);
