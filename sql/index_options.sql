CREATE TABLE t (val vector(3));

CREATE INDEX ON t USING exact (val) WITH (vectors = quarter);
CREATE INDEX ON t USING exact (val) WITH (lists = 3);
CREATE INDEX ON t USING ivfadc (val) WITH (lists = -1);
CREATE INDEX ON t USING ivfadc (val) WITH (lists = 65537);
CREATE INDEX ON t USING ivfadc (val) WITH (codes = int4);
\set VERBOSITY sqlstate
CREATE INDEX ON t USING ivfadc (val) WITH (codes = int16);
\set VERBOSITY default
CREATE INDEX ON t USING ivfadc (val) WITH (refine = more);
CREATE INDEX ON t USING ivfadc (val) WITH (opq = maybe);
CREATE INDEX ON t USING ivfadc (val) WITH (subquantizers = -1);
CREATE INDEX ON t USING ivfadc (val) WITH (subquantizers = 4);
CREATE INDEX ON t USING ivfadc (val) WITH (recall = 1.01);
CREATE INDEX ON t USING graph (val) WITH (recall = -0.5);
CREATE INDEX ON t USING graph (val) WITH (recall = high);
CREATE INDEX ON t USING exact (val) WITH (recall = 0.9);
CREATE INDEX ON t USING exact (val, val);
CREATE UNIQUE INDEX ON t USING exact (val);
CREATE INDEX ON t USING exact (val DESC);

-- no index was left behind
SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass;

CREATE INDEX t_exact ON t USING exact (val) WITH (vectors = half);
CREATE INDEX t_ivfadc ON t USING ivfadc (val) WITH (lists = 10, codes = half, subquantizers = 3, opq = on, refine = full);
CREATE INDEX t_int8 ON t USING ivfadc (val) WITH (codes = int8, refine = none);
ALTER INDEX t_int8 SET (codes = int7);
SELECT pg_get_indexdef('t_int8'::regclass);
SELECT options->'codes' AS codes FROM pgwarp_index_info('t_int8');
SELECT relname, reloptions FROM pg_class WHERE relname IN ('t_exact', 't_ivfadc') ORDER BY relname;
SELECT options FROM pgwarp_index_info('t_exact');
CREATE INDEX t_graph ON t USING graph (val) WITH (recall = 0.9);
SELECT options->'recall' AS recall FROM pgwarp_index_info('t_graph');
BEGIN;
ALTER INDEX t_graph SET (recall = 0.99);
SELECT mode FROM pg_locks WHERE relation = 't_graph'::regclass AND mode LIKE '%Exclusive%';
SELECT options->'recall' AS recall FROM pgwarp_index_info('t_graph');
COMMIT;
ALTER INDEX t_graph SET (recall = 2);
ALTER INDEX t_graph SET (recal = 0.9);
BEGIN;
ALTER INDEX t_graph SET (degree = 16);
SELECT mode FROM pg_locks WHERE relation = 't_graph'::regclass AND mode LIKE '%Exclusive%';
ROLLBACK;
SELECT pg_get_indexdef('t_graph'::regclass);
ALTER INDEX t_graph RESET (recall);
SELECT options->'recall' AS recall FROM pgwarp_index_info('t_graph');
DROP TABLE t;

-- columns without dimensions

CREATE TABLE t (val vector);
CREATE INDEX ON t USING exact (val);
CREATE INDEX ON t USING ivfadc (val);
INSERT INTO t VALUES ('[1,2,3]'), ('[1,2]');
CREATE INDEX ON t USING exact ((val::vector(3))) WHERE vector_dims(val) = 3;
CREATE INDEX ON t USING exact ((val::vector(3)));
DROP TABLE t;

-- other types

CREATE TABLE t (val real[], n integer);
CREATE INDEX ON t USING exact (val);
CREATE INDEX ON t USING ivfadc (n);
DROP TABLE t;

-- settings

SHOW pgwarp.recall;
SET pgwarp.recall = 0;
SET pgwarp.recall = 1.5;
SET pgwarp.ivfadc_probes = -1;
SET pgwarp.refine_factor = -1;
SET pgwarp.iterative = sometimes;
SET pgwarp.unknown = 1;
ALTER SYSTEM SET pgwarp.gpus = 'a,b';
ALTER SYSTEM SET pgwarp.gpus = '0,';

-- operator classes

SELECT am.amname, opc.opcname, opc.opcdefault, amvalidate(opc.oid)
	FROM pg_opclass opc JOIN pg_am am ON am.oid = opc.opcmethod
	WHERE am.amname IN ('exact', 'ivfadc', 'pqtree') ORDER BY 1, 2;
SELECT a.amname, p.name, pg_indexam_has_property(a.oid, p.name)
	FROM pg_am a, unnest(array['can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include']) p(name)
	WHERE a.amname = 'exact' ORDER BY 2;
