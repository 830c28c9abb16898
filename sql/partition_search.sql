-- ORDER BY ... LIMIT over a partitioned table: the scans of all partitions are searched for by one request
SET seq_page_cost = 1000;
SET jit = off;
SET pgwarp.verify_results = on;
CREATE TABLE parts (id integer, kind integer, v vector(4)) PARTITION BY LIST (kind);
DO $$ BEGIN FOR i IN 1..12 LOOP EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%1$s)', i); END LOOP; END $$;
INSERT INTO parts SELECT i, 1 + i % 12, ARRAY[i % 17, i % 29, i % 37, i % 11]::vector(4) FROM generate_series(1, 3000) i;
CREATE INDEX parts_v ON parts USING exact (v);
VACUUM ANALYZE parts;

-- whether a statement's distances are those of a sort
CREATE FUNCTION same_answer(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	got float8[];
	truth float8[];
BEGIN
	EXECUTE 'SELECT array_agg(d) FROM (' || statement || ') s' INTO got;
	SET LOCAL enable_indexscan = off;
	EXECUTE 'SELECT array_agg(d) FROM (' || statement || ') s' INTO truth;
	SET LOCAL enable_indexscan = on;
	RETURN got = truth AND cardinality(got) > 0;
END $$;
-- what EXPLAIN ANALYZE says of requests
CREATE FUNCTION requests(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
		IF line ~ 'KnnPartitions|KnnBatch|Requests|Searches|Cache Hits|Subplans Removed|Rows Removed' AND line !~ 'Index Searches' THEN
			RETURN NEXT regexp_replace(trim(line), ' \(actual.*', '');
		END IF;
	END LOOP;
END $$;

-- the first searches load the indexes, one by one
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts ORDER BY 1 LIMIT 10$$);
SELECT requests($$SELECT id FROM parts ORDER BY v <-> '[5,6,7,8]' LIMIT 10$$);
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts ORDER BY 1 LIMIT 10$$);
SELECT same_answer($$SELECT v <-> '[1,0,0,1]' AS d FROM parts ORDER BY 1 LIMIT 700 OFFSET 30$$);
-- answers that don't fit into work_mem together: the scans go on
SET work_mem = '64kB';
SELECT same_answer($$SELECT v <-> '[1,0,0,1]' AS d FROM parts ORDER BY 1 LIMIT 1500$$);
SELECT requests($$SELECT id FROM parts ORDER BY v <-> '[1,0,0,1]' LIMIT 1500$$);
RESET work_mem;
SELECT max_batch_width, searches > 2 FROM pgwarp_status WHERE index = 'parts_3_v_idx'::regclass;

-- filters, pruning at plan time and at run time
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE id % 7 = 3 ORDER BY 1 LIMIT 10$$);
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE id % 500 = 3 ORDER BY 1 LIMIT 5$$);
SELECT requests($$SELECT id FROM parts WHERE kind IN (2, 3, 4) ORDER BY v <-> '[5,6,7,8]' LIMIT 10$$);
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE kind IN (2, 3, 4) ORDER BY 1 LIMIT 10$$);
SELECT requests($$SELECT id FROM parts WHERE kind < (SELECT 5) ORDER BY v <-> '[5,6,7,8]' LIMIT 10$$);
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE kind < (SELECT 5) ORDER BY 1 LIMIT 10$$);
SELECT id FROM parts WHERE kind < (SELECT 0) ORDER BY v <-> '[5,6,7,8]' LIMIT 10;
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE v <-> '[5,6,7,8]' < 5 ORDER BY 1 LIMIT 40$$);

