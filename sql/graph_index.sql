-- An index of method graph in every place where an index may stand.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
-- many candidates, so that answers don't depend on how a device built the graph
SET pgwarp.graph_ef_search = 2000;

-- unlogged, temporary, truncated, rolled back

CREATE UNLOGGED TABLE t (val vector(3));
INSERT INTO t VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
CREATE INDEX ON t USING graph (val);
CREATE INDEX ON t USING graph (val vector_ip_ops) WITH (vectors = half);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT * FROM t ORDER BY val <#> '[3,3,3]';
DROP TABLE t;

CREATE TEMPORARY TABLE t (val vector(3)) ON COMMIT DELETE ROWS;
CREATE INDEX ON t USING graph (val);
CREATE INDEX ON t USING graph (val vector_cosine_ops) WITH (vectors = bits);
BEGIN;
INSERT INTO t VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT * FROM t ORDER BY val <=> '[3,3,3]';
COMMIT;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
DROP TABLE t;

CREATE TABLE t (val vector(3));
INSERT INTO t VALUES ('[1,2,3]'), ('[1,1,1]');
CREATE INDEX t_val ON t USING graph (val);
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES ('[4,4,4]');
TRUNCATE t;
INSERT INTO t VALUES ('[5,5,5]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
ROLLBACK;
BEGIN;
INSERT INTO t VALUES ('[3,3,3]');
SAVEPOINT s;
INSERT INTO t VALUES ('[2,2,2]');
ROLLBACK TO s;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
ROLLBACK;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
INSERT INTO t SELECT ARRAY[i, i, i]::vector FROM generate_series(10, 60) i;
REINDEX INDEX CONCURRENTLY t_val;
SELECT rows, delta_rows FROM pgwarp_index_info('t_val');
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
VACUUM FULL t;
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
ALTER TABLE t ALTER COLUMN val TYPE vector(3) USING val + '[1,1,1]';
SELECT * FROM t ORDER BY val <-> '[30.2,30.2,30.2]' LIMIT 3;
DROP TABLE t;

-- one row, rows that are all the same, rows of one dimension

CREATE TABLE t (id integer, val vector(2), one vector(1));
INSERT INTO t VALUES (1, '[1,1]', '[1]');
CREATE INDEX t_val ON t USING graph (val);
SELECT id FROM t ORDER BY val <-> '[0,0]';
INSERT INTO t SELECT i, '[1,1]', ARRAY[i]::vector FROM generate_series(2, 500) i;
REINDEX INDEX t_val;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[0,0]') s;
SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1]' LIMIT 20) s;
CREATE INDEX t_one ON t USING graph (one);
SELECT id FROM t ORDER BY one <-> '[250.2]' LIMIT 3;
DROP TABLE t;

-- zero vectors and NULLs

CREATE TABLE t (id integer, val vector(3));
INSERT INTO t SELECT i, CASE WHEN i % 4 = 0 THEN NULL WHEN i % 4 = 1 THEN '[0,0,0]' ELSE ARRAY[i, 1, i % 7]::vector END FROM generate_series(1, 400) i;
CREATE INDEX t_l2 ON t USING graph (val);
CREATE INDEX t_cosine ON t USING graph (val vector_cosine_ops);
SELECT rows FROM pgwarp_index_info('t_l2');
SELECT rows FROM pgwarp_index_info('t_cosine');
SELECT count(*) FROM (SELECT val FROM t ORDER BY val <-> '[0,0,0]') s WHERE val = '[0,0,0]';
SELECT count(*) FROM (SELECT val FROM t ORDER BY val <=> '[1,2,3]') s;
SELECT count(*) FROM (SELECT val FROM t ORDER BY val <=> '[0,0,0]') s;
SELECT count(*) FROM (SELECT val FROM t ORDER BY val <-> NULL) s;
DROP TABLE t;

-- partial and expression indexes

CREATE TABLE t (id integer PRIMARY KEY, kind integer, a real, b real);
INSERT INTO t SELECT i, i % 3, i, 2 * i FROM generate_series(1, 300) i;
CREATE INDEX t_partial ON t USING graph ((ARRAY[a, b]::vector(2))) WHERE kind = 1;
SELECT rows FROM pgwarp_index_info('t_partial');
SELECT id FROM t WHERE kind = 1 ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 3;
UPDATE t SET kind = 1 WHERE id = 11;
SELECT id FROM t WHERE kind = 1 ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 3;
CREATE INDEX t_expression ON t USING graph ((ARRAY[a, b]::vector(2))) WITH (vectors = half);
SELECT id FROM t ORDER BY ARRAY[a, b]::vector(2) <-> '[10.2,20.4]' LIMIT 1;
SELECT pgwarp_recall('t_partial', 5, 20) > 0.9, pgwarp_recall('t_expression', 5, 20) > 0.9;
DROP TABLE t;

