-- Indexes of pqtree: options, settings, small and degenerate tables, merges.
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

-- options

CREATE TABLE t (val vector(3), half halfvec(3), bits bit(8), n integer);
CREATE INDEX ON t USING pqtree (val) WITH (parts = -1);
CREATE INDEX ON t USING pqtree (val) WITH (parts = 5);
CREATE INDEX ON t USING pqtree (val) WITH (parts = 4);
CREATE INDEX ON t USING pqtree (val) WITH (k1 = 1);
CREATE INDEX ON t USING pqtree (val) WITH (k1 = 257);
CREATE INDEX ON t USING pqtree (val) WITH (k2 = 257);
CREATE INDEX ON t USING pqtree (val) WITH (k1 = 256, k2 = 129);
CREATE INDEX ON t USING pqtree (val) WITH (line_parts = 2049);
CREATE INDEX ON t USING pqtree (val) WITH (line_parts = 4);
CREATE INDEX ON t USING pqtree (val) WITH (parts = 2, line_parts = 3);
CREATE INDEX ON t USING pqtree (val) WITH (parts = many);
CREATE INDEX ON t USING pqtree (val) WITH (refine = quarter);
CREATE INDEX ON t USING pqtree (val) WITH (recall = 1.01);
CREATE INDEX ON t USING pqtree (val) WITH (lists = 3);
CREATE INDEX ON t USING pqtree (val vector_l1_ops);
CREATE INDEX ON t USING pqtree (half halfvec_l1_ops);
CREATE INDEX ON t USING pqtree (bits);
CREATE INDEX ON t USING pqtree (n);
CREATE INDEX ON t USING pqtree (val, half);
CREATE UNIQUE INDEX ON t USING pqtree (val);
CREATE INDEX ON t USING pqtree (val DESC);
SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass;
CREATE INDEX t_val ON t USING pqtree (val) WITH (parts = 3, k1 = 4, k2 = 2, line_parts = 3, refine = none, recall = 0.9);
SELECT pg_get_indexdef('t_val'::regclass);
SELECT options FROM pgwarp_index_info('t_val');
ALTER INDEX t_val SET (recall = 0.99);
SELECT options->'recall' AS recall FROM pgwarp_index_info('t_val');
ALTER INDEX t_val SET (line_parts = 4);
ALTER INDEX t_val SET (line_parts = 1, parts = 2);
ALTER INDEX t_val RESET (parts, k1, k2, line_parts);
REINDEX INDEX t_val;
SELECT options FROM pgwarp_index_info('t_val');
DROP TABLE t;
CREATE TABLE t (val vector);
CREATE INDEX ON t USING pqtree (val);
DROP TABLE t;

-- operator classes

SELECT opc.opcname, opc.opcdefault, amvalidate(opc.oid)
	FROM pg_opclass opc JOIN pg_am am ON am.oid = opc.opcmethod WHERE am.amname = 'pqtree' ORDER BY 1, 2;

-- settings

SHOW pgwarp.pqtree_candidates;
SHOW pgwarp.pqtree_width;
SET pgwarp.pqtree_candidates = -1;
SET pgwarp.pqtree_candidates = 1000000001;
SET pgwarp.pqtree_width = -1;
SET pgwarp.pqtree_width = 257;
SET pgwarp.pqtree_probes = 1;

-- all rows of a query, in order, against those of the table: what differs is told
CREATE FUNCTION same_order(tab text, operator text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE truth float8[]; answer float8[]; ids integer[]; plan text := ''; line text;
	statement text := format('SELECT array_agg(d), array_agg(id) FROM (SELECT id, v %s %L AS d FROM %I ORDER BY d) s', operator, query, tab);
BEGIN
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_sort', 'on', true);
	EXECUTE statement INTO truth, ids;
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true), set_config('enable_sort', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP plan := plan || line; END LOOP;
	EXECUTE statement INTO answer, ids;
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true);
	IF plan !~ 'Index Scan' THEN RETURN plan; END IF;
	RETURN CASE WHEN answer IS NOT DISTINCT FROM truth AND (SELECT count(DISTINCT i) FROM unnest(ids) i) = coalesce(cardinality(ids), 0)
		THEN coalesce(cardinality(ids), 0) || ' rows' ELSE format('%s, not %s', answer, truth) END;
END $$;

-- tables of no, one and two rows, and of one dimension

