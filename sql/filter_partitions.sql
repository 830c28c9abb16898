-- Conditions on columns of the indexes of partitions: one request searches all partitions among the rows that pass
SET client_min_messages = warning;
SET seq_page_cost = 1000;
SET jit = off;
SET pgwarp.verify_results = on;
CREATE TABLE parts (id integer, tenant integer, name text, v vector(3)) PARTITION BY RANGE (id);
DO $$ BEGIN FOR i IN 0..7 LOOP EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)', i, i * 500, i * 500 + 500); END LOOP; END $$;
INSERT INTO parts SELECT i, abs(hashint4(i)) % 6, CASE WHEN i % 10 > 0 THEN 'name ' || i % 4 END, CASE WHEN i % 50 > 0 THEN ARRAY[i % 17, i % 101, i / 500 * 100]::vector END FROM generate_series(0, 3999) i;
CREATE INDEX parts_v ON parts USING exact (v, tenant, name);
VACUUM ANALYZE parts;

-- The number of requests and of answers from them, and whether the distances are those of a sort
CREATE FUNCTION searched(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	got float8[];
	truth float8[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
		IF line ~ 'KnnPartitions|KnnBatch|Requests|Searches:|Cache Hits|Rows Passing' AND line !~ 'Index Searches' THEN
			RETURN NEXT regexp_replace(regexp_replace(trim(line), ' \(actual.*', ''), 'Keys: \d+', 'Keys: some');
		END IF;
	END LOOP;
	EXECUTE 'SELECT array_agg(d) FROM (' || statement || ') s' INTO got;
	PERFORM set_config('enable_indexscan', 'off', true);
	EXECUTE 'SELECT array_agg(d) FROM (' || statement || ') s' INTO truth;
	PERFORM set_config('enable_indexscan', 'on', true);
	RETURN NEXT format('%s rows, the same: %s', cardinality(got), got IS NOT DISTINCT FROM truth);
END $$;
-- the first search loads the indexes
SELECT count(*) FROM (SELECT id FROM parts ORDER BY v <-> '[5,6,7]') s;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE tenant = 3 AND id < 1000 ORDER BY v <-> '[5,6,7]' LIMIT 10;
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = 3 ORDER BY 1 LIMIT 10$$);
SELECT searched($$SELECT v <-> '[5,6,350]' AS d FROM parts WHERE tenant IN (1, 5) AND name = 'name 2' ORDER BY 1 LIMIT 40$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = 3 AND v IS NOT NULL ORDER BY 1 LIMIT 1500$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = 3 AND name IS NULL ORDER BY 1 LIMIT 1000$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = (SELECT 2) AND id % 3 = 1 ORDER BY 1 LIMIT 20$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = 9 ORDER BY 1 LIMIT 10$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = NULL::integer + 1 ORDER BY 1 LIMIT 10$$);
-- partitions that are too far do not begin
SELECT count(*) FROM (SELECT v <-> '[5,6,0]' AS d FROM parts WHERE tenant = 3 ORDER BY 1 LIMIT 10) s;
CREATE FUNCTION begun(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || statement INTO plan;
	RETURN (SELECT count(*) FROM regexp_matches(plan::text, '"Node Type": "Index Scan"[^{}]*"Actual Loops": 1', 'g'));
END $$;
SELECT begun($$SELECT v <-> '[5,6,0]' AS d FROM parts WHERE tenant = 3 ORDER BY 1 LIMIT 3$$);
-- delta rows, deleted rows, and a plan for several tenants
INSERT INTO parts SELECT i, abs(hashint4(i)) % 6, 'late', ARRAY[i % 3, i % 5, 7]::vector FROM generate_series(0, 3999, 100) i;
DELETE FROM parts WHERE id % 30 = 3;
SET plan_cache_mode = force_generic_plan;
PREPARE of_tenant(integer) AS SELECT array_agg(d) FROM (SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = $1 ORDER BY 1 LIMIT 5) s;
EXECUTE of_tenant(0);
EXECUTE of_tenant(4);
EXECUTE of_tenant(NULL);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant IN (0, 4) ORDER BY 1 LIMIT 30$$);
-- searches of each of some rows, in batches, with a predicate of each in all partitions
CREATE TABLE queries AS SELECT id, CASE WHEN id % 77 > 0 THEN tenant END AS tenant, 'name ' || id % 5 AS name, v FROM parts WHERE id % 11 = 3;
ANALYZE queries;
SELECT searched($$SELECT n.d FROM queries q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM parts i WHERE i.tenant = q.tenant ORDER BY 1 LIMIT 3) n ORDER BY q.id, n.d$$);
SELECT searched($$SELECT n.d FROM queries q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM parts i WHERE i.tenant IN (q.tenant, 3) AND i.name = q.name AND i.id % 3 = 0 ORDER BY 1 LIMIT 3) n ORDER BY q.id, n.d$$);
SELECT searched($$SELECT n.d FROM queries q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM parts i WHERE i.tenant = length(repeat('x', 4)) + length(current_user) - length(current_user) ORDER BY 1 LIMIT 3) n ORDER BY q.id, n.d$$);
SELECT searched($$SELECT (SELECT i.v <-> q.v FROM parts i WHERE i.tenant = q.tenant ORDER BY i.v <-> q.v LIMIT 1) AS d FROM queries q ORDER BY q.id$$);
SELECT searched($$SELECT n.d FROM (SELECT * FROM parts WHERE id IN (7, 1008, 2009)) q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM parts i WHERE i.tenant = q.tenant ORDER BY 1 LIMIT 3) n ORDER BY q.id, n.d$$);
-- unions of tables whose indexes have their columns at the same places, and at others
CREATE TABLE others (a integer, b integer, v vector(3));
INSERT INTO others SELECT i % 4, i % 6, ARRAY[i % 13, i % 97, 7]::vector FROM generate_series(1, 3000) i;
CREATE INDEX others_v ON others USING exact (v, a, b);
CREATE TABLE more (b integer, a integer, v vector(3));
INSERT INTO more SELECT b, a, v FROM others;
CREATE INDEX more_v ON more USING exact (v, b, a);
CREATE TABLE turned AS SELECT * FROM more;
CREATE INDEX turned_v ON turned USING exact (b, a, v);
VACUUM ANALYZE others, more, turned;
SELECT count(*) FROM (SELECT a FROM others ORDER BY v <-> '[5,6,7]') s;
SELECT count(*) FROM (SELECT a FROM more ORDER BY v <-> '[5,6,7]') s;
SELECT count(*) FROM (SELECT a FROM turned ORDER BY v <-> '[5,6,7]') s;
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM (SELECT a AS k, v FROM others UNION ALL SELECT b, v FROM more) s WHERE k = 1 ORDER BY 1 LIMIT 60$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM (SELECT a AS k, v FROM others UNION ALL SELECT a, v FROM more) s WHERE k = 1 ORDER BY 1 LIMIT 60$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM (SELECT a AS k, v FROM others UNION ALL SELECT a, v FROM more UNION ALL SELECT b, v FROM more) s WHERE k = 1 ORDER BY 1 LIMIT 60$$);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM (SELECT a AS k, v FROM others UNION ALL SELECT a, v FROM turned) s WHERE k = 1 ORDER BY 1 LIMIT 60$$);
-- and one that has no column for the condition
DROP INDEX more_v;
CREATE INDEX more_v ON more USING exact (v);
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM (SELECT a AS k, v FROM others UNION ALL SELECT a, v FROM more) s WHERE k = 1 ORDER BY 1 LIMIT 60$$);
-- an approximate method
DROP INDEX parts_v;
CREATE INDEX parts_v ON parts USING graph (v, tenant);
SELECT count(*) FROM (SELECT id FROM parts ORDER BY v <-> '[5,6,7]') s;
SELECT searched($$SELECT v <-> '[5,6,7]' AS d FROM parts WHERE tenant = 3 ORDER BY 1 LIMIT 10$$);
DROP TABLE parts, queries, others, more, turned;
DROP FUNCTION searched, begun;