-- a method compares by the metrics of its own operator classes
CREATE TABLE t (val vector(3), half halfvec(3));
CREATE OPERATOR CLASS other_l1_ops FOR TYPE vector USING ivfadc AS OPERATOR 1 <+> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l1(internal), FUNCTION 2 pgwarp_element_float32(internal);
CREATE OPERATOR CLASS other_hamming_ops FOR TYPE halfvec USING exact AS OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_hamming(internal), FUNCTION 2 pgwarp_element_float16(internal);
CREATE INDEX ON t USING ivfadc (val other_l1_ops);
CREATE INDEX ON t USING exact (half other_hamming_ops);
DROP OPERATOR FAMILY other_l1_ops USING ivfadc;
DROP OPERATOR FAMILY other_hamming_ops USING exact;
DROP TABLE t;

-- ALTER INDEX refuses what CREATE INDEX does

CREATE TABLE t (title text, tags integer[], val vector(3), large integer[]);
CREATE INDEX t_title ON t USING matchcount (title);
CREATE INDEX t_tags ON t USING matchcount (tags);
CREATE INDEX t_val ON t USING matchcount (val vector_cosine_ops);
CREATE INDEX t_large ON t USING matchcount (large int4_array_minhash_ops);
CREATE INDEX t_ivfadc ON t USING ivfadc (val);
ALTER INDEX t_title SET (hashes = 20);
ALTER INDEX t_title SET (recall = 0.9);
ALTER TABLE t_title SET (lsh = rbh);
ALTER INDEX t_title SET (gram = 4);
ALTER INDEX t_tags SET (gram = 2);
ALTER INDEX t_val SET (buckets = 8);
ALTER INDEX t_val SET (hashes = 64, recall = 0.9);
ALTER INDEX t_large SET (gram = 2);
ALTER INDEX t_large SET (hashes = 64);
ALTER INDEX t_ivfadc SET (subquantizers = 4);
SELECT relname, reloptions FROM pg_class WHERE relname ~ '^t_' ORDER BY 1;
REINDEX TABLE t;
-- options that an earlier version let pass are no obstacle to other changes, and can be taken back
UPDATE pg_class SET reloptions = '{gram=4,hashes=20}' WHERE relname = 't_title';
ALTER INDEX t_title RENAME TO t_renamed;
ALTER INDEX t_renamed SET (gram = 5);
ALTER INDEX t_renamed RESET (hashes);
ALTER INDEX t_renamed SET (gram = 5);
SELECT relname, reloptions FROM pg_class WHERE relname = 't_renamed';
REINDEX INDEX t_renamed;
ALTER INDEX t_renamed RESET (gram);
-- other indexes are not looked at
CREATE INDEX t_hash ON t USING hash (title);
ALTER INDEX t_hash SET (fillfactor = 50);
DROP TABLE t;

-- rows that VACUUM found dead count by themselves

CREATE TABLE t (id integer, val vector(3));
INSERT INTO t SELECT i, ARRAY[i, 1, 1]::vector FROM generate_series(1, 50) i;
CREATE INDEX t_val ON t USING exact (val);
DELETE FROM t WHERE id <= 5;
VACUUM (INDEX_CLEANUP ON) t;
SELECT rows, dead_rows FROM pgwarp_index_info('t_val');
DROP TABLE t;

-- functions refuse other indexes

CREATE TABLE t (id integer PRIMARY KEY, val vector(3));
CREATE INDEX t_val ON t USING exact (val);
SELECT pgwarp_index_info('t_pkey');
SELECT pgwarp_index_info('t');
SELECT pgwarp_recall('t_pkey');
CREATE TABLE parted (val vector(3)) PARTITION BY LIST (vector_dims(val));
CREATE INDEX parted_val ON parted USING exact (val);
CREATE INDEX parted_btree ON parted (val);
SELECT pgwarp_index_info('parted_val');
SELECT pgwarp_recall('parted_val');
SELECT pgwarp_prewarm('parted_val');
CALL pgwarp_merge('parted_val');
SELECT pgwarp_index_info('parted_btree');
SELECT pgwarp_prewarm('parted');
SELECT pgwarp_prewarm('t_pkey');
DROP TABLE parted;
SELECT pgwarp_recall('t_val', 0);
SELECT pgwarp_recall('t_val', 10, 0);
SELECT pgwarp_recall('t_val');

CREATE ROLE pgwarp_nobody;
SET ROLE pgwarp_nobody;
SELECT pgwarp_index_info('t_val');
SELECT pgwarp_recall('t_val');
RESET ROLE;
GRANT SELECT ON t TO pgwarp_nobody;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE pgwarp_nobody;
SELECT method, rows FROM pgwarp_index_info('t_val');
SELECT pgwarp_recall('t_val');
RESET ROLE;
DROP TABLE t;
DROP ROLE pgwarp_nobody;
