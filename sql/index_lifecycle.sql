SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;

-- unlogged

CREATE UNLOGGED TABLE t (val vector(3));
INSERT INTO t VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
CREATE INDEX ON t USING exact (val);
CREATE INDEX ON t USING ivfadc (val vector_ip_ops);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT * FROM t ORDER BY val <#> '[3,3,3]';
DROP TABLE t;

-- temporary, emptied at commit

CREATE TEMPORARY TABLE t (val vector(3)) ON COMMIT DELETE ROWS;
CREATE INDEX ON t USING exact (val);
CREATE INDEX ON t USING ivfadc (val vector_ip_ops);
BEGIN;
INSERT INTO t VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT * FROM t ORDER BY val <#> '[3,3,3]';
COMMIT;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
BEGIN;
INSERT INTO t VALUES ('[5,5,5]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
COMMIT;
DROP TABLE t;

-- truncate twice in a transaction, and its rollback

CREATE TABLE t (val vector(3));
INSERT INTO t VALUES ('[1,2,3]'), ('[1,1,1]');
CREATE INDEX ON t USING exact (val);
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES ('[4,4,4]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
TRUNCATE t;
INSERT INTO t VALUES ('[5,5,5]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
ROLLBACK;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
BEGIN;
TRUNCATE t;
TRUNCATE t;
INSERT INTO t VALUES ('[6,6,6]');
COMMIT;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';

-- rollback of CREATE INDEX, of inserts, of a savepoint

DROP INDEX t_val_idx;
BEGIN;
CREATE INDEX t_exact ON t USING exact (val);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
ROLLBACK;
SELECT count(*) FROM pg_class WHERE relname = 't_exact';
CREATE INDEX t_exact ON t USING exact (val);
BEGIN;
INSERT INTO t VALUES ('[3,3,3]');
SAVEPOINT s;
INSERT INTO t VALUES ('[2,2,2]');
ROLLBACK TO s;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
ROLLBACK;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';

-- rebuilding

INSERT INTO t SELECT ARRAY[i, i, i]::vector FROM generate_series(10, 60) i;
REINDEX INDEX t_exact;
SELECT rows, delta_rows FROM pgwarp_index_info('t_exact');
REINDEX INDEX CONCURRENTLY t_exact;
SELECT rows FROM pgwarp_index_info('t_exact');
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
DROP INDEX t_exact;
CREATE INDEX CONCURRENTLY t_ivfadc ON t USING ivfadc (val);
SELECT indisvalid FROM pg_index WHERE indexrelid = 't_ivfadc'::regclass;
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
DROP INDEX t_ivfadc;
CREATE INDEX CONCURRENTLY t_pqtree ON t USING pqtree (val);
SELECT indisvalid FROM pg_index WHERE indexrelid = 't_pqtree'::regclass;
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
REINDEX INDEX CONCURRENTLY t_pqtree;
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
DROP INDEX t_pqtree;
CREATE INDEX t_ivfadc ON t USING ivfadc (val);
CLUSTER t USING t_ivfadc;
VACUUM FULL t;
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
ALTER TABLE t ALTER COLUMN val TYPE vector(3) USING val + '[1,1,1]';
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
DROP TABLE t;

-- partial and expression indexes

CREATE TABLE t (id integer PRIMARY KEY, kind integer, a real, b real);
INSERT INTO t SELECT i, i % 3, i, 2 * i FROM generate_series(1, 300) i;
CREATE INDEX t_partial ON t USING exact ((ARRAY[a, b]::vector(2))) WHERE kind = 1;
CREATE INDEX t_expression ON t USING ivfadc ((ARRAY[a, b]::vector(2)));
SELECT rows FROM pgwarp_index_info('t_partial');
SELECT rows FROM pgwarp_index_info('t_expression');
SELECT id FROM t WHERE kind = 1 ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 3;
SELECT id FROM t ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 1;
UPDATE t SET kind = 1 WHERE id = 11;
SELECT id FROM t WHERE kind = 1 ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 3;
DROP INDEX t_expression;
CREATE INDEX t_expression ON t USING ivfadc ((ARRAY[a, b]::vector(2))) WITH (refine = none);
SELECT id FROM t ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 1;
SELECT pgwarp_recall('t_partial', 5, 20), pgwarp_recall('t_expression', 5, 20) > 0.5 AS recall;
DROP TABLE t;

-- lateral joins and rescans; scrollable and held cursors

CREATE TABLE t (id integer PRIMARY KEY, val vector(2));
INSERT INTO t SELECT i, ARRAY[i, -i]::vector FROM generate_series(1, 3000) i;
CREATE INDEX t_val ON t USING exact (val);
SELECT q.i, array_agg(n.id ORDER BY n.id) FROM generate_series(100, 500, 100) q(i)
	CROSS JOIN LATERAL (SELECT id FROM t ORDER BY val <-> ARRAY[q.i, -q.i]::vector LIMIT 3) n GROUP BY q.i ORDER BY q.i;
SELECT count(*) FROM generate_series(1, 300) q(i)
	CROSS JOIN LATERAL (SELECT id FROM t ORDER BY val <-> ARRAY[q.i, -q.i]::vector LIMIT 1) n WHERE n.id = q.i;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY val <-> '[1500.2,-1500.2]';
FETCH 1 FROM c;
MOVE 1500 FROM c;
INSERT INTO t VALUES (5000, '[1500.2,-1500.2]');
FETCH 1 FROM c;
MOVE ALL FROM c;
FETCH 1 FROM c;
CLOSE c;
DECLARE s SCROLL CURSOR FOR SELECT id FROM t ORDER BY val <-> '[0,0]' LIMIT 5;
FETCH 3 FROM s;
FETCH BACKWARD 1 FROM s;
COMMIT;

-- every row comes out, once

SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1]') s;
DROP INDEX t_val;
CREATE INDEX t_val ON t USING pqtree (val);
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1]') s;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> (SELECT NULL::vector)) s;
DROP INDEX t_val;
CREATE INDEX t_val ON t USING ivfadc (val);
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1]') s;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> (SELECT NULL::vector)) s;
SELECT count(*) FROM t;
SELECT count(*) FROM t WHERE val IS NOT NULL;
DROP TABLE t;

