-- Distances and norms of sparse vectors.
SET extra_float_digits = 1;
SELECT a, b, a <-> b AS l2, a <#> b AS negative_product, a <=> b AS cosine, a <+> b AS l1
FROM (VALUES ('{1:3,4:4}/5'::sparsevec, '{4:4,5:2}/5'::sparsevec), ('{1:1}/2', '{2:1}/2'), ('{1:1,2:2}/2', '{1:2,2:4}/2'), ('{1:1}/1', '{1:-1}/1'), ('{}/3', '{2:2}/3'), ('{}/3', '{}/3'),
	('{1:3e38,2:1}/3', '{1:-3e38,3:1}/3'), ('{1:3e-38}/2', '{2:4e-38}/2'), ('{1:1,1000000000:2}/1000000000', '{2:1,1000000000:1}/1000000000')) AS t (a, b);
SELECT l2_distance(a, b), inner_product(a, b), cosine_distance(a, b), l1_distance(a, b), sparsevec_l2_squared_distance(a, b), sparsevec_negative_inner_product(a, b)
FROM (VALUES ('{1:3,4:4}/5'::sparsevec, '{4:5,5:2}/5'::sparsevec)) AS t (a, b);
SELECT l2_norm('{2:3,5:4}/9'::sparsevec), l2_norm('{}/2'::sparsevec) AS zero, l2_norm('{1:3e37,2:4e37}/2'::sparsevec) AS large, l2_norm('{1:3e-45,2:4e-45}/2'::sparsevec) > 4e-45 AS small;
SELECT l2_normalize('{2:3,5:4}/9'::sparsevec), l2_normalize('{}/3'::sparsevec) AS zero, l2_normalize('{1:3e38}/2'::sparsevec) AS large, l2_normalize('{1:1e-45}/2'::sparsevec) AS small;
-- elements that become zero go
SELECT l2_normalize('{1:1e-45,3:3e38,7:-1e-45}/9'::sparsevec), l2_normalize('{1:1e-45,3:3e38}/9'::sparsevec) = '{3:1}/9'::sparsevec AS equal;

-- other dimensions are errors
SELECT '{}/2'::sparsevec <-> '{}/3';
SELECT '{}/2'::sparsevec <#> '{}/3';
SELECT '{}/2'::sparsevec <=> '{}/3';
SELECT '{}/2'::sparsevec <+> '{}/3';
SELECT inner_product('{}/2'::sparsevec, '{}/3');
SELECT sparsevec_l2_squared_distance('{}/2'::sparsevec, '{}/3');
SELECT l2_distance('{}/2', '{}/2');

-- the distances of the same values as vectors
CREATE TABLE pairs AS SELECT i, (SELECT array_agg(CASE WHEN (i * 31 + d * 3) % 7 < 2 THEN sin(i * 13 + d) * 10 ^ (d % 5) ELSE 0 END ORDER BY d) FROM generate_series(1, 300) d)::vector AS a,
	(SELECT array_agg(CASE WHEN (i * 17 + d * 3) % 11 < 4 THEN cos(i + d * 5) * 10 ^ (d % 4) ELSE 0 END ORDER BY d) FROM generate_series(1, 300) d)::vector AS b FROM generate_series(1, 50) i;
SELECT count(*), bool_and(abs((a::sparsevec <-> b::sparsevec) - (a <-> b)) <= 1e-12 * (a <-> b)) AS l2, bool_and(abs((a::sparsevec <#> b::sparsevec) - (a <#> b)) <= 1e-10 * abs(a <#> b)) AS product,
	bool_and(abs((a::sparsevec <=> b::sparsevec) - (a <=> b)) <= 1e-12) AS cosine, bool_and(abs((a::sparsevec <+> b::sparsevec) - (a <+> b)) <= 1e-12 * (a <+> b)) AS l1,
	bool_and((a::sparsevec <-> b::sparsevec) = (b::sparsevec <-> a::sparsevec)) AS symmetric FROM pairs;
SELECT bool_and(abs(l2_norm(a::sparsevec) - vector_norm(a)) <= 1e-12 * vector_norm(a)) AS norm, bool_and(l2_normalize(a::sparsevec)::vector = l2_normalize(a)) AS normalised FROM pairs;

-- without an index, the nearest by each distance
CREATE TABLE items (id int, s sparsevec(3));
INSERT INTO items VALUES (1, '{}/3'), (2, '{1:1,2:2,3:3}/3'), (3, '{2:1}/3'), (4, NULL), (5, '{1:-1}/3');
SELECT id FROM items ORDER BY s <-> '{2:2}/3', id;
SELECT id FROM items ORDER BY s <#> '{2:2}/3', id;
SELECT id FROM items ORDER BY s <=> '{2:2}/3', id;
SELECT id FROM items ORDER BY s <+> '[0,2,0]'::vector, id;
-- those of vectors and halfvecs, by their casts
SELECT id FROM items ORDER BY s <-> '[1,2,3]'::vector(3) LIMIT 1;
SELECT id FROM items ORDER BY s <-> '[1,2,3]'::halfvec(3) LIMIT 1;
DROP TABLE items, pairs;