CREATE TABLE t (id integer, v vector(1)) WITH (autovacuum_enabled = off);
CREATE INDEX t_v ON t USING pqtree (v);
SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> '[1]') s;
INSERT INTO t VALUES (1, '[5]');
SELECT same_order('t', '<->', '[1]');
CALL pgwarp_merge('t_v');
SELECT same_order('t', '<->', '[1]'), rows, delta_rows, options FROM pgwarp_index_info('t_v');
INSERT INTO t VALUES (2, '[-3]');
SELECT same_order('t', '<->', '[1]');
REINDEX INDEX t_v;
SELECT same_order('t', '<->', '[1]'), rows, delta_rows, options FROM pgwarp_index_info('t_v');
INSERT INTO t SELECT i, ARRAY[i % 100]::vector FROM generate_series(3, 2000) i;
SELECT same_order('t', '<->', '[37.3]');
CALL pgwarp_merge('t_v');
SELECT same_order('t', '<->', '[37.3]'), rows, delta_rows FROM pgwarp_index_info('t_v');
REINDEX INDEX t_v;
SELECT same_order('t', '<->', '[37.3]'), options->'k1' AS k1, options->'parts' AS parts FROM pgwarp_index_info('t_v');
SELECT * FROM pgwarp_check('t_v', true) \gset check_
SELECT :check_live_rows AS live_rows, :check_dead_rows AS dead_rows, :check_unused_pages AS unused_pages;
DROP TABLE t;

-- many dimensions: more than a page holds

