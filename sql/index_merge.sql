SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
-- every list and many candidates, so that answers don't depend on how a device trained lists and codes
SET pgwarp.ivfadc_probes = 1000;
SET pgwarp.refine_factor = 100;
SET pgwarp.pqtree_candidates = 1000;

-- what a merge leaves: rows in the arrays, none in the logs

CREATE TABLE t (id integer PRIMARY KEY, val vector(4)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(1, 500) i;
CREATE INDEX t_exact ON t USING exact (val);
CREATE INDEX t_half ON t USING ivfadc (val) WITH (codes = half);
CREATE INDEX t_pq ON t USING ivfadc (val);
CREATE INDEX t_full ON t USING ivfadc (val vector_cosine_ops) WITH (refine = full, opq = on, subquantizers = 2);
CREATE INDEX t_int8 ON t USING ivfadc (val vector_ip_ops) WITH (codes = int8, refine = none);
CREATE INDEX t_tree ON t USING pqtree (val vector_cosine_ops) WITH (parts = 2);
CREATE INDEX t_tree_full ON t USING pqtree (val) WITH (refine = full);
CREATE INDEX t_tree_none ON t USING pqtree (val vector_ip_ops) WITH (refine = none);
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(501, 600) i;
INSERT INTO t SELECT i, CASE WHEN i = 601 THEN NULL ELSE ARRAY[700, 0, 0, 0]::vector END FROM generate_series(601, 602) i;
CREATE FUNCTION state(index regclass) RETURNS text LANGUAGE sql AS
	$$SELECT format('%s rows, %s in logs, %s dead', rows, delta_rows, dead_rows) FROM pgwarp_index_info(index)$$;
CREATE FUNCTION healthy(index regclass) RETURNS text LANGUAGE sql AS
	$$SELECT format('%s live, %s dead', live_rows, dead_rows) FROM pgwarp_check(index, true)$$;
CREATE VIEW states AS SELECT i.indexrelid::regclass AS index, state(i.indexrelid), healthy(i.indexrelid)
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid = 't'::regclass AND a.amname IN ('exact', 'ivfadc', 'pqtree') ORDER BY i.indexrelid;
SELECT * FROM states;
CALL pgwarp_merge('t_exact');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_pq');
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_int8');
CALL pgwarp_merge('t_tree');
CALL pgwarp_merge('t_tree_full');
CALL pgwarp_merge('t_tree_none');
SELECT * FROM states;
SELECT id FROM t ORDER BY val <-> '[550.2,4,0,4]' LIMIT 3;
DROP INDEX t_exact;
SELECT id FROM t ORDER BY val <-> '[550.2,4,0,4]' LIMIT 3;
DROP INDEX t_half;
SELECT id FROM t ORDER BY val <-> '[550.2,4,0,4]' LIMIT 3;
SELECT array_agg(id) FROM (SELECT i.id FROM knn_search('t_tree_full', ARRAY['[550.2,4,0,4]'::vector], 3) s JOIN t i ON i.ctid = s.tid ORDER BY s.distance) s;
SELECT i.id FROM knn_search('t_tree', ARRAY['[600,5,6,2]'::vector], 1) s JOIN t i ON i.ctid = s.tid;
SELECT count(*), count(DISTINCT tid) FROM knn_search('t_tree_none', ARRAY['[1,0,0,0]'::vector], 1000);
SELECT id FROM t ORDER BY val <=> '[600,5,6,2]' LIMIT 1;
SELECT i.id FROM knn_search('t_int8', ARRAY['[1,0,0,0]'::vector], 1) s JOIN t i ON i.ctid = s.tid;
-- by either index of codes alone, whose answers are approximate: a row that came with the merge
SELECT id > 500 AS merged FROM t ORDER BY val <#> '[1,0,0,0]' LIMIT 1;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <=> '[1,2,3,4]') s;

-- again, with nothing to do; with rows that died, few and many

CALL pgwarp_merge('t_pq');
SELECT * FROM states;
DELETE FROM t WHERE id <= 20;
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM states;
CALL pgwarp_merge('t_pq');
SELECT * FROM states;
DELETE FROM t WHERE id <= 300;
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(701, 720) i;
VACUUM (INDEX_CLEANUP ON) t;
CREATE INDEX t_exact ON t USING exact (val);
CALL pgwarp_merge('t_pq');
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_int8');
CALL pgwarp_merge('t_tree');
CALL pgwarp_merge('t_tree_full');
CALL pgwarp_merge('t_tree_none');
SELECT * FROM states;
SELECT id FROM t ORDER BY val <=> '[710,3,6,8]' LIMIT 1;
SELECT id FROM t ORDER BY val <-> '[709.8,3,6,8]' LIMIT 2;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <=> '[1,2,3,4]') s;

-- all rows gone, and new ones

