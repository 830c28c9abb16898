-- Order, btree and hash of vectors.
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt, vector_cmp(a, b)
FROM (VALUES ('[1,2,3]'::vector, '[1,2,3]'::vector), ('[1,2]', '[1,2,3]'), ('[1,2,3]', '[1,2]'), ('[2]', '[1,9]'), ('[-1]', '[1]'), ('[0,-0]', '[-0,0]'), ('[1,2]', '[1,3]')) AS t (a, b);
SELECT '[1,2]'::vector != '[1,2]';

SELECT amname, opcname, opcdefault, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE opcintype = 'vector'::regtype AND amname IN ('btree', 'hash') ORDER BY 1;

CREATE TABLE ordered (id int GENERATED ALWAYS AS IDENTITY, v vector);
INSERT INTO ordered (v) VALUES ('[0,0,0]'), ('[1,2,3]'), ('[1,1,1]'), (NULL), ('[1,1]'), ('[-0,0,0]'), ('[-1]'), ('[1,2,3]');
INSERT INTO ordered (v) SELECT ARRAY[i, -i]::vector FROM generate_series(100, 5000) i;
CREATE INDEX ordered_btree ON ordered (v);
ANALYZE ordered;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM ordered WHERE v = '[1,2,3]';
SELECT id FROM ordered WHERE v = '[1,2,3]' ORDER BY id;
SELECT id FROM ordered WHERE v = '[0,-0,0]' ORDER BY id;
EXPLAIN (COSTS OFF) SELECT v FROM ordered ORDER BY v LIMIT 7;
SELECT v FROM ordered ORDER BY v LIMIT 7;
SELECT v FROM ordered ORDER BY v DESC NULLS LAST LIMIT 2;
SELECT count(*) FROM ordered WHERE v > '[100]' AND v <= '[200,-200]';
SELECT count(*) FROM ordered WHERE v IS NULL;
SELECT min(id), max(id) FROM ordered WHERE v BETWEEN '[1]' AND '[2]';
RESET enable_seqscan;
CREATE UNIQUE INDEX ON ordered (v);
DROP INDEX ordered_btree;

-- hash index
CREATE INDEX ordered_hash ON ordered USING hash (v);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM ordered WHERE v = '[1,2,3]';
SELECT id FROM ordered WHERE v = '[1,2,3]' ORDER BY id;
SELECT id FROM ordered WHERE v = '[0,-0,0]' ORDER BY id;
SELECT id FROM ordered WHERE v = '[4999,-4999]';
SELECT id FROM ordered WHERE v = '[0,0]';
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX ordered_hash;

-- equal vectors hash alike, at both widths; with seed 0 the wide hash ends in the narrow one
SELECT vector_hash('[0,1]') = vector_hash('[-0,1]') AS narrow, vector_hash_extended('[0,1]', 7) = vector_hash_extended('[-0,1]', 7) AS wide;
SELECT bool_and((vector_hash_extended(v, 0) & 4294967295) = (vector_hash(v)::int8 & 4294967295)) AS agree,
	count(DISTINCT vector_hash(v)) > 4850 AS spread, bool_and(vector_hash_extended(v, 1) <> vector_hash_extended(v, 2)) AS seeded FROM ordered;
SELECT vector_hash('[0]') = vector_hash('[0,0]') AS dimensions_count;

-- hash join, merge join, hashed grouping and sets
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM ordered a JOIN ordered b USING (v);
SELECT count(*) FROM ordered a JOIN ordered b USING (v);
SET enable_mergejoin = on;
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM ordered a JOIN ordered b USING (v);
SELECT count(*) FROM ordered a JOIN ordered b USING (v);
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_mergejoin;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT v, count(*) FROM ordered GROUP BY v;
SELECT count(*), sum(n), max(n) FROM (SELECT count(*) AS n FROM ordered GROUP BY v) s;
SELECT v, count(*) FROM ordered WHERE id <= 8 GROUP BY v HAVING count(*) > 1 ORDER BY v;
RESET enable_sort;
SELECT count(*) FROM (SELECT v FROM ordered INTERSECT SELECT v FROM ordered WHERE id <= 8) s;
SELECT count(DISTINCT v) FROM ordered;

-- hash partitions: equal vectors go to the same one
CREATE TABLE parts (v vector) PARTITION BY HASH (v);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT v FROM ordered;
SELECT count(*) FROM parts;
SELECT count(DISTINCT tableoid) FROM parts WHERE v = '[0,0,0]';
SELECT count(*) > 1000 AS used FROM parts GROUP BY tableoid;

DROP TABLE ordered, parts;
