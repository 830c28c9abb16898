-- a distance that a statement only orders by is not computed out of the rows
CREATE TABLE items (id integer, v vector(3));
INSERT INTO items SELECT i, ARRAY[i, i % 7, 1]::vector FROM generate_series(1, 500) i;
CREATE INDEX items_v ON items USING exact (v);
VACUUM ANALYZE items;
SET enable_seqscan = off;
-- a leader that only passes rows on, which a debugging setting adds, would read the distance
DO $$ BEGIN PERFORM set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query'); END $$;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM items ORDER BY v <-> '[3,1,2]' LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM items ORDER BY v <-> '[3,1,2]';
SELECT id FROM items ORDER BY v <-> '[3,1,2]' LIMIT 3;
SELECT * FROM items ORDER BY v <-> '[3,1,2]' OFFSET 1 LIMIT 2;
-- a parameter, and a plan for all of its values
SET plan_cache_mode = force_generic_plan;
PREPARE nearest(vector) AS SELECT id FROM items ORDER BY v <-> $1 LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE nearest('[3,1,2]');
EXECUTE nearest('[3,1,2]');
EXECUTE nearest('[490,1,2]');
-- rows that a statement makes a table of, and a cursor's
CREATE TABLE found AS SELECT id FROM items ORDER BY v <-> '[3,1,2]' LIMIT 3;
SELECT * FROM found;
BEGIN;
DECLARE nearest CURSOR FOR SELECT id FROM items ORDER BY v <-> '[490,1,2]';
FETCH 3 FROM nearest;
COMMIT;
-- it is computed where something reads it: the statement's rows, WITH TIES, a lock that evaluates the plan again, a further sort key
EXPLAIN (VERBOSE, COSTS OFF) SELECT id, v <-> '[3,1,2]' AS d FROM items ORDER BY d LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM items ORDER BY v <-> '[3,1,2]' FETCH FIRST 3 ROWS WITH TIES;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM items ORDER BY v <-> '[3,1,2]' LIMIT 3 FOR UPDATE;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM items ORDER BY v <-> '[3,1,2]', id LIMIT 3;
SELECT id, v <-> '[3,1,2]' AS d FROM items ORDER BY d LIMIT 3;
SELECT id FROM items ORDER BY v <-> '[3,1,2]' FETCH FIRST 3 ROWS WITH TIES;
SELECT id FROM items ORDER BY v <-> '[3,1,2]' LIMIT 3 FOR UPDATE;
DROP TABLE items, found;
