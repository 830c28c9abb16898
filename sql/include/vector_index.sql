-- an index of vectors: :method, :operators the operator class, :operator its operator
CREATE TABLE t (val vector(3));
INSERT INTO t (val) VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL);
CREATE INDEX ON t USING :method (val :operators);

INSERT INTO t (val) VALUES ('[1,2,4]');

SELECT * FROM t ORDER BY val :operator '[3,3,3]';
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val :operator (SELECT NULL::vector)) t2;
SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY val :operator '[0,0,0]') t2;
SELECT COUNT(*) FROM t;

DELETE FROM t WHERE val = '[1,2,3]';
SELECT * FROM t ORDER BY val :operator '[3,3,3]';

TRUNCATE t;
SELECT * FROM t ORDER BY val :operator '[3,3,3]';
INSERT INTO t (val) VALUES ('[1,2,3]'), (NULL);
SELECT * FROM t ORDER BY val :operator '[3,3,3]';

DROP TABLE t;