DELETE FROM t;
VACUUM (INDEX_CLEANUP ON) t;
CALL pgwarp_merge('t_exact');
CALL pgwarp_merge('t_pq');
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_int8');
CALL pgwarp_merge('t_tree');
CALL pgwarp_merge('t_tree_full');
CALL pgwarp_merge('t_tree_none');
SELECT * FROM states;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <-> '[1,2,3,4]') s;
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(1, 400) i;
CALL pgwarp_merge('t_exact');
CALL pgwarp_merge('t_pq');
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_int8');
CALL pgwarp_merge('t_tree');
CALL pgwarp_merge('t_tree_full');
CALL pgwarp_merge('t_tree_none');
SELECT * FROM states;
SELECT id FROM t ORDER BY val <-> '[310.2,2,2,11]' LIMIT 1;
SELECT (options->>'lists')::int > 1 AS lists, calibration->>'sample' AS sample FROM pgwarp_index_info('t_pq');
DROP VIEW states;
DROP TABLE t;

-- an open cursor goes on across a merge, with each row once

CREATE TABLE t (id integer, val vector(2)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, ARRAY[i, 0]::vector FROM generate_series(1, 3000) i;
CREATE INDEX t_exact ON t USING exact (val);
CREATE INDEX t_ivfadc ON t USING ivfadc (val vector_ip_ops);
INSERT INTO t SELECT i, ARRAY[i, 0]::vector FROM generate_series(3001, 3200) i;
DO $$
DECLARE
	near CURSOR FOR SELECT id FROM t ORDER BY val <-> '[0,0]';
	product CURSOR FOR SELECT id FROM t ORDER BY val <#> '[1,0]';
	seen integer[] := '{}';
BEGIN
	FOR row IN near LOOP
		seen := seen || row.id;
		IF row.id = 150 THEN
			CALL pgwarp_merge('t_exact');
		END IF;
	END LOOP;
	RAISE WARNING 'exact: % rows, % of them different, in order: %', cardinality(seen),
		(SELECT count(DISTINCT id) FROM unnest(seen) id), seen = ARRAY(SELECT generate_series(1, 3200));
	seen := '{}';
	FOR row IN product LOOP
		seen := seen || row.id;
		IF row.id = 3100 THEN
			CALL pgwarp_merge('t_ivfadc');
		END IF;
	END LOOP;
	RAISE WARNING 'ivfadc: % rows, % of them different', cardinality(seen), (SELECT count(DISTINCT id) FROM unnest(seen) id);
END $$;
SELECT rows, delta_rows FROM pgwarp_index_info('t_exact');
SELECT rows, delta_rows FROM pgwarp_index_info('t_ivfadc');

-- temporary and unlogged; a rolled back transaction; wide rows

CREATE TEMPORARY TABLE temporary (val vector(3));
CREATE INDEX temporary_val ON temporary USING exact (val);
INSERT INTO temporary SELECT ARRAY[i, i, i]::vector FROM generate_series(1, 100) i;
CALL pgwarp_merge('temporary_val');
SELECT state('temporary_val'), healthy('temporary_val');
CREATE UNLOGGED TABLE unlogged (val vector(3));
CREATE INDEX unlogged_val ON unlogged USING exact (val);
INSERT INTO unlogged SELECT ARRAY[i, i, i]::vector FROM generate_series(1, 100) i;
CALL pgwarp_merge('unlogged_val');
SELECT state('unlogged_val'), healthy('unlogged_val');
BEGIN;
INSERT INTO unlogged SELECT ARRAY[i, i, i]::vector FROM generate_series(101, 200) i;
CALL pgwarp_merge('unlogged_val');
ROLLBACK;
SELECT state('unlogged_val'), healthy('unlogged_val');
SELECT count(*) FROM (SELECT val FROM unlogged ORDER BY val <-> '[1,2,3]') s;
CREATE TABLE wide (id integer, val vector(3000)) WITH (autovacuum_enabled = off);
CREATE INDEX wide_val ON wide USING exact (val);
INSERT INTO wide SELECT i, array_fill(i, ARRAY[3000])::vector FROM generate_series(1, 40) i;
CALL pgwarp_merge('wide_val');
INSERT INTO wide SELECT i, array_fill(i, ARRAY[3000])::vector FROM generate_series(41, 50) i;
CALL pgwarp_merge('wide_val');
SELECT state('wide_val'), healthy('wide_val');
SELECT array_agg(id) FROM (SELECT id FROM wide ORDER BY val <-> array_fill(44.2, ARRAY[3000])::vector LIMIT 3) s;

-- who may, and when

CREATE ROLE merge_reader;
GRANT SELECT ON t TO merge_reader;
SET ROLE merge_reader;
CALL pgwarp_merge('t_exact');
SELECT pgwarp_check('t_exact');
RESET ROLE;
BEGIN READ ONLY;
CALL pgwarp_merge('t_exact');
ROLLBACK;
CALL pgwarp_merge('t');
CALL pgwarp_merge('wide');
CALL pgwarp_merge(NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT pgwarp_check('t');
DROP TABLE t, wide, temporary, unlogged;
DROP FUNCTION state, healthy;
DROP ROLE merge_reader;
SELECT * FROM pgwarp_merge_progress;