-- scans begin where their answers come near enough: the first, and those that rows are returned of
CREATE FUNCTION begun(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || statement INTO plan;
	RETURN (SELECT count(*) FROM json_array_elements(plan #> '{0,Plan,Plans,0,Plans,0,Plans}') s
		WHERE (s ->> 'Actual Loops')::int > 0);
END $$;
CREATE TABLE far (id integer, kind integer, v vector(2)) PARTITION BY LIST (kind);
CREATE TABLE far_1 PARTITION OF far FOR VALUES IN (1);
CREATE TABLE far_2 PARTITION OF far FOR VALUES IN (2);
CREATE TABLE far_3 PARTITION OF far FOR VALUES IN (3);
CREATE TABLE far_4 PARTITION OF far FOR VALUES IN (4);
CREATE TABLE far_5 PARTITION OF far FOR VALUES IN (5);
INSERT INTO far SELECT 100 * kind + i, kind, ARRAY[100 * kind + i, 0]::vector(2) FROM generate_series(1, 4) kind, generate_series(1, 50) i;
CREATE INDEX ON far USING exact (v);
SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 3;
SELECT begun($$SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 3$$);
SELECT begun($$SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 49$$);
SELECT begun($$SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 51$$);
SELECT begun($$SELECT id FROM far WHERE id % 100 = 7 ORDER BY v <-> '[320.2,0]' LIMIT 1$$);
SELECT begun($$SELECT id FROM far WHERE id % 100 = 7 ORDER BY v <-> '[320.2,0]' LIMIT 3$$);
SELECT begun($$SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 1000$$);
SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 3 OFFSET 198;
-- the nearest rows are dead, or of this transaction only
BEGIN;
DELETE FROM far WHERE kind = 3 AND id <> 350;
SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 3;
SELECT same_answer($$SELECT v <-> '[320.2,0]' AS d FROM far ORDER BY 1 LIMIT 120$$);
INSERT INTO far VALUES (999, 5, '[320,0]');
SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 3;
ROLLBACK;
-- a scan that begins late sees what its statement saw
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM far ORDER BY v <-> '[320.2,0]' LIMIT 60;
MOVE 48 FROM c;
DELETE FROM far WHERE kind = 4;
INSERT INTO far VALUES (998, 4, '[400,0]');
FETCH 4 FROM c;
ROLLBACK;
-- random ones: ties, filters, limits, run-time pruning, rescans
DO $$
DECLARE
	statement text;
BEGIN
	FOR i IN 1..40 LOOP
		statement := format('SELECT v <-> %L AS d FROM %s WHERE kind < (SELECT %s) AND id %% %s <> 0 ORDER BY 1 LIMIT %s OFFSET %s',
			CASE WHEN i % 2 = 0 THEN ARRAY[i % 17, i * 7 % 29, i % 37, i % 11]::vector(4)::text ELSE ARRAY[i * 53 % 500, 0]::vector(2)::text END,
			CASE WHEN i % 2 = 0 THEN 'parts' ELSE 'far' END, 2 + i % 12, 2 + i % 3, 1 + i * i % 90, i % 4);
		IF NOT same_answer(statement) THEN
			RAISE EXCEPTION 'another answer: %', statement;
		END IF;
		statement := format('SELECT n.d FROM generate_series(%s, %s) g, LATERAL (SELECT v <-> ARRAY[g * 37, 0]::vector(2) AS d FROM far WHERE kind <> g %% 5 ORDER BY 1 LIMIT %s) n ORDER BY g, 1',
			i, i + 4, 1 + i % 60);
		IF i % 10 = 0 AND NOT same_answer(statement) THEN
			RAISE EXCEPTION 'another answer: %', statement;
		END IF;
	END LOOP;
END $$;
DROP TABLE far;

-- prepared statements, generic plans
SET plan_cache_mode = force_generic_plan;
PREPARE nearest_distance(vector, int) AS SELECT round((v <-> $1)::numeric, 3) AS d FROM parts WHERE kind <= $2 ORDER BY v <-> $1 LIMIT 3;
EXECUTE nearest_distance('[1,2,3,4]', 12);
EXECUTE nearest_distance('[1,2,3,4]', 2);
EXECUTE nearest_distance('[40,1,0,4]', 7);
SELECT requests($$EXECUTE nearest_distance('[40,1,0,4]', 7)$$);
EXECUTE nearest_distance(NULL, 2);
EXECUTE nearest_distance('[1,2,3]', 2);
RESET plan_cache_mode;

-- no LIMIT, another query for each outer row, cursors, locks
SELECT count(*), abs(sum(d) - (SELECT sum(v <-> '[1,2,3,4]') FROM parts)) < 1e-6 AS same FROM (SELECT v <-> '[1,2,3,4]' AS d FROM parts ORDER BY 1) s;
CREATE TABLE q AS SELECT i AS id, ARRAY[i, 2 * i, i, 3]::vector(4) AS v FROM generate_series(1, 20) i;
SET pgwarp.knn_batch = on;
SELECT requests($$SELECT * FROM q CROSS JOIN LATERAL (SELECT p.id FROM parts p ORDER BY p.v <-> q.v LIMIT 3) n$$);
SELECT same_answer($$SELECT d FROM (SELECT q.id, n.d FROM q CROSS JOIN LATERAL (SELECT p.v <-> q.v AS d FROM parts p ORDER BY 1 LIMIT 3) n ORDER BY 1, 2) t$$);
SELECT same_answer($$SELECT (SELECT p.v <-> q.v FROM parts p ORDER BY 1 LIMIT 1) AS d FROM q ORDER BY q.id$$);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT round((v <-> '[5,6,7,8]')::numeric, 3) FROM parts ORDER BY v <-> '[5,6,7,8]' LIMIT 6;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
INSERT INTO parts VALUES (9001, 1, '[5,6,7,8]');
FETCH ALL FROM c;
SELECT id FROM parts ORDER BY v <-> '[5,6,7,8]' LIMIT 1 FOR UPDATE;
ROLLBACK;
SELECT id FROM parts WHERE id > 9000 ORDER BY v <-> '[5,6,7,8]' LIMIT 1;

-- rows inserted since and rows gone, partitions that are empty, detached, or without an index
INSERT INTO parts VALUES (9002, 5, '[5,6,7,8.5]');
SELECT id FROM parts ORDER BY v <-> '[5,6,7,8.5]' LIMIT 1;
SELECT requests($$SELECT id FROM parts ORDER BY v <-> '[5,6,7,8.5]' LIMIT 1$$);
DELETE FROM parts WHERE id = 9002;
SELECT same_answer($$SELECT v <-> '[5,6,7,8.5]' AS d FROM parts ORDER BY 1 LIMIT 10$$);
VACUUM parts;
SELECT same_answer($$SELECT v <-> '[5,6,7,8.5]' AS d FROM parts ORDER BY 1 LIMIT 10$$);
TRUNCATE parts_7;
SELECT same_answer($$SELECT v <-> '[5,6,7,8.5]' AS d FROM parts ORDER BY 1 LIMIT 10$$);
DROP INDEX parts_v;
CREATE INDEX ON parts_1 USING exact (v);
CREATE INDEX ON parts_2 USING exact (v);
CREATE INDEX ON parts_3 USING ivfadc (v) WITH (lists = 5);
CREATE INDEX ON parts_4 USING exact (v vector_l1_ops);
SET pgwarp.recall = 1;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE kind <= 4 ORDER BY v <-> '[5,6,7,8]' LIMIT 10;
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE kind <= 5 ORDER BY 1 LIMIT 10$$);
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE kind <= 5 ORDER BY 1 LIMIT 10$$);
SELECT requests($$SELECT id FROM parts WHERE kind <= 4 ORDER BY v <-> '[5,6,7,8]' LIMIT 10$$);
SET pgwarp.ivfadc_probes = 5;
SELECT requests($$SELECT id FROM parts WHERE kind <= 4 ORDER BY v <-> '[5,6,7,8]' LIMIT 10$$);
RESET pgwarp.ivfadc_probes;
RESET pgwarp.recall;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT same_answer($$SELECT v <-> '[5,6,7,8]' AS d FROM parts WHERE kind <= 3 ORDER BY 1 LIMIT 10$$);
SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND relation IN ('parts_1_v_idx'::regclass, 'parts_2_v_idx'::regclass, 'parts_3_v_idx'::regclass);
COMMIT;