CREATE TABLE t (id integer PRIMARY KEY, v vector(2000)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, (SELECT array_agg(sin(0.37 * i + 0.11 * i * j * j) / sqrt(j)) FROM generate_series(1, 2000) j)::vector FROM generate_series(1, 200) i;
CREATE INDEX t_v ON t USING pqtree (v vector_cosine_ops);
SELECT options FROM pgwarp_index_info('t_v');
SET enable_seqscan = off;
SELECT count(*) FROM t w, LATERAL (SELECT id FROM t ORDER BY v <=> w.v LIMIT 1) n WHERE n.id = w.id;
INSERT INTO t SELECT id + 200, v * v FROM t WHERE id <= 50;
SELECT count(*) FROM t w, LATERAL (SELECT id FROM t ORDER BY v <=> w.v LIMIT 1) n WHERE n.id = w.id;
CALL pgwarp_merge('t_v');
SELECT count(*) FROM t w, LATERAL (SELECT id FROM t ORDER BY v <=> w.v LIMIT 1) n WHERE n.id = w.id;
SELECT pgwarp_release('t_v');
SELECT count(*) FROM t w, LATERAL (SELECT id FROM t ORDER BY v <=> w.v LIMIT 1) n WHERE n.id = w.id;
RESET enable_seqscan;
DROP TABLE t;

-- equal rows, and one row that is elsewhere

CREATE TABLE t (id integer, v vector(4)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, '[1,2,3,4]' FROM generate_series(1, 1000) i;
INSERT INTO t VALUES (1001, '[1000000,0,0,0]');
CREATE INDEX t_v ON t USING pqtree (v);
SELECT same_order('t', '<->', '[1,2,3,5]');
INSERT INTO t SELECT i, '[1,2,3,4]' FROM generate_series(1002, 1100) i;
DELETE FROM t WHERE id % 2 = 0;
VACUUM (INDEX_CLEANUP ON) t;
SELECT same_order('t', '<->', '[1,2,3,5]'), rows, delta_rows, dead_rows FROM pgwarp_index_info('t_v');
CALL pgwarp_merge('t_v');
SELECT same_order('t', '<->', '[1,2,3,5]'), rows, delta_rows, dead_rows FROM pgwarp_index_info('t_v');
SELECT pgwarp_recall('t_v', 10, 50);
DROP TABLE t;

-- rows without a place in an order, and values that are refused

CREATE TABLE t (id integer, v vector(3)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN '[0,0,0]' ELSE ARRAY[i % 17, i % 5, 1]::vector END FROM generate_series(1, 400) i;
CREATE INDEX t_v ON t USING pqtree (v vector_cosine_ops);
SELECT same_order('t', '<=>', '[1,2,3]');
SELECT same_order('t', '<=>', '[0,0,0]');
INSERT INTO t VALUES (401, '[0,0,0]'), (402, NULL), (403, '[3,2,1]');
SELECT same_order('t', '<=>', '[1,2,3]');
CALL pgwarp_merge('t_v');
SELECT same_order('t', '<=>', '[1,2,3]'), rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('t_v');
INSERT INTO t VALUES (404, '[NaN,1,1]');
INSERT INTO t VALUES (404, '[1,1]');
SELECT id FROM t ORDER BY v <=> '[1,2]' LIMIT 1;
DROP TABLE t;

-- merges at each refine: the recall is measured again, by the rows that there are then; where vectors are kept, the tree is
-- trained again once a quarter of the rows has come

CREATE FUNCTION row_of(i integer) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i), sin(0.77 * i), cos(5.1 * i), sin(3.3 * i), cos(0.013 * i)]::vector';
CREATE PROCEDURE live(definition text) LANGUAGE plpgsql AS $$
DECLARE step text;
BEGIN
	CREATE TABLE t (id integer, kind integer, v vector(8)) WITH (autovacuum_enabled = off);
	INSERT INTO t SELECT i, i % 10, row_of(i) FROM generate_series(1, 2000) i;
	EXECUTE 'CREATE INDEX t_v ON t USING pqtree ' || definition;
	FOREACH step IN ARRAY ARRAY['CREATE INDEX', 'INSERT INTO t SELECT i, i % 10, row_of(i) FROM generate_series(2001, 2400) i', 'CALL pgwarp_merge(''t_v'')',
			'INSERT INTO t SELECT i, i % 10, row_of(i) FROM generate_series(2401, 3500) i', 'CALL pgwarp_merge(''t_v'')', 'REINDEX INDEX t_v'] LOOP
		IF step <> 'CREATE INDEX' THEN EXECUTE step; END IF;
		RAISE WARNING '%', (SELECT format('%s: %s rows, %s in logs, %s changed, k1 %s, recall as promised: %s; %s', left(step, 12), rows, delta_rows, calibration->'changed_rows', options->'k1',
				pgwarp_recall('t_v', 10, 100) >= 0.9, format('%s live', live_rows))
			FROM pgwarp_index_info('t_v'), pgwarp_check('t_v', true));
	END LOOP;
	DROP TABLE t;
END $$;
\set VERBOSITY terse
CALL live('(v) WITH (refine = none, line_parts = 8)');
CALL live('(v) WITH (refine = half)');
CALL live('(v) WITH (refine = full)');
CALL live('(v vector_ip_ops) WITH (refine = full)');
CALL live('(v vector_cosine_ops)');
CALL live('(v vector_cosine_ops) WITH (refine = full, parts = 4)');
CALL live('((v::halfvec(8)) halfvec_l2_ops)');
\set VERBOSITY default

-- and with rows that VACUUM removes

CREATE TABLE t (id integer, v vector(8)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, row_of(i) FROM generate_series(1, 3000) i;
CREATE INDEX t_none ON t USING pqtree (v) WITH (refine = none, line_parts = 8);
CREATE INDEX t_half ON t USING pqtree (v vector_cosine_ops) WITH (refine = half);
CREATE INDEX t_full ON t USING pqtree (v vector_ip_ops) WITH (refine = full);
CREATE VIEW states AS SELECT i.relname AS index, rows, delta_rows, s.dead_rows, calibration->'changed_rows' AS changed, live_rows, unused_pages AS unused,
		pgwarp_recall(i.oid, 10, 100) >= 0.9 AS recall
	FROM pg_class i, pgwarp_index_info(i.oid) s, pgwarp_check(i.oid, true) c
	WHERE i.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass) ORDER BY 1;
DELETE FROM t WHERE id % 5 = 0;
VACUUM (INDEX_CLEANUP ON) t;
INSERT INTO t SELECT i, row_of(i) FROM generate_series(3001, 4200) i;
SELECT * FROM states;
CALL pgwarp_merge('t_none');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_full');
SELECT * FROM states;
DELETE FROM t WHERE id % 5 < 3;
VACUUM (INDEX_CLEANUP ON) t;
CALL pgwarp_merge('t_none');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_full');
SELECT * FROM states;
DROP VIEW states;
DROP TABLE t;

-- VACUUM, and what it leaves

CREATE TABLE t (id integer, kind integer, v vector(8)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 10, row_of(i) FROM generate_series(1, 3000) i;
CREATE INDEX t_v ON t USING pqtree (v);
DELETE FROM t WHERE id > 100;
-- rows that are deleted are no answers, and the recall is that of the others
SELECT pgwarp_recall('t_v', 10, 50) >= 0.9 AS recall, pgwarp_recall('t_v', 200, 5) AS of_all;
VACUUM (INDEX_CLEANUP ON) t;
SELECT same_order('t', '<->', '[1,0,1,0,1,0,1,0]');
DELETE FROM t;
VACUUM (INDEX_CLEANUP ON) t;
SELECT same_order('t', '<->', '[1,0,1,0,1,0,1,0]'), rows, dead_rows FROM pgwarp_index_info('t_v');
CALL pgwarp_merge('t_v');
INSERT INTO t SELECT i, i % 10, row_of(i) FROM generate_series(1, 3000) i;
CALL pgwarp_merge('t_v');
SELECT same_order('t', '<->', '[1,0,1,0,1,0,1,0]'), rows, delta_rows, dead_rows FROM pgwarp_index_info('t_v');

-- plans: a search, a join that is one request, filters, all rows

VACUUM ANALYZE t;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM t ORDER BY v <-> '[1,0,1,0,1,0,1,0]' LIMIT 5$$) AS plan;
SELECT plan_of($$SELECT id FROM t WHERE kind = 3 ORDER BY v <-> '[1,0,1,0,1,0,1,0]' LIMIT 5$$) AS plan;
SELECT plan_of($$SELECT q.id, n.id FROM t q CROSS JOIN LATERAL (SELECT id FROM t ORDER BY v <-> q.v LIMIT 3) n WHERE q.id <= 50$$) AS plan;
SELECT count(*), count(*) FILTER (WHERE q.id = n.id) FROM t q CROSS JOIN LATERAL (SELECT id FROM t ORDER BY v <-> q.v LIMIT 3) n WHERE q.id <= 50;
SELECT count(*), bool_and(n.kind = 3) FROM t q CROSS JOIN LATERAL (SELECT kind FROM t WHERE kind = 3 ORDER BY v <-> q.v LIMIT 3) n WHERE q.id <= 50;
SELECT count(*) FROM (SELECT id FROM t WHERE kind = 3 ORDER BY v <-> '[1,0,1,0,1,0,1,0]') s;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY v <-> '[1,0,1,0,1,0,1,0]') s;
RESET enable_seqscan;

