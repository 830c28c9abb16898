-- Distances, arithmetic, order, aggregates and the binary form of halfvecs.
\pset null '(null)'
SET extra_float_digits = 1;

-- distances: each operator is its function
SELECT l2_distance('[0,0]'::halfvec, '[3,4]'), '[0,0]'::halfvec <-> '[3,4]' AS operator, halfvec_l2_squared_distance('[0,0]', '[3,4]');
SELECT inner_product('[1,2]'::halfvec, '[3,4]'), halfvec_negative_inner_product('[1,2]', '[3,4]'), '[1,2]'::halfvec <#> '[3,4]' AS operator;
SELECT cosine_distance('[1,0]'::halfvec, '[0,2]'), '[1,2]'::halfvec <=> '[-2,-4]' AS opposite, '[1,2]'::halfvec <=> '[2,4]' AS same;
SELECT l1_distance('[0,0]'::halfvec, '[3,-4]'), '[0,0]'::halfvec <+> '[3,-4]' AS operator;
SELECT halfvec_spherical_distance('[1,0]', '[0,1]') AS quarter, halfvec_spherical_distance('[2,0]', '[-2,0]') AS clamped;
SELECT '[65504,65504]'::halfvec <-> '[-65504,-65504]' AS beyond_halves, '[65504]'::halfvec <#> '[65504]' AS product, '[6e-8]'::halfvec <-> '[0]' AS smallest;
SELECT '[0,0]'::halfvec <=> '[1,2]' AS left, '[0,0]'::halfvec <=> '[0,0]' AS both;

-- the bits of the same values as vectors
CREATE TABLE pairs AS SELECT d, a, b FROM unnest(ARRAY[1, 2, 7, 8, 9, 15, 16, 17, 100, 1537, 16000]) AS d,
	LATERAL (SELECT array_agg(i * 7919 % 1009 / 1009::float8 ORDER BY i)::halfvec AS a, array_agg((i * 104729 % 997 / 997::float8 - 0.5) * 10 ^ (i % 9 - 6) ORDER BY i)::halfvec AS b
		FROM generate_series(1, d) i) s;