-- of a partition without an index a LIMIT bounds the sort: only where it takes each row as it comes
CREATE TABLE half (id integer, kind integer, v vector(2)) PARTITION BY LIST (kind);
CREATE TABLE half_1 PARTITION OF half FOR VALUES IN (1);
CREATE TABLE half_2 PARTITION OF half FOR VALUES IN (2);
CREATE TABLE half_3 PARTITION OF half FOR VALUES IN (3);
INSERT INTO half SELECT 100 * kind + i, kind, ARRAY[100 * (3 - kind) + i / 2, 0]::vector(2) FROM generate_series(1, 3) kind, generate_series(1, 40) i;
CREATE INDEX ON half_1 USING exact (v);
CREATE INDEX ON half_2 USING exact (v);
ANALYZE half;
EXPLAIN (COSTS OFF) SELECT id FROM half ORDER BY v <-> '[0,0]' FETCH FIRST 2 ROWS WITH TIES;
SELECT v <-> '[0,0]' AS d FROM half ORDER BY v <-> '[0,0]' FETCH FIRST 2 ROWS WITH TIES;
SELECT count(*) FROM (SELECT v <-> '[0,0]' AS d FROM half ORDER BY v <-> '[0,0]' OFFSET 1 FETCH FIRST 41 ROWS WITH TIES) s;
-- rows that are gone when they are to be locked
BEGIN;
DECLARE d CURSOR FOR SELECT id % 100 / 2 AS place FROM half ORDER BY v <-> '[0,0]' LIMIT 3 FOR UPDATE SKIP LOCKED;
FETCH 1 FROM d;
DELETE FROM half WHERE id BETWEEN 302 AND 311;
FETCH ALL FROM d;
ROLLBACK;
-- rows that are filtered, multiplied or thrown together above the union
SELECT id FROM (SELECT id, v <-> '[0,0]' AS d FROM half ORDER BY v <-> '[0,0]' OFFSET 0) s WHERE id % 7 = 1 LIMIT 4;
SELECT count(*) FROM (SELECT id, generate_series(1, id % 2) FROM half ORDER BY v <-> '[0,0]' LIMIT 25) s;
SELECT count(*) FROM (SELECT DISTINCT v <-> '[0,0]' FROM half ORDER BY 1 LIMIT 25) s;
-- a sub-select in the target list has no LIMIT because its statement has one
SELECT o.id, cardinality(ARRAY(SELECT h.id FROM half h ORDER BY h.v <-> o.v)) FROM half o WHERE o.id % 5 = 1 ORDER BY o.v <-> '[0,0]' LIMIT 3;
SELECT (SELECT count(*) FROM (SELECT id FROM half ORDER BY v <-> '[0,0]') s) AS n FROM half ORDER BY v <-> '[0,0]' LIMIT 2;
-- another LIMIT in each rescan
SELECT n, array_agg(d ORDER BY d) FROM (VALUES (2), (5), (NULL), (0), (3)) l(n), LATERAL (SELECT v <-> '[0,0]' AS d FROM half WHERE id % 10 = 1 ORDER BY 1 LIMIT n) s GROUP BY n ORDER BY n;
SELECT id FROM half ORDER BY v <-> '[0,0]' LIMIT -1;
SELECT same_answer($$SELECT v <-> '[0,0]' AS d FROM half ORDER BY 1 LIMIT 50$$);
DROP TABLE half;

