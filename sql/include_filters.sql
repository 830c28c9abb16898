-- Index-only scans of indexes that have columns to filter by too
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TYPE mood AS ENUM ('sad', 'calm', 'happy');
CREATE TABLE items (id integer, v vector(4), tenant integer, big bigint, m mood, day date, price numeric, name text, note text);
SELECT setseed(0.5);
INSERT INTO items SELECT i, CASE WHEN i % 70 > 0 THEN ARRAY[random(), random(), random(), i % 5]::vector END, CASE WHEN i % 90 > 0 THEN i % 12 END,
	CASE i % 10 WHEN 0 THEN 9223372036854775807 WHEN 2 THEN 9223372036854775806 ELSE i % 50 END, (enum_range(NULL::mood))[1 + i / 7 % 3], date '2025-01-01' + i % 365, i % 90, 'name ' || i % 7,
	CASE WHEN i % 4 > 0 THEN 'note ' || i END FROM generate_series(1, 4000) i;
CREATE INDEX items_v ON items USING exact (tenant, v, big, m, day, price, name) INCLUDE (id, note, tenant, price);
VACUUM ANALYZE items;

-- The scan of a statement, its rows read from the table, and whether its rows are those without the index
CREATE FUNCTION scanned(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found text;
	expected text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || statement LOOP
		IF line ~ 'Knn(Filter|Batch)|Index( Only)? Scan|Seq Scan|Index Cond|Filter: |Heap Fetches|Recheck' THEN
			RETURN NEXT regexp_replace(regexp_replace(regexp_replace(line, '^[ >-]+', ''), ' \(actual.*', ''), '\(InitPlan \d+\)\.col1|\$\d+', '$n');
		END IF;
	END LOOP;
	EXECUTE 'SELECT string_agg(s::text, '' '') FROM (' || statement || ') s' INTO found;
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
	EXECUTE 'SELECT string_agg(s::text, '' '') FROM (' || statement || ') s' INTO expected;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
	RETURN NEXT format('%s rows, the same: %s', (SELECT count(*) FROM regexp_matches(found, '\)( |$)', 'g')), found IS NOT DISTINCT FROM expected);
END $$;
SELECT scanned('SELECT id, note FROM items WHERE tenant = 7 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 20');
SELECT scanned('SELECT tenant, price, v <-> ''[.5,.5,.5,3]'' AS d FROM items WHERE tenant IN (7, 8, NULL) AND day BETWEEN ''2025-03-01'' AND ''2025-06-01'' ORDER BY d LIMIT 40');
SELECT scanned('SELECT id FROM items WHERE m > ''sad'' AND tenant IS NULL ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 40');
SELECT scanned('SELECT id, (SELECT 3) + tenant FROM items WHERE tenant = (SELECT 4) AND big < 20 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 10');
-- rows that are checked again are read from the table: the two largest bigints share a code
SELECT scanned('SELECT id, tenant FROM items WHERE tenant = 4 AND big > 9223372036854775806 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 50');
-- conditions above the scan, on included columns
SELECT scanned('SELECT id FROM items WHERE tenant = 7 AND note LIKE ''%7'' ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
SELECT scanned('SELECT id FROM items WHERE tenant = 7 AND tenant + id > 1000 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
-- columns that are not included, conditions whose codes do not tell, and the vector itself: by the table
SELECT scanned('SELECT id, big FROM items WHERE tenant = 7 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
SELECT scanned('SELECT id FROM items WHERE tenant = 7 AND day + 1 > ''2025-05-01'' ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
SELECT scanned('SELECT id FROM items WHERE name = ''name 3'' ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
SELECT scanned('SELECT id FROM items WHERE tenant = 7 AND price < 40 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
SELECT scanned('SELECT id FROM items WHERE tenant = 7 AND v IS NOT NULL ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 7');
-- rows without a place
SELECT scanned('SELECT id, tenant FROM items WHERE id % 70 = 0 AND tenant < 9 ORDER BY v <-> ''[.5,.5,.5,3]'', id LIMIT 3');
SELECT scanned('SELECT count(*), count(d) FROM (SELECT id, v <-> ''[.5,.5,.5,3]'' AS d FROM items WHERE tenant = 2 ORDER BY d LIMIT 1000) s');
-- a NULL query
SELECT count(*), count(d) FROM (SELECT id, v <-> NULL AS d FROM items WHERE tenant = 2 ORDER BY d LIMIT 1000) s;
-- in batches
CREATE TABLE queries AS SELECT id, v AS q, tenant FROM items WHERE id % 40 = 1;
ANALYZE queries;
SELECT scanned('SELECT q.id, i.id, i.tenant FROM queries q CROSS JOIN LATERAL (SELECT id, tenant FROM items WHERE tenant = q.tenant ORDER BY v <-> q.q LIMIT 3) i');
-- inserted, changed and deleted rows, and a merge
INSERT INTO items SELECT i, ARRAY[random(), random(), random(), i % 5]::vector, i % 12, i, 'calm', '2025-02-02', i % 90, 'late', 'late ' || i FROM generate_series(4001, 4100) i;
UPDATE items SET note = 'changed' WHERE id % 31 = 0;
UPDATE items SET tenant = 7 WHERE id % 33 = 0;
DELETE FROM items WHERE id % 29 = 0;
SELECT scanned('SELECT id, note, tenant FROM items WHERE tenant = 7 AND m >= ''calm'' ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 60');
VACUUM items;
SELECT scanned('SELECT id, note, tenant FROM items WHERE tenant = 7 AND m >= ''calm'' ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 60');
CALL pgwarp_merge('items_v');
SELECT scanned('SELECT id, note, tenant FROM items WHERE tenant = 7 AND m >= ''calm'' ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 60');
SELECT live_rows > 3900 FROM pgwarp_check('items_v', true);
-- expressions, and an approximate method
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact ((tenant / 2), v, (id % 7)) INCLUDE (id, tenant);
VACUUM ANALYZE items;
SELECT scanned('SELECT tenant / 2, id % 7 FROM items WHERE tenant / 2 = 3 AND id % 7 > 3 ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 5');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING ivfadc ((tenant / 2), v, (note IS NULL)) INCLUDE (id) WITH (lists = 10);
VACUUM ANALYZE items;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE tenant / 2 = 3 AND note IS NULL ORDER BY v <-> '[.5,.5,.5,3]' LIMIT 5;
SELECT count(*), bool_and(i.tenant / 2 = 3) FROM (SELECT id FROM items WHERE tenant / 2 = 3 ORDER BY v <-> '[.5,.5,.5,3]' LIMIT 50) s JOIN items i USING (id);
-- row security
CREATE ROLE include_reader;
GRANT SELECT ON items TO include_reader;
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact (v, tenant) INCLUDE (id);
VACUUM items;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON items USING (tenant = current_setting('include.tenant')::integer);
CREATE FUNCTION tells(integer) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'seen %', $1 % 12; RETURN true; END $$;
SET include.tenant = '5';
SET ROLE include_reader;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE tells(id) ORDER BY v <-> '[.5,.5,.5,3]' LIMIT 3;
SELECT id % 12 AS tenant FROM items WHERE tells(id) AND id % 33 > 0 ORDER BY v <-> '[.5,.5,.5,3]' LIMIT 3;
RESET ROLE;
DROP TABLE items, queries;
DROP FUNCTION scanned, tells;
DROP TYPE mood;
DROP ROLE include_reader;