SELECT d, a <-> b AS l2, a <#> b AS inner_product, a <=> b AS cosine, a <+> b AS l1 FROM pairs WHERE d IN (17, 1537);
SELECT count(*), bool_and((a <-> b) = (x <-> y)) AS l2, bool_and((a <#> b) = (x <#> y)) AS inner_product, bool_and((a <=> b) = (x <=> y)) AS cosine, bool_and((a <+> b) = (x <+> y)) AS l1,
	bool_and(l2_norm(a) = vector_norm(x)) AS norm, bool_and(halfvec_l2_squared_distance(a, b) = vector_l2_squared_distance(x, y)) AS squared,
	bool_and(halfvec_spherical_distance(l2_normalize(a), l2_normalize(b)) = vector_spherical_distance(l2_normalize(a)::vector, l2_normalize(b)::vector)) AS spherical,
	bool_and(l2_normalize(a) = l2_normalize(x)::halfvec) AS normalised, bool_and(a + b = (x + y)::halfvec) AS sum, bool_and(a - b = (x - y)::halfvec) AS difference,
	bool_and(binary_quantize(b) = binary_quantize(y)) AS bits, bool_and((a || b)::text = (x || y)::text OR d > 8000) AS concatenation
FROM pairs, LATERAL (SELECT a::vector AS x, b::vector AS y) s WHERE d <= 8000;
DROP TABLE pairs;

-- dimensions must agree
SELECT '[1,2]'::halfvec <-> '[3]';
SELECT inner_product('[1]'::halfvec, '[1,2]');
SELECT '[1,2]'::halfvec + '[3]';

-- arithmetic
SELECT '[1,2,3]'::halfvec + '[4,5,6]' AS sum, '[1,2,3]'::halfvec - '[4,5,6]' AS difference, '[1,2,3]'::halfvec * '[4,5,-6]' AS product, '[1,2,3]'::halfvec || '[4,5]' AS concatenation;
SELECT '[2048]'::halfvec + '[1]' AS tie_down, '[2050]'::halfvec + '[1]' AS tie_up, '[0,-0,1]'::halfvec * '[-1,1,0]' AS zeros, '[6e-8]'::halfvec * '[0.75]' AS subnormal;
SELECT '[65504]'::halfvec + '[15]' AS rounded, '[65504]'::halfvec + '[16]';
SELECT '[65504]'::halfvec - '[-65504]';
SELECT '[256]'::halfvec * '[256]';
SELECT '[1,1e-4]'::halfvec * '[1,1e-4]';
SELECT vector_dims(array_fill(0, ARRAY[15999])::halfvec || '[1]');
SELECT array_fill(0, ARRAY[16000])::halfvec || '[1]';

-- the others
SELECT vector_dims('[1,2,3]'::halfvec), l2_norm('[3,4]'::halfvec), l2_norm('[65504,65504]'::halfvec) AS large, l2_normalize('[3,4]'::halfvec), l2_normalize('[0,0]'::halfvec) AS zero,
	l2_normalize('[-65504]'::halfvec) AS largest, l2_normalize('[6e-8]'::halfvec) AS smallest;
SELECT binary_quantize('[1,0,-1,-0,6e-8]'::halfvec), subvector('[1,2,3,4,5]'::halfvec, 2, 3), subvector('[1,2,3]'::halfvec, -1, 3) AS before;
SELECT subvector('[1,2,3]'::halfvec, 4, 1);

-- order
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt, halfvec_cmp(a, b), halfvec_hash(a) = halfvec_hash(b) AS same_hash
FROM (VALUES ('[1,2]'::halfvec, '[1,2]'::halfvec), ('[1,2]', '[1,3]'), ('[1,3]', '[1,2]'), ('[1]', '[1,-1]'), ('[-1]', '[1]'), ('[0]', '[-0]'), ('[-6e-8]', '[0]')) AS t (a, b);
CREATE TABLE ordered (v halfvec);
INSERT INTO ordered SELECT ARRAY[i % 50, -i % 3]::halfvec FROM generate_series(1, 300) i;
SELECT count(DISTINCT v) FROM ordered;
SELECT v, count(*) FROM ordered GROUP BY v ORDER BY v DESC LIMIT 3;
CREATE INDEX ordered_btree ON ordered (v);
CREATE INDEX ordered_hash ON ordered USING hash (v);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT v FROM ordered WHERE v > '[49]' ORDER BY v;
SELECT v FROM ordered WHERE v > '[49]' ORDER BY v;
DROP INDEX ordered_btree;
SELECT count(*) FROM ordered WHERE v = '[7,-1]';
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(*) FROM ordered a JOIN ordered b ON a.v = b.v;
DROP TABLE ordered;

-- aggregates: the mean of floats, the sum of halves
SELECT avg(v), sum(v), pg_typeof(avg(v)) FROM unnest(ARRAY['[1,2,3]'::halfvec, '[3,5,7]', NULL]) v;
SELECT avg(v), sum(v) FROM unnest(ARRAY[]::halfvec[]) v;
SELECT avg(v) AS no_overflow FROM unnest(ARRAY['[65504]'::halfvec, '[65504]']) v;
SELECT sum(v) FROM unnest(ARRAY['[65504]'::halfvec, '[65504]']) v;
SELECT avg(v) FROM unnest(ARRAY['[1,2]'::halfvec, '[3]']) v;
SELECT halfvec_accum('{0}', '[1,2,3]'), halfvec_combine('{1,2}', '{3,4}'), halfvec_avg('{2,2,4,6}'), halfvec_avg('{0}') AS empty;
SELECT halfvec_accum('{}', '[1]');
SELECT halfvec_avg('{1,70000}');
SELECT halfvec_avg('{{1,2}}');
CREATE TABLE measured (k int, v halfvec(4)) WITH (parallel_workers = 2);
INSERT INTO measured SELECT i % 3, ARRAY[i % 100, -(i % 100), i % 100 / 4.0, 1]::halfvec FROM generate_series(1, 3000) i;
ANALYZE measured;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT avg(v) FROM measured;
SELECT avg(v), avg(v::vector) FROM measured;
SELECT sum(v) FROM measured WHERE v <-> '[1,-1,0.25,1]' < 1.5;
DROP TABLE measured;

-- the binary form and COPY
CREATE TABLE source (id int, v halfvec);
INSERT INTO source VALUES (1, '[0,0,0]'), (2, '[1,-0,6e-8]'), (3, NULL), (4, '[65504,0.1]'), (5, array_fill(0.25::real, ARRAY[16000])::halfvec);
CREATE TABLE target (id int, v halfvec);
\copy source TO 'results/halfvec.bin' WITH (FORMAT binary)
\copy target FROM 'results/halfvec.bin' WITH (FORMAT binary)
\copy source TO 'results/halfvec.txt'
\copy target FROM 'results/halfvec.txt'
SELECT s.id, count(*), bool_and(halfvec_send(s.v) = halfvec_send(t.v)) AS same FROM source s JOIN target t USING (id) GROUP BY s.id ORDER BY 1;
CREATE TABLE received (v halfvec);
-- [1], length 6
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\6\0\1\0\0\74\0\377\377"' WITH (FORMAT binary)
-- no dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\0\377\377"' WITH (FORMAT binary)
-- 16001 dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\76\201\0\0\377\377"' WITH (FORMAT binary)
-- second number not zero
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\6\0\1\0\1\74\0\377\377"' WITH (FORMAT binary)
-- too short for its dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\6\0\2\0\0\74\0\377\377"' WITH (FORMAT binary)
-- too long
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\7\0\1\0\0\74\0\0\377\377"' WITH (FORMAT binary)
-- NaN
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\6\0\1\0\0\176\0\377\377"' WITH (FORMAT binary)
-- infinity
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\6\0\1\0\0\374\0\377\377"' WITH (FORMAT binary)
SELECT * FROM received;

-- 16,000 dimensions: out of line, whole again in every function
SELECT pg_relation_size(reltoastrelid) >= 32000 AS out_of_line FROM pg_class WHERE oid = 'source'::regclass;
SELECT vector_dims(v), v <-> v AS l2, v = v AS equal, vector_dims(avg(v) OVER ()), length(halfvec_send(v)), array_length(v::real[], 1), subvector(v, 15999, 5) FROM source WHERE id = 5;
DROP TABLE source, target, received;