-- a type of the column that no index could be built for, though the values stay as they are

CREATE DOMAIN triple AS vector(3);
CREATE TABLE t (id serial, val vector(3), h halfvec(3), b bit(8));
INSERT INTO t (val, h, b) VALUES ('[1,2,3]', '[1,2,3]', '10101010'), ('[4,5,6]', '[4,5,6]', '11110000');
CREATE INDEX ON t USING exact (val);
CREATE INDEX ON t USING exact (h);
CREATE INDEX ON t USING exact (b bit_hamming_ops);
ALTER TABLE t ALTER COLUMN val TYPE vector;
ALTER TABLE t ALTER COLUMN val TYPE triple;
ALTER TABLE t ALTER COLUMN h TYPE halfvec;
ALTER TABLE t ALTER COLUMN b TYPE bit varying;
ALTER TABLE t ALTER COLUMN b TYPE bit varying(8);
SELECT id FROM t ORDER BY val <-> '[4,4,4]';
SELECT id FROM t ORDER BY h <-> '[4,4,4]';
SELECT id FROM t ORDER BY b <~> '11111111';
DROP INDEX t_val_idx;
ALTER TABLE t ALTER COLUMN val TYPE vector;
CREATE INDEX t_cast ON t USING exact ((val::vector(3)));
ALTER TABLE t ALTER COLUMN id TYPE bigint;
SELECT id FROM t ORDER BY val::vector(3) <-> '[4,4,4]';
DROP TABLE t;
DROP DOMAIN triple;

-- a concurrent build that failed leaves an index without pages, which is not corrupted

CREATE TABLE t (val vector);
INSERT INTO t VALUES ('[1,2,3]'), ('[1,2]');
CREATE INDEX CONCURRENTLY t_val ON t USING exact ((val::vector(3)));
SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 't_val'::regclass;
SELECT pgwarp_check('t_val');
SELECT pgwarp_check('t_val', true);
SELECT pgwarp_index_info('t_val');
SELECT pgwarp_prewarm('t_val');
SELECT pgwarp_release('t_val');
CALL pgwarp_merge('t_val');
VACUUM t;
DELETE FROM t WHERE vector_dims(val) = 2;
REINDEX INDEX t_val;
SELECT live_rows FROM pgwarp_check('t_val', true);
DROP TABLE t;
