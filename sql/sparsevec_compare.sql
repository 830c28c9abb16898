-- Order, btree and hash of sparse vectors.
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt, sparsevec_cmp(a, b)
FROM (VALUES ('{1:1,3:3}/3'::sparsevec, '{1:1,3:3}/3'::sparsevec), ('{1:1,3:3}/3', '{1:1,3:4}/3'), ('{2:1}/3', '{1:1}/3'), ('{2:1}/3', '{1:-1}/3'), ('{2:-1}/3', '{3:-1}/3'), ('{}/2', '{}/3'), ('{}/2', '{3:1}/3'), ('{}/2', '{3:-1}/3'), ('{}/3', '{3:-1}/3'),
	('{1:1}/2', '{1:1,2:-1}/2'), ('{1:1}/2', '{1:1,2:1}/2'), ('{1:1}/1', '{1:1,2:-1}/2'), ('{}/2', '{2:1}/2')) AS t (a, b);
SELECT '{1:1}/2'::sparsevec != '{1:1}/2';

-- the order is that of the same values as vectors: every pair of all vectors of up to 3 elements from -1, 0, 1
CREATE TABLE small AS SELECT ARRAY[x]::vector AS v FROM generate_series(-1, 1) x UNION ALL SELECT ARRAY[x, y]::vector FROM generate_series(-1, 1) x, generate_series(-1, 1) y
	UNION ALL SELECT ARRAY[x, y, z]::vector FROM generate_series(-1, 1) x, generate_series(-1, 1) y, generate_series(-1, 1) z;
SELECT count(*), bool_and(sparsevec_cmp(a.v::sparsevec, b.v::sparsevec) = vector_cmp(a.v, b.v)) AS same,
	bool_and((sparsevec_hash(a.v::sparsevec) = sparsevec_hash(b.v::sparsevec)) = (a.v = b.v)) AS hashes FROM small a, small b;

SELECT amname, opcname, opcdefault, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE opcintype = 'sparsevec'::regtype AND amname IN ('btree', 'hash') ORDER BY 1;

CREATE TABLE ordered (id int GENERATED ALWAYS AS IDENTITY, s sparsevec);
INSERT INTO ordered (s) VALUES ('{}/3'), ('{1:1,3:3}/3'), ('{2:1}/3'), (NULL), ('{2:1}/2'), ('{}/3'), ('{1:-1}/1'), ('{1:1,3:3}/3');
INSERT INTO ordered (s) SELECT ('{' || i || ':' || i || ',' || i + 7 || ':-1}/6000')::sparsevec FROM generate_series(100, 5000) i;
CREATE INDEX ordered_btree ON ordered (s);
ANALYZE ordered;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM ordered WHERE s = '{1:1,3:3}/3';
SELECT id FROM ordered WHERE s = '{1:1,3:3}/3' ORDER BY id;
SELECT id FROM ordered WHERE s = '[0,0,-0]'::vector ORDER BY id;
EXPLAIN (COSTS OFF) SELECT s FROM ordered ORDER BY s LIMIT 4;
SELECT s FROM ordered ORDER BY s LIMIT 4;
SELECT s FROM ordered ORDER BY s DESC NULLS LAST LIMIT 3;
SELECT count(*) FROM ordered WHERE s > '{200:201}/6000' AND s <= '{100:100}/6000';
SELECT count(*) FROM ordered WHERE s IS NULL;
RESET enable_seqscan;
CREATE UNIQUE INDEX ON ordered (s);
DROP INDEX ordered_btree;

-- hash index
CREATE INDEX ordered_hash ON ordered USING hash (s);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM ordered WHERE s = '{1:1,3:3}/3';
SELECT id FROM ordered WHERE s = '{1:1,3:3}/3' ORDER BY id;
SELECT id FROM ordered WHERE s = '{4999:4999,5006:-1}/6000';
SELECT id FROM ordered WHERE s = '{}/4';
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX ordered_hash;

-- dimensions count, the order of the text does not; with seed 0 the wide hash ends in the narrow one
SELECT sparsevec_hash('{}/2') = sparsevec_hash('{}/3') AS dimensions, sparsevec_hash('{1:1,2:2}/3') = sparsevec_hash('{2:2,1:1,3:0}/3') AS text, sparsevec_hash('{1:1}/3') = sparsevec_hash('{2:1}/3') AS indices;
SELECT bool_and((sparsevec_hash_extended(s, 0) & 4294967295) = (sparsevec_hash(s)::int8 & 4294967295)) AS agree,
	count(DISTINCT sparsevec_hash(s)) > 4850 AS spread, bool_and(sparsevec_hash_extended(s, 1) <> sparsevec_hash_extended(s, 2)) AS seeded FROM ordered;

-- hash join, merge join, hashed grouping and sets
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM ordered a JOIN ordered b USING (s);
SELECT count(*) FROM ordered a JOIN ordered b USING (s);
SET enable_mergejoin = on;
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM ordered a JOIN ordered b USING (s);
SELECT count(*) FROM ordered a JOIN ordered b USING (s);
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(*), sum(n), max(n) FROM (SELECT count(*) AS n FROM ordered GROUP BY s) g;
SELECT s, count(*) FROM ordered WHERE id <= 8 GROUP BY s HAVING count(*) > 1 ORDER BY s;
SELECT count(*) FROM (SELECT s FROM ordered INTERSECT SELECT s FROM ordered WHERE id <= 8) i;
SELECT count(DISTINCT s) FROM ordered;

-- hash partitions
CREATE TABLE parts (s sparsevec) PARTITION BY HASH (s);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT s FROM ordered;
SELECT count(*) FROM parts;
SELECT count(*) > 1000 AS used FROM parts GROUP BY tableoid;
DROP TABLE ordered, parts, small;