-- UNION ALL and inheritance: tables that have their columns at other places, or more of them
CREATE TABLE a (id integer, v vector(2));
CREATE TABLE b (gone integer, v vector(2), id integer, note text DEFAULT 'b');
ALTER TABLE b DROP COLUMN gone;
CREATE TABLE c (v vector(2), id integer);
INSERT INTO a SELECT i, ARRAY[i, 1]::vector(2) FROM generate_series(1, 100) i;
INSERT INTO b (id, v) SELECT 1000 + i, ARRAY[i, 3]::vector(2) FROM generate_series(1, 100) i;
INSERT INTO c SELECT ARRAY[i, 2]::vector(2), 2000 + i FROM generate_series(1, 100) i;
CREATE INDEX ON a USING exact (v);
CREATE INDEX ON b USING exact (v);
SELECT count(*) FROM (SELECT id FROM a ORDER BY v <-> '[1,1]' LIMIT 1) s, (SELECT id FROM b ORDER BY v <-> '[1,1]' LIMIT 1) t;
SELECT requests($$SELECT id FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b) s ORDER BY v <-> '[40.2,1]' LIMIT 4$$);
SELECT id FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b) s ORDER BY v <-> '[40.2,1]' LIMIT 4;
SELECT id, round((v <-> '[40.2,1]')::numeric, 3) AS d FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b UNION ALL SELECT id, v FROM c) s ORDER BY v <-> '[40.2,1]' LIMIT 5;
SELECT requests($$SELECT id, v <-> '[40.2,1]' AS d FROM a UNION ALL SELECT id, v <-> '[40.2,1]' FROM b ORDER BY d LIMIT 4$$);
SELECT id, round((v <-> '[40.2,1]')::numeric, 3) AS d FROM a WHERE id % 2 = 0 UNION ALL SELECT id, round((v <-> '[40.2,1]')::numeric, 3) FROM b ORDER BY d LIMIT 4;
-- by other distances: what one index answered says nothing of the other
SELECT same_answer($$SELECT v <-> '[90,1]' AS d FROM a UNION ALL SELECT v <-> '[3,3]' FROM b ORDER BY d LIMIT 6$$);
SELECT same_answer($$SELECT v <-> '[3,3]' AS d FROM a UNION ALL SELECT v <-> '[90,1]' FROM b ORDER BY d LIMIT 6$$);
CREATE INDEX ON b USING exact (v vector_l1_ops);
SELECT same_answer($$SELECT v <-> '[90,9]' AS d FROM a UNION ALL SELECT v <+> '[90,9]' FROM b ORDER BY d LIMIT 6$$);
SELECT same_answer($$SELECT v <+> '[90,9]' AS d FROM b UNION ALL SELECT v <-> '[90,9]' FROM a ORDER BY d LIMIT 6$$);
SELECT same_answer($$SELECT x.d FROM generate_series(1, 5) g, LATERAL (SELECT v <-> ARRAY[g, 5]::vector(2) AS d FROM a UNION ALL SELECT v <-> ARRAY[100 - g, 1]::vector(2) FROM b ORDER BY d LIMIT 6) x ORDER BY g, 1$$);
ALTER TABLE c INHERIT a;
CREATE INDEX ON c USING exact (v);
SELECT id FROM a ORDER BY v <-> '[40.2,2]' LIMIT 3;
SELECT requests($$SELECT id FROM a ORDER BY v <-> '[40.2,2]' LIMIT 3$$);
SELECT id FROM (SELECT id, v FROM a WHERE v <-> '[40.2,2]' < 20 UNION ALL SELECT id, v FROM b) s ORDER BY v <-> '[40.2,2]' LIMIT 3;
DROP TABLE a, b, c;