-- an index is no way to find rows without an order
SELECT count(*) FROM t;

-- clusters that lie apart, where line codes order the rows of a cluster badly: more candidates are ranked by vectors, and no recall takes all rows

CREATE TABLE c (id integer, v vector(32));
INSERT INTO c SELECT i, ARRAY(SELECT hashint4(i % 64 * 1000 + d) % 100 / 10.0 + (hashint4(i * 100 + d) % 100 + hashint4(i * 100 + d + 50) % 100) / 50.0 FROM generate_series(1, 32) d)::real[]::vector
	FROM generate_series(1, 8000) i;
CREATE INDEX c_v ON c USING pqtree (v);
SELECT min((p->>'effort')::int) FILTER (WHERE (p->'recall'->>'10')::float >= 0.95) < 4000 AS some_rows
	FROM pgwarp_index_info('c_v'), jsonb_array_elements(calibration->'curve') p;
SELECT pgwarp_recall('c_v', 10, 200) >= 0.93 AS recall;
INSERT INTO c SELECT id + 10000, v + ('[' || repeat('0.1,', 31) || '0.1]')::vector FROM c WHERE id % 2 = 0;
CALL pgwarp_merge('c_v');
SELECT pgwarp_recall('c_v', 10, 200) >= 0.93 AS recall, calibration->'changed_rows' AS changed FROM pgwarp_index_info('c_v');
DROP TABLE c;

-- partitions are searched together

CREATE TABLE p (id integer, kind integer, v vector(8)) PARTITION BY LIST (kind);
CREATE TABLE p_0 PARTITION OF p FOR VALUES IN (0, 1, 2, 3);
CREATE TABLE p_1 PARTITION OF p FOR VALUES IN (4, 5, 6);
CREATE TABLE p_2 PARTITION OF p FOR VALUES IN (7, 8, 9);
INSERT INTO p SELECT * FROM t;
CREATE INDEX p_v ON p USING pqtree (v);
VACUUM ANALYZE p;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM p ORDER BY v <-> '[1,0,1,0,1,0,1,0]' LIMIT 5$$) AS plan;
SELECT count(*), count(DISTINCT id), bool_and(d >= before) AS ordered FROM (SELECT id, d, lag(d, 1, d) OVER () AS before FROM
	(SELECT id, v <-> '[1,0,1,0,1,0,1,0]' AS d FROM p ORDER BY d) s) s;
SELECT count(*) FROM p q, LATERAL (SELECT id FROM p ORDER BY v <-> q.v LIMIT 1) n WHERE q.id <= 100 AND n.id = q.id;
RESET enable_seqscan;
DROP TABLE p;

-- a concurrent build samples pages of its table by a snapshot; sparse pages make the table large enough

CREATE TABLE pqtree_sparse (id int, v vector(8)) WITH (fillfactor = 10);
INSERT INTO pqtree_sparse
	SELECT i, ARRAY[i % 7, i % 11, i % 13, i % 17, i % 19, i % 23, i % 29, i]::real[]::vector FROM generate_series(1, 12000) i;
CREATE INDEX CONCURRENTLY pqtree_sparse_v ON pqtree_sparse USING pqtree (v) WITH (k1 = 4, k2 = 2);
SELECT pg_relation_size('pqtree_sparse') / 8192 >= 1024 AS large, live_rows FROM pgwarp_check('pqtree_sparse_v', true);
DROP TABLE pqtree_sparse;

DROP TABLE t;
DROP PROCEDURE live;
DROP FUNCTION row_of, same_order, plan_of;
