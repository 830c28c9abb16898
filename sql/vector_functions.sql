-- Distances, arithmetic and the other functions of vectors.
SET extra_float_digits = 1;

-- distances: each operator is its function
SELECT l2_distance('[0,0]'::vector, '[3,4]'), '[0,0]'::vector <-> '[3,4]' AS operator, vector_l2_squared_distance('[0,0]', '[3,4]');
SELECT inner_product('[1,2]'::vector, '[3,4]'), vector_negative_inner_product('[1,2]', '[3,4]'), '[1,2]'::vector <#> '[3,4]' AS operator;
SELECT cosine_distance('[1,0]'::vector, '[0,2]'), '[1,2]'::vector <=> '[-2,-4]' AS opposite, '[1,2]'::vector <=> '[2,4]' AS same;
SELECT l1_distance('[0,0]'::vector, '[3,-4]'), '[0,0]'::vector <+> '[3,-4]' AS operator;
SELECT vector_spherical_distance('[1,0]', '[0,1]') AS quarter, vector_spherical_distance('[1,0]', '[-1,0]') AS half,
	vector_spherical_distance('[1,0]', '[1,0]') AS none, vector_spherical_distance('[2,0]', '[2,0]') AS clamped, vector_spherical_distance('[2,0]', '[-2,0]') AS clamped_below;
SELECT inner_product('[0,1]'::vector, '[1,0]') AS zero, '[0,1]'::vector <#> '[1,0]' AS negative_zero;

-- the same bits on every machine: float64 sums in a fixed order
SELECT a <-> b AS l2, a <#> b AS inner_product, a <=> b AS cosine, a <+> b AS l1
FROM (SELECT array_agg(i * 7919 % 1009 / 1009::float8 ORDER BY i)::vector AS a, array_agg(1 / (i + 0.1::float8) ORDER BY i)::vector AS b FROM generate_series(1, 1537) i) s;
SELECT d, a <-> b AS l2, a <=> b AS cosine
FROM unnest(ARRAY[1, 2, 7, 8, 9, 15, 16, 17, 100]) AS d,
	LATERAL (SELECT array_agg(i * 7919 % 1009 / 1009::float8 ORDER BY i)::vector AS a, array_agg(i * 104729 % 997 / 997::float8 - 0.5 ORDER BY i)::vector AS b FROM generate_series(1, d) i) s;

-- sums that single precision can't hold
SELECT '[16777216,1]'::vector <+> '[0,0]' AS l1, '[3e38]'::vector <-> '[-3e38]' AS l2, '[3e38]'::vector <#> '[3e38]' AS inner_product,
	'[3e38]'::vector <=> '[3e38]' AS cosine, '[1e-45]'::vector <-> '[0]' AS smallest;

-- a zero vector has no direction
SELECT '[0,0]'::vector <=> '[1,2]' AS left, '[1,2]'::vector <=> '[0,0]' AS right, '[0,0]'::vector <=> '[0,0]' AS both;

-- NULL
SELECT '[1]'::vector <-> NULL AS l2, NULL::vector <#> '[1]' AS inner_product, vector_dims(NULL::vector) AS dims, NULL::vector || '[1]' AS concatenation, NULL::vector = '[1]' AS equal;

-- dimensions must agree
SELECT l2_distance('[1,2]'::vector, '[3]');
SELECT '[1,2]'::vector <-> '[3]';
SELECT '[1,2]'::vector <#> '[3]';
SELECT '[1,2]'::vector <=> '[3]';
SELECT '[1,2]'::vector <+> '[3]';
SELECT inner_product('[1]'::vector, '[1,2]');
SELECT vector_l2_squared_distance('[1]', '[1,2]');
SELECT vector_spherical_distance('[1]', '[1,2]');
SELECT '[1,2]'::vector + '[3]';
SELECT '[1,2]'::vector - '[3]';
SELECT '[1,2]'::vector * '[3]';

-- arithmetic
SELECT '[1,2,3]'::vector + '[4,5,6]' AS sum, '[1,2,3]'::vector - '[4,5,6]' AS difference, '[1,2,3]'::vector * '[4,5,-6]' AS product, '[1,2,3]'::vector || '[4,5]' AS concatenation;
SELECT '[1,2,3,4,5,6,7,8,9]'::vector + '[1,1,1,1,1,1,1,1,1]' AS sum, '[0,-0,1]'::vector * '[-1,1,0]' AS zeros;
SELECT '[3e38]'::vector + '[3e38]';
SELECT '[1,2,3,4,-3e38,6]'::vector - '[1,2,3,4,3e38,6]';
SELECT '[1,2,3,4,5,1e37]'::vector * '[1,2,3,4,5,1e37]';
SELECT '[1e-37]'::vector * '[1e-37]';
SELECT '[1,2,3,4,5,1e-37]'::vector * '[1,2,3,4,5,-1e-37]';
SELECT '[1e-30]'::vector * '[1e-12]' AS denormal;
SELECT vector_dims(array_fill(0, ARRAY[15999])::vector || '[1]');
SELECT array_fill(0, ARRAY[16000])::vector || '[1]';

-- norms
SELECT vector_dims('[1,2,3]'::vector), vector_norm('[3,4]'), vector_norm('[0,0]') AS zero, vector_norm('[3e37,4e37]')::real AS large, vector_norm('[1,1]');
SELECT l2_normalize('[3,4]'::vector), l2_normalize('[0,0.1]'::vector), l2_normalize('[0,0]'::vector) AS zero, l2_normalize('[-3e38]'::vector) AS large, l2_normalize('[1e-45]'::vector) AS small;

-- bits
SELECT binary_quantize('[1,0,-1]'::vector), binary_quantize('[-0,1e-45,-1e-45]'::vector), binary_quantize('[1,2,3,-4,5,6,-7,8,1,-2,-3,4,5,-6,7,8,-1,2,3]'::vector);
SELECT length(b), b::text = repeat('10', 8000) AS right FROM (SELECT binary_quantize(array_agg(i % 2 ORDER BY i)::vector) AS b FROM generate_series(1, 16000) i) s;
SELECT binary_quantize('[1,1,1,1,1,1,1,1,1]'::vector) = B'111111111' AS padding_is_clear;

-- parts, counted from 1 as in substring
SELECT subvector('[1,2,3,4,5]'::vector, 1, 3), subvector('[1,2,3,4,5]'::vector, 3, 9) AS beyond, subvector('[1,2,3,4,5]'::vector, -1, 3) AS before,
	subvector('[1,2,3,4,5]'::vector, 5, 1) AS last, subvector('[1,2,3,4,5]'::vector, 3, 2147483647) AS far, subvector('[1,2,3,4,5]'::vector, -2147483644, 2147483647) AS wide;
SELECT subvector('[1,2,3]'::vector, 1, 0);
SELECT subvector('[1,2,3]'::vector, 1, -1);
SELECT subvector('[1,2,3]'::vector, 4, 1);
SELECT subvector('[1,2,3]'::vector, -1, 2);
SELECT subvector('[1,2,3]'::vector, 2147483647, 2147483647);
SELECT subvector('[1,2,3]'::vector, -2147483648, 2147483647);