-- partitions of partitions; one attached later, whose columns lie elsewhere; run-time pruning of some of them
CREATE TABLE tree (id integer, kind integer, v vector(2)) PARTITION BY LIST (kind);
CREATE TABLE tree_1 PARTITION OF tree FOR VALUES IN (1);
CREATE TABLE tree_2 PARTITION OF tree FOR VALUES IN (2, 3) PARTITION BY LIST (kind);
CREATE TABLE tree_22 PARTITION OF tree_2 FOR VALUES IN (2);
CREATE TABLE tree_23 PARTITION OF tree_2 FOR VALUES IN (3);
CREATE TABLE tree_4 (gone text, v vector(2), id integer, kind integer);
ALTER TABLE tree_4 DROP COLUMN gone;
CREATE INDEX ON tree USING exact (v);
ALTER TABLE tree ATTACH PARTITION tree_4 FOR VALUES IN (4);
INSERT INTO tree SELECT 100 * kind + i, kind, ARRAY[i, kind]::vector(2) FROM generate_series(1, 4) kind, generate_series(1, 50) i;
SELECT id FROM tree ORDER BY v <-> '[20.2,3.9]' LIMIT 4;
SELECT requests($$SELECT id FROM tree ORDER BY v <-> '[20.2,3.9]' LIMIT 4$$);
SET plan_cache_mode = force_generic_plan;
PREPARE pruned(int) AS SELECT n.id FROM generate_series($1, 4) g, LATERAL (SELECT id FROM tree WHERE kind <= g ORDER BY v <-> '[20.2,3.9]' LIMIT 2) n ORDER BY g, 1;
EXECUTE pruned(1);
EXECUTE pruned(3);
RESET plan_cache_mode;
SET enable_partitionwise_join = on;
SELECT same_answer($$SELECT t.v <-> '[20.2,3.9]' AS d FROM tree t JOIN tree u USING (id, kind) ORDER BY 1 LIMIT 10$$);
RESET enable_partitionwise_join;
DROP TABLE tree;

-- off
SET pgwarp.knn_batch = off;
SELECT requests($$SELECT id FROM parts WHERE kind <= 3 ORDER BY v <-> '[5,6,7,8]' LIMIT 10$$);
RESET pgwarp.knn_batch;
DROP TABLE parts, q;
DROP FUNCTION same_answer, requests, begun;

-- workers of a parallel plan have no value of an outer row: no scan that is ordered by one is among theirs
CREATE TABLE outer_rows AS SELECT i AS id, ARRAY[i, 2, 3]::vector AS v FROM generate_series(1, 3) i;
CREATE TABLE shared (kind integer, v halfvec(3)) PARTITION BY LIST (kind);
CREATE TABLE shared_a PARTITION OF shared FOR VALUES IN (0, 1);
CREATE TABLE shared_b PARTITION OF shared FOR VALUES IN (2);
CREATE TABLE shared_c PARTITION OF shared DEFAULT;
INSERT INTO shared SELECT i % 4, ARRAY[i % 61, i % 53, i % 47]::halfvec FROM generate_series(1, 300) i;
CREATE INDEX ON shared_a USING exact (v halfvec_l1_ops);
CREATE INDEX ON shared_b USING exact (v halfvec_l1_ops);
VACUUM ANALYZE outer_rows, shared;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL pgwarp.knn_batch = off;
EXPLAIN (COSTS OFF) SELECT o.id, n.d FROM outer_rows o CROSS JOIN LATERAL (SELECT s.v <+> o.v::halfvec AS d FROM shared s ORDER BY s.v <+> o.v::halfvec) n;
SELECT o.id, count(*), min(n.d), max(n.d) FROM outer_rows o CROSS JOIN LATERAL (SELECT s.v <+> o.v::halfvec AS d FROM shared s ORDER BY s.v <+> o.v::halfvec OFFSET 0) n GROUP BY o.id ORDER BY o.id;
COMMIT;
DROP TABLE outer_rows, shared;
