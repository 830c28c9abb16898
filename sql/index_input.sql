SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;

-- queries of other dimensions

CREATE TABLE t (val vector(3));
INSERT INTO t VALUES ('[1,2,3]');
CREATE INDEX t_val ON t USING exact (val);
SELECT * FROM t ORDER BY val <-> '[1,2]';
DROP INDEX t_val;
CREATE INDEX t_val ON t USING ivfadc (val);
SELECT * FROM t ORDER BY val <-> '[1,2]';

-- one row; fewer rows than lists

SELECT * FROM t ORDER BY val <-> '[3,3,3]';
DROP INDEX t_val;
SET client_min_messages = notice;
CREATE INDEX t_val ON t USING ivfadc (val) WITH (lists = 100);
SET client_min_messages = warning;
INSERT INTO t VALUES ('[3,3,4]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
DROP TABLE t;

-- an empty table

CREATE TABLE t (val vector(3));
CREATE INDEX ON t USING exact (val);
CREATE INDEX ON t USING ivfadc (val vector_ip_ops);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT * FROM t ORDER BY val <#> '[3,3,3]';
VACUUM t;
INSERT INTO t VALUES ('[1,2,3]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT * FROM t ORDER BY val <#> '[3,3,3]';
DROP TABLE t;

-- only rows that aren't indexed

CREATE TABLE t (val vector(3));
INSERT INTO t VALUES (NULL), ('[0,0,0]');
CREATE INDEX t_exact ON t USING exact (val vector_cosine_ops);
CREATE INDEX t_ivfadc ON t USING ivfadc (val vector_cosine_ops);
SELECT rows, delta_rows FROM pgwarp_index_info('t_exact');
SELECT rows, delta_rows FROM pgwarp_index_info('t_ivfadc');
INSERT INTO t VALUES (NULL), ('[0,0,0]');
SELECT rows, delta_rows FROM pgwarp_index_info('t_exact');
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <=> '[1,1,1]') s;
DROP TABLE t;

-- all rows equal

CREATE TABLE t (id integer, val vector(4));
INSERT INTO t SELECT i, '[1,2,3,4]' FROM generate_series(1, 2000) i;
CREATE INDEX t_exact ON t USING exact (val);
SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1,1,1]') s;
SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1,1,1]' LIMIT 1500) s;
DROP INDEX t_exact;
CREATE INDEX t_ivfadc ON t USING ivfadc (val);
SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1,1,1]') s;
SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1,1,1]' LIMIT 1500) s;
DROP TABLE t;

-- 16,000 dimensions

CREATE TABLE t (id integer, val vector(16000));
INSERT INTO t SELECT i, array_fill(i, ARRAY[16000])::vector FROM generate_series(1, 20) i;
CREATE INDEX t_exact ON t USING exact (val);
SELECT id FROM t ORDER BY val <-> array_fill(7.2, ARRAY[16000])::vector LIMIT 3;
DROP INDEX t_exact;
CREATE INDEX t_ivfadc ON t USING ivfadc (val);
INSERT INTO t SELECT i, array_fill(i, ARRAY[16000])::vector FROM generate_series(21, 25) i;
SELECT id FROM t ORDER BY val <-> array_fill(24.1, ARRAY[16000])::vector LIMIT 3;
DROP TABLE t;
CREATE TABLE t (val vector(16001));

-- elements near the limits of single precision

CREATE TABLE t (id integer, val vector(2));
INSERT INTO t VALUES (1, '[3e38,0]'), (2, '[-3e38,1]'), (3, '[1e-40,0]'), (4, '[0,0]'), (5, '[100000,1]');
CREATE INDEX t_exact ON t USING exact (val);
SELECT id FROM t ORDER BY val <-> '[0,0]', id;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <-> '[3e38,0]') s;
DROP INDEX t_exact;
CREATE INDEX t_ivfadc ON t USING ivfadc (val);
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <-> '[3e38,0]') s;
DROP TABLE t;
