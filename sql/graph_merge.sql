-- Merges of indexes of method graph.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
-- many candidates, so that answers don't depend on how a device built the graph
SET pgwarp.graph_ef_search = 2000;

CREATE TABLE t (id integer PRIMARY KEY, val vector(4)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(1, 500) i;
CREATE INDEX t_full ON t USING graph (val) INCLUDE (id);
CREATE INDEX t_half ON t USING graph (val vector_ip_ops) WITH (vectors = half);
CREATE INDEX t_cosine ON t USING graph (val vector_cosine_ops) WITH (degree = 12, build_degree = 20);
CREATE INDEX t_bits ON t USING graph (val vector_l1_ops) WITH (vectors = bits);
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(501, 600) i;
INSERT INTO t SELECT i, CASE WHEN i = 601 THEN NULL ELSE ARRAY[i, 0, 0, 0]::vector END FROM generate_series(601, 602) i;
CREATE FUNCTION state(index regclass) RETURNS text LANGUAGE sql AS
	$$SELECT format('%s rows, %s in logs, %s dead', rows, delta_rows, dead_rows) FROM pgwarp_index_info(index)$$;
CREATE FUNCTION healthy(index regclass) RETURNS text LANGUAGE sql AS
	$$SELECT format('%s live, %s dead', live_rows, dead_rows) FROM pgwarp_check(index, true)$$;
CREATE VIEW states AS SELECT i.indexrelid::regclass AS index, state(i.indexrelid), healthy(i.indexrelid)
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid = 't'::regclass AND a.amname = 'graph' ORDER BY i.indexrelid;
SELECT * FROM states;
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_cosine');
CALL pgwarp_merge('t_bits');
SELECT * FROM states;
SELECT id FROM t ORDER BY val <-> '[550.2,4,0,4]' LIMIT 3;
SELECT id FROM t ORDER BY val <#> '[1,0,0,0]' LIMIT 1;
SELECT id FROM t ORDER BY val <=> '[600,5,6,2]' LIMIT 1;
SELECT id FROM t ORDER BY val <+> '[550.2,4,0,4]' LIMIT 1;

-- with nothing to do; with rows that died, few and many

CALL pgwarp_merge('t_full');
SELECT * FROM states;
DELETE FROM t WHERE id <= 20;
VACUUM (INDEX_CLEANUP ON) t;
CALL pgwarp_merge('t_full');
SELECT * FROM states;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,2,3,4]') s;
SELECT id FROM t ORDER BY val <-> '[1,1,1,1]' LIMIT 2;
DELETE FROM t WHERE id <= 300;
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(701, 720) i;
VACUUM (INDEX_CLEANUP ON) t;
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_cosine');
-- rows are left out of what keeps no vectors as well
CALL pgwarp_merge('t_bits');
SELECT * FROM states;
SELECT id FROM t ORDER BY val <=> '[710,3,6,8]' LIMIT 1;
SELECT id FROM t ORDER BY val <-> '[709.8,3,6,8]' LIMIT 2;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <=> '[1,2,3,4]') s;
REINDEX INDEX t_bits;
SELECT * FROM states;

-- all rows gone, and new ones

DELETE FROM t;
VACUUM (INDEX_CLEANUP ON) t;
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_cosine');
CALL pgwarp_merge('t_bits');
SELECT * FROM states;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <-> '[1,2,3,4]') s;
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(1, 400) i;
CALL pgwarp_merge('t_full');
CALL pgwarp_merge('t_half');
CALL pgwarp_merge('t_cosine');
CALL pgwarp_merge('t_bits');
SELECT * FROM states;
SELECT id FROM t ORDER BY val <-> '[310.2,2,2,11]' LIMIT 1;
SELECT jsonb_array_length(calibration->'curve') > 0 AS calibrated FROM pgwarp_index_info('t_full');
DROP VIEW states;
DROP TABLE t;

-- an open cursor goes on across a merge, with each row once