-- joins, rescans, cursors, every row once

CREATE TABLE t (id integer PRIMARY KEY, kind integer, val vector(2)) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 10, ARRAY[i, -i]::vector FROM generate_series(1, 3000) i;
CREATE INDEX t_val ON t USING graph (val) INCLUDE (id);
SELECT q.i, array_agg(n.id ORDER BY n.id) FROM generate_series(100, 500, 100) q(i)
	CROSS JOIN LATERAL (SELECT id FROM t ORDER BY val <-> ARRAY[q.i, -q.i]::vector LIMIT 3) n GROUP BY q.i ORDER BY q.i;
SELECT count(*) FROM generate_series(1, 300) q(i)
	CROSS JOIN LATERAL (SELECT id FROM t ORDER BY val <-> ARRAY[q.i, -q.i]::vector LIMIT 1) n WHERE n.id = q.i;
SELECT count(*) FROM generate_series(1, 300) q(i)
	CROSS JOIN LATERAL (SELECT id FROM t WHERE kind = 4 ORDER BY val <-> ARRAY[q.i, -q.i]::vector LIMIT 1) n WHERE abs(n.id - q.i) <= 5;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY val <-> '[1500.2,-1500.2]';
FETCH 1 FROM c;
MOVE 1500 FROM c;
INSERT INTO t VALUES (5000, 1, '[1500.2,-1500.2]');
FETCH 1 FROM c;
MOVE ALL FROM c;
FETCH 1 FROM c;
CLOSE c;
DECLARE s SCROLL CURSOR FOR SELECT id FROM t ORDER BY val <-> '[0,0]' LIMIT 5;
FETCH 3 FROM s;
FETCH BACKWARD 1 FROM s;
ROLLBACK;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[1,1]') s;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> (SELECT NULL::vector)) s;
SELECT count(*) FROM t;

-- included columns, and the distance where the index knows it

VACUUM t;
EXPLAIN (COSTS OFF) SELECT id, val <-> '[9.2,-9.2]' FROM t ORDER BY val <-> '[9.2,-9.2]' LIMIT 3;
SELECT id, round((val <-> '[9.2,-9.2]')::numeric, 4) AS distance FROM t ORDER BY val <-> '[9.2,-9.2]' LIMIT 3;
CREATE INDEX t_half ON t USING graph (val vector_l1_ops) INCLUDE (id, kind) WITH (vectors = half);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <+> '[9.2,-9.2]' LIMIT 3;
SELECT id FROM t WHERE kind = 7 ORDER BY val <+> '[19.2,-19.2]' LIMIT 3;
CREATE INDEX t_bits ON t USING graph (val vector_cosine_ops) INCLUDE (id) WITH (vectors = bits);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <=> '[9.2,-9.2]' LIMIT 3;
SELECT id FROM t WHERE val <-> '[9.2,-9.2]' < 2 ORDER BY val <-> '[9.2,-9.2]';

-- many queries at once, graphs

SELECT s.query, t.id, round(s.distance::numeric, 4) FROM knn_search('t_val', ARRAY['[100.2,-100.2]', NULL, '[200.2,-200.2]']::vector[], 2) s
	JOIN t ON t.ctid = s.tid ORDER BY 1, 3;
SELECT count(*), count(DISTINCT a.id), bool_and(abs(a.id - b.id) <= 2) FROM knn_graph('t_val', 2) g JOIN t a ON a.ctid = g.tid JOIN t b ON b.ctid = g.neighbor;
DROP TABLE t;

-- partitions

CREATE TABLE parts (id integer, kind integer, val vector(2)) PARTITION BY LIST (kind);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts SELECT i, i % 2, ARRAY[i, i]::vector FROM generate_series(1, 2000) i;
CREATE INDEX parts_val ON parts USING graph (val);
SELECT id FROM parts ORDER BY val <-> '[700.2,700.2]' LIMIT 4;
SELECT id FROM parts ORDER BY val <-> '[700.2,700.2]' LIMIT 4;
SELECT id FROM parts WHERE kind = 1 ORDER BY val <-> '[700.2,700.2]' LIMIT 2;
DROP TABLE parts;
