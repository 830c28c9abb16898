-- Searches among the rows of other indexes' bitmaps in larger plans: lateral joins and sub-selects, prepared statements, cursors,
-- partitions, index-only scans, changes, row-level security
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET enable_memoize = off;
SET enable_sort = off;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, n integer, tags integer[], v vector(3), note text);
INSERT INTO items SELECT i, i % 100, ARRAY[i % 7, 100 + i % 50], CASE WHEN i % 90 > 0 THEN ARRAY[i % 10, i % 37, i % 101]::vector END, 'note ' || i FROM generate_series(1, 4000) i;
CREATE INDEX items_n ON items (n);
CREATE INDEX items_tags ON items USING gin (tags);
CREATE INDEX items_v ON items USING exact (v) INCLUDE (id, n);
VACUUM ANALYZE items;
CREATE FUNCTION nodes(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		IF line ~ 'Scan|Knn|Cond|Filter|Bitmap|Sort|Append|LockRows|Loop' THEN RETURN NEXT line; END IF;
	END LOOP;
END $$;
-- what was done; the rows of a bitmap that fail
CREATE FUNCTION told(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
		IF line ~ 'Bitmap|Knn|Removed' THEN RETURN NEXT regexp_replace(line, '\.00', '', 'g'); END IF;
	END LOOP;
END $$;
SELECT told($$SELECT note FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 3$$);
SELECT told($$SELECT note FROM items WHERE n = 7 AND id % 40 = 7 ORDER BY v <-> '[1,2,3]' LIMIT 3$$);
SELECT told($$SELECT note FROM items WHERE n = 700 ORDER BY v <-> '[1,2,3]' LIMIT 3$$);
SELECT note FROM items WHERE n = 7 AND id % 40 = 7 ORDER BY v <-> '[1,2,3]' LIMIT 3;
-- rows without a vector come last
SELECT id, v FROM items WHERE n = 10 AND id < 1000 ORDER BY v <-> '[1,2,3]' OFFSET 7;
SELECT id, v FROM items WHERE n = 10 AND id < 1000 AND v IS NOT NULL ORDER BY v <-> '[1,2,3]' OFFSET 7;
SELECT count(*), count(v) FROM (SELECT v FROM items WHERE n = 10 ORDER BY v <-> NULL::vector LIMIT 100) s;
-- within a distance
SELECT nodes($$SELECT id FROM items WHERE n = 10 AND v <-> '[1,2,3]' < 30 ORDER BY v <-> '[1,2,3]' LIMIT 100$$);
SELECT id FROM items WHERE n = 10 AND v <-> '[1,2,3]' < 30 ORDER BY v <-> '[1,2,3]' LIMIT 100;
-- index-only
SELECT nodes($$SELECT id FROM items WHERE tags @> '{3,117}' ORDER BY v <-> '[1,2,3]' LIMIT 3$$);
SELECT nodes($$SELECT id FROM items WHERE n = 10 ORDER BY v <-> '[1,2,3]' LIMIT 3$$);
SELECT id FROM items WHERE n = 10 ORDER BY v <-> '[1,2,3]' LIMIT 3;
SET enable_indexonlyscan = off;
SELECT id FROM items WHERE n = 10 ORDER BY v <-> '[1,2,3]' LIMIT 3;
RESET enable_indexonlyscan;

-- a bitmap for each outer row, and one for all
CREATE TABLE queries (id integer, n integer, q vector(3));
INSERT INTO queries SELECT i, i * 10 % 100, ARRAY[i, i, i]::vector FROM generate_series(1, 8) i;
ANALYZE queries;
SELECT nodes('SELECT q.id, i.note FROM queries q CROSS JOIN LATERAL (SELECT note FROM items WHERE n = q.n AND tags && ''{3}'' ORDER BY v <-> q.q LIMIT 2) i');
SELECT q.id, i.note FROM queries q CROSS JOIN LATERAL (SELECT note FROM items WHERE n = q.n AND tags && '{3}' ORDER BY v <-> q.q LIMIT 2) i;
SELECT told('SELECT q.id, i.note FROM queries q CROSS JOIN LATERAL (SELECT note FROM items WHERE n = 7 AND tags && ''{3}'' ORDER BY v <-> q.q LIMIT 2) i');
-- of many bitmaps the largest, not the last
SELECT told('SELECT q.m, i.note FROM (VALUES (7), (700)) q (m) CROSS JOIN LATERAL (SELECT note FROM items WHERE n = q.m ORDER BY v <-> ''[1,2,3]'' LIMIT 2) i');
SELECT q.id, i.note FROM queries q CROSS JOIN LATERAL (SELECT note FROM items WHERE n = 7 AND tags && '{3}' ORDER BY v <-> q.q LIMIT 2) i;
SELECT id, (SELECT i.note FROM items i WHERE i.n = q.n AND i.tags && '{3}' ORDER BY i.v <-> q.q LIMIT 1) FROM queries q;
-- the same by sorts
SET enable_indexscan = off; SET enable_sort = on;
SELECT q.id, i.note FROM queries q CROSS JOIN LATERAL (SELECT note FROM items WHERE n = q.n AND tags && '{3}' ORDER BY v <-> q.q LIMIT 2) i;
SELECT id, (SELECT i.note FROM items i WHERE i.n = q.n AND i.tags && '{3}' ORDER BY i.v <-> q.q LIMIT 1) FROM queries q;
SET enable_indexscan = on; SET enable_sort = off;

-- prepared, with a plan for all parameters
SET plan_cache_mode = force_generic_plan;
PREPARE nearest(integer, integer, vector) AS SELECT note FROM items WHERE n = $1 AND id > $2 ORDER BY v <-> $3 LIMIT 2;
SELECT nodes('EXECUTE nearest(7, 0, ''[1,2,3]'')');
EXECUTE nearest(7, 0, '[1,2,3]');
EXECUTE nearest(8, 2000, '[1,2,3]');
EXECUTE nearest(NULL, 0, '[1,2,3]');
EXECUTE nearest(7, 0, NULL);
RESET plan_cache_mode;
DEALLOCATE nearest;

-- cursors side by side
BEGIN;
DECLARE one CURSOR FOR SELECT id FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 20;
DECLARE other SCROLL CURSOR FOR SELECT id FROM items WHERE n = 8 ORDER BY v <-> '[1,2,3]' LIMIT 20;
FETCH 2 FROM one;
FETCH 2 FROM other;
FETCH 2 FROM one;
FETCH BACKWARD 1 FROM other;
FETCH 2 FROM other;
COMMIT;

-- changes of the rows that are found
BEGIN;
SELECT nodes($$UPDATE items SET note = 'changed' WHERE id IN (SELECT id FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 2 FOR UPDATE)$$);
UPDATE items SET note = 'changed' WHERE id IN (SELECT id FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 2 FOR UPDATE);
SELECT id, note FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 3;
UPDATE items SET n = 7 WHERE id = 3999;
SELECT id FROM items WHERE n = 7 ORDER BY v <-> '[9,3,60]' LIMIT 3;
SAVEPOINT before;
DELETE FROM items WHERE n = 7 AND id < 3000;
SELECT id FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 3;
ROLLBACK TO before;
SELECT id FROM items WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 3;
ROLLBACK;

-- partitions: each with its bitmap
CREATE TABLE parts (id integer, n integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (2000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (2000) TO (5000);
INSERT INTO parts SELECT id, n, v FROM items;
CREATE INDEX ON parts (n);
CREATE INDEX ON parts USING graph (v);
ANALYZE parts;
SELECT nodes($$SELECT id FROM parts WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 4$$);
SELECT id FROM parts WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 4;
SET enable_indexscan = off; SET enable_sort = on;
SELECT id FROM parts WHERE n = 7 ORDER BY v <-> '[1,2,3]' LIMIT 4;
SET enable_indexscan = on; SET enable_sort = off;

-- a partial index of vectors knows a part of the rows
CREATE TABLE partly AS SELECT * FROM items;
CREATE INDEX partly_v ON partly USING exact (v) WHERE id < 2000;
CREATE INDEX partly_n ON partly (n);
ANALYZE partly;
SELECT nodes($$SELECT id FROM partly WHERE n = 7 AND id < 2000 ORDER BY v <-> '[1,2,3]' LIMIT 2$$);
SELECT id FROM partly WHERE n = 7 AND id < 2000 ORDER BY v <-> '[1,2,3]' LIMIT 2;

-- row-level security: a bitmap of a condition is made only where PostgreSQL would scan by it, and no function of the user sees a row
-- that the policy hides
CREATE ROLE bitmap_eve;
CREATE FUNCTION leaks(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'leaked %', $1; RETURN true; END $$;
GRANT SELECT ON items TO bitmap_eve;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON items USING (n = 8);
SET ROLE bitmap_eve;
SELECT nodes($$SELECT note FROM items WHERE leaks(note) ORDER BY v <-> '[1,2,3]' LIMIT 2$$);
SELECT note FROM items WHERE leaks(note) ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT nodes($$SELECT note FROM items WHERE n BETWEEN 7 AND 8 ORDER BY v <-> '[1,2,3]' LIMIT 2$$);
SELECT nodes($$SELECT note FROM items WHERE tags @> '{3,117}' ORDER BY v <-> '[1,2,3]' LIMIT 2$$);
RESET ROLE;
-- a policy that is not leakproof itself, with an index on its column
ALTER POLICY own ON items USING (tags @> '{3}');
SET ROLE bitmap_eve;
SELECT nodes($$SELECT note FROM items WHERE tags @> '{117}' AND leaks(note) ORDER BY v <-> '[1,2,3]' LIMIT 2$$);
SELECT note FROM items WHERE tags @> '{117}' AND leaks(note) ORDER BY v <-> '[1,2,3]' LIMIT 2;
RESET ROLE;
DROP TABLE items, queries, parts, partly;
DROP FUNCTION nodes, told, leaks;
DROP ROLE bitmap_eve;
