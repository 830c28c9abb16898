SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;

-- vector_l2_ops

CREATE TABLE t (val vector(3));
INSERT INTO t (val) VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
CREATE INDEX ON t USING ivfadc (val vector_l2_ops);

INSERT INTO t (val) VALUES ('[1,2,4]');

SELECT * FROM t ORDER BY val <-> '[3,3,3]';
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val <-> (SELECT NULL::vector)) t2;
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val <-> '[0,0,0]') t2;
SELECT COUNT(*) FROM t;

DELETE FROM t WHERE val = '[1,2,3]';
SELECT * FROM t ORDER BY val <-> '[3,3,3]';

TRUNCATE t;
SELECT * FROM t ORDER BY val <-> '[3,3,3]';
INSERT INTO t (val) VALUES ('[1,2,3]'), (NULL);
SELECT * FROM t ORDER BY val <-> '[3,3,3]';

DROP TABLE t;

-- vector_ip_ops

CREATE TABLE t (val vector(3));
INSERT INTO t (val) VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
CREATE INDEX ON t USING ivfadc (val vector_ip_ops);

INSERT INTO t (val) VALUES ('[1,2,4]');

SELECT * FROM t ORDER BY val <#> '[3,3,3]';
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val <#> (SELECT NULL::vector)) t2;
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val <#> '[0,0,0]') t2;
SELECT COUNT(*) FROM t;

DELETE FROM t WHERE val = '[1,2,3]';
SELECT * FROM t ORDER BY val <#> '[3,3,3]';

TRUNCATE t;
SELECT * FROM t ORDER BY val <#> '[3,3,3]';
INSERT INTO t (val) VALUES ('[1,2,3]'), (NULL);
SELECT * FROM t ORDER BY val <#> '[3,3,3]';

DROP TABLE t;

-- vector_cosine_ops

CREATE TABLE t (val vector(3));
INSERT INTO t (val) VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
CREATE INDEX ON t USING ivfadc (val vector_cosine_ops);

INSERT INTO t (val) VALUES ('[1,2,4]');

SELECT * FROM t ORDER BY val <=> '[3,3,3]';
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val <=> (SELECT NULL::vector)) t2;
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val <=> '[0,0,0]') t2;
SELECT COUNT(*) FROM t;

DELETE FROM t WHERE val = '[1,2,3]';
SELECT * FROM t ORDER BY val <=> '[3,3,3]';

TRUNCATE t;
SELECT * FROM t ORDER BY val <=> '[3,3,3]';
INSERT INTO t (val) VALUES ('[1,2,3]'), (NULL);
SELECT * FROM t ORDER BY val <=> '[3,3,3]';

DROP TABLE t;

-- the method has no L1

CREATE TABLE t (val vector(3));
CREATE INDEX ON t USING ivfadc (val vector_l1_ops);
DROP TABLE t;
