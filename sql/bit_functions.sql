-- Distances of bit strings, as pgvector has them.
SELECT hamming_distance(B'', B''), hamming_distance(B'1', B'0'), hamming_distance(B'1011', B'1011'), B'1011' <~> B'0110' AS op;
SELECT jaccard_distance(B'', B''), jaccard_distance(B'1', B'0'), jaccard_distance(B'1011', B'1011'), B'1011' <%> B'0110' AS op;
SELECT jaccard_distance(B'0000', B'0000') AS both_without_ones, jaccard_distance(B'1111', B'0000') AS one_without, jaccard_distance(B'1110', B'1100');

-- every length around bytes and words: all set against none, half and itself
SELECT count(*), bool_and(hamming_distance(o, z) = n AND hamming_distance(o, o) = 0 AND hamming_distance(o, h) = n / 2) AS hamming,
	bool_and(jaccard_distance(o, z) = 1 AND jaccard_distance(o, o) = 0 AND jaccard_distance(o, h) = 1 - ((n + 1) / 2) / n::float8) AS jaccard
	FROM (SELECT n, repeat('1', n)::varbit AS o, repeat('0', n)::varbit AS z, left(repeat('10', n), n)::varbit AS h FROM generate_series(1, 600) n) s;
SELECT hamming_distance(repeat('1', 64000)::varbit, left(repeat('001', 64000), 64000)::varbit), jaccard_distance(repeat('1', 64000)::varbit, repeat('10', 32000)::varbit);
SELECT hamming_distance(repeat('1', 1000000)::varbit, repeat('01', 500000)::varbit);

-- bit by bit
CREATE FUNCTION ones(b bit varying) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$SELECT length(replace(b::text, '0', ''))::bigint$$;
SELECT count(*), count(*) FILTER (WHERE hamming_distance(a, b) = ones(a # b)) AS hamming,
	count(*) FILTER (WHERE jaccard_distance(a, b) = CASE WHEN ones(a & b) = 0 THEN 1 ELSE 1 - ones(a & b) / ones(a | b)::float8 END) AS jaccard
	FROM (SELECT (hashint4(i)::bit(32) || hashint4(i * 7)::bit(32) || hashint4(i * 11)::bit(13))::bit(77) AS a, (hashint4(-i)::bit(32) || hashint4(i * 13)::bit(32) || hashint4(i * 17)::bit(13))::bit(77) AS b FROM generate_series(1, 500) i) s;
DROP FUNCTION ones;

-- lengths must be alike; NULL is nothing's distance
SELECT B'111' <~> B'00';
SELECT B'111' <%> B'0000'::varbit(4);
SELECT hamming_distance(B'111', B'000'::varbit(4)), hamming_distance(NULL, B'1'), jaccard_distance(B'1', NULL);

-- of vectors
SELECT binary_quantize('[1,0,-1,0.5,-0.5]'::vector), binary_quantize('[1,0,-1,0.5,-0.5]'::halfvec);
SELECT binary_quantize('[1,-1,2]'::vector) <~> binary_quantize('[1,1,2]'::halfvec) AS hamming;

-- operators and their classes
SELECT oprname, oprcom::regoperator, oprcode FROM pg_operator WHERE oprname IN ('<~>', '<%>') AND oprleft = 'bit'::regtype ORDER BY 1;
SELECT amname, opcname, opcintype::regtype, opcdefault, amvalidate(c.oid) AS valid FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname LIKE 'bit%ops' AND amname IN ('exact', 'graph', 'ivfadc', 'pqtree') ORDER BY 1, 2;