CREATE TABLE t (id integer, val vector(2)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, ARRAY[i, 0]::vector FROM generate_series(1, 3000) i;
CREATE INDEX t_val ON t USING graph (val);
INSERT INTO t SELECT i, ARRAY[i, 0]::vector FROM generate_series(3001, 3200) i;
DO $$
DECLARE
	near CURSOR FOR SELECT id FROM t ORDER BY val <-> '[0,0]';
	seen integer[] := '{}';
BEGIN
	FOR row IN near LOOP
		seen := seen || row.id;
		IF row.id = 150 THEN
			CALL pgwarp_merge('t_val');
		END IF;
	END LOOP;
	RAISE WARNING '% rows, % of them different', cardinality(seen), (SELECT count(DISTINCT id) FROM unnest(seen) id);
END $$;
SELECT rows, delta_rows FROM pgwarp_index_info('t_val');

-- VACUUM merges when more than a thousand rows, or a 64th, are new

INSERT INTO t SELECT i, ARRAY[i, 0]::vector FROM generate_series(3201, 4150) i;
DELETE FROM t WHERE id = 1;
VACUUM (INDEX_CLEANUP ON) t;
SELECT rows, delta_rows FROM pgwarp_index_info('t_val');
INSERT INTO t SELECT i, ARRAY[i, 0]::vector FROM generate_series(4151, 4300) i;
DELETE FROM t WHERE id = 2;
VACUUM (INDEX_CLEANUP ON) t;
SELECT rows, delta_rows FROM pgwarp_index_info('t_val');
DROP TABLE t;

-- growing bit by bit, and out of what it was built with

CREATE TABLE t (id integer, val vector(6)) WITH (autovacuum_enabled = off);
CREATE FUNCTION points(first integer, last integer, far real DEFAULT 0) RETURNS TABLE (id integer, val vector) LANGUAGE sql AS $$
	SELECT i, ARRAY(SELECT sin(i * (d + 0.7)) * d + far FROM generate_series(1, 6) d)::vector FROM generate_series(first, last) i $$;
INSERT INTO t SELECT * FROM points(1, 1500);
CREATE INDEX t_full ON t USING graph (val) INCLUDE (id);
CREATE INDEX t_half ON t USING graph (val vector_l1_ops) WITH (vectors = half);
CREATE INDEX t_bits ON t USING graph (val vector_cosine_ops) WITH (vectors = bits);
RESET pgwarp.graph_ef_search;
CREATE PROCEDURE grow(first integer, last integer, far real DEFAULT 0) LANGUAGE plpgsql AS $$
DECLARE
	index regclass;
BEGIN
	INSERT INTO t SELECT * FROM points(first, last, far);
	FOREACH index IN ARRAY '{t_full,t_half,t_bits}'::regclass[] LOOP CALL pgwarp_merge(index); END LOOP;
END $$;
CREATE VIEW grown AS SELECT index, state(index), healthy(index), pgwarp_recall(index, 10, 100) >= 0.9 AS recall
	FROM unnest('{t_full,t_half,t_bits}'::regclass[]) index;
CALL grow(1501, 1501);
SELECT * FROM grown;
CALL grow(1502, 1550);
DELETE FROM t WHERE id % 17 = 3;
VACUUM (INDEX_CLEANUP ON) t;
CALL grow(1551, 1950);
SELECT * FROM grown;
-- out of the range of halves: these are built anew
CALL grow(1951, 2000, 100);
SELECT * FROM grown;
SELECT id FROM t ORDER BY val <+> (SELECT val FROM points(1960, 1960, 100)) LIMIT 1;
-- to many more rows: built anew, but for bits
CALL grow(2001, 3600);
SELECT * FROM grown;
SELECT id FROM t ORDER BY val <-> (SELECT val FROM points(3333, 3333)) LIMIT 1;
DROP VIEW grown;
DROP TABLE t;
DROP PROCEDURE grow;
DROP FUNCTION points, state, healthy;
