-- sets by an index: arrays and documents by common elements, and by the Jaccard distance
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR

-- the operators
SELECT '{1,2,3}'::int4[] <&> '{2,3,4}' AS two, '{1,2,2,2}'::int4[] <&> '{2,2}' AS once, '{1}'::int4[] <&> '{2}' AS none, '{}'::int4[] <&> '{1}' AS empty,
	'{1,NULL,2}'::int4[] <&> '{NULL,2}' AS null_element, '{{1,2},{3,4}}'::int4[] <&> '{{{4}},{{1}}}' AS flat, NULL::int4[] <&> '{1}' AS null;
SELECT '{1,2,3}'::int4[] <%> '{2,3,4}' AS half, '{1,2,2,2}'::int4[] <%> '{2,1}' AS same, '{1}'::int4[] <%> '{2}' AS all_others, '{}'::int4[] <%> '{1}' AS one_empty,
	'{}'::int4[] <%> '{NULL}' AS empty, '{1,2,3,4}'::int4[] <%> '{1,2,3}' AS subset, '{1}'::int4[] <%> NULL AS null;
SELECT '{-2147483648,2147483647,0,-1}'::int4[] <&> '{2147483647,-2147483648,1}' AS int4, '{-9223372036854775808,9223372036854775807,0}'::int8[] <&> '{9223372036854775807,-9223372036854775808}' AS int8,
	'{1,4294967297}'::int8[] <&> '{1}'::int4[] AS mixed, '{a,B,"",漢}'::text[] <&> '{b,"",漢,NULL}' AS text, '{a,b}'::varchar(3)[] <&> '{b,c}'::varchar[] AS varchar,
	to_tsvector('simple', 'the cat and the hat') <&> to_tsvector('simple', 'hat, cat, dog') AS documents, 'a:1A b:2'::tsvector <%> 'a:9 c'::tsvector AS positions, ''::tsvector <%> ''::tsvector AS empty_documents;
SELECT overlap_distance('{1,2}'::int4[], '{2}'), set_jaccard_distance('{1,2}'::int8[], '{2}'), overlap_distance('{a}'::text[], '{b}'), set_jaccard_distance('a'::tsvector, 'a b'::tsvector);
SELECT '{1}'::int4[] <&> '{a}'::text[];
SELECT '{1,-32768,NULL}'::int2[] <&> '{-32768,1,2}'::int2[] AS int2, '{1,2}'::int2[] <%> '{2}' AS unknown, '{1}'::int2[] <&> '{1}'::int4[] AS wider, '{-1}'::int8[] <&> '{-1,3}'::int2[] AS widest,
	'{a,b}'::varchar[] <&> ARRAY['b', 'c'] AS varchar_text, ARRAY['b', 'c'] <%> '{a,b}'::varchar(2)[] AS text_varchar, '{a,"b "}'::char(2)[] <&> '{b}'::char(5)[] AS padded, '{a,b}'::char(3)[] <&> ARRAY['b'] AS char_text;
SELECT '{1.5}'::float8[] <&> '{1.5}';
SELECT '{a}'::name[] <%> '{a}'::name[];
SELECT '{1}'::int4[] <&> 1;
SELECT oprname, oprleft::regtype, oprcom::regoperator, oprcode FROM pg_operator WHERE oprname IN ('<&>', '<%>') AND oprcode::text ~ 'overlap|set_jaccard' AND oprleft::regtype::text !~ 'attr' ORDER BY 1, 2;
SELECT opcname, opcdefault, opcintype::regtype, amvalidate(oid) FROM pg_opclass WHERE opcname ~ '_(overlap|jaccard)_ops$' AND opcname !~ 'bit|attributes' ORDER BY 1;
SELECT provolatile, proparallel, proisstrict, count(*) FROM pg_proc WHERE proname IN ('overlap_distance', 'set_jaccard_distance') AND prorettype = 'float8'::regtype GROUP BY 1, 2, 3;
-- a set may have 32,768 elements; duplicates do not count
SELECT array_agg(i) <&> array_agg(i + 1) AS largest FROM generate_series(1, 32768) i;
SELECT array_agg(i % 9) <&> '{3}' AS duplicates FROM generate_series(1, 100000) i;
SELECT array_agg(i) <&> '{3}' FROM generate_series(1, 32769) i;
SELECT '{3}' <%> array_agg(i::text) FROM generate_series(1, 40000) i;

\set sets :tests '/sql/include/sets.sql'
\i :sets
-- the operators against SQL
SELECT count(*), count(*) FILTER (WHERE (i.i4 <&> q.i4) <> -common(i.i4, q.i4)) AS i4, count(*) FILTER (WHERE (i.i8 <&> q.i8) <> -common(i.i8, q.i8)) AS i8,
		count(*) FILTER (WHERE (i.t <&> q.t) <> -common(i.t, q.t)) AS t, count(*) FILTER (WHERE (i.d <&> q.d) <> -common(tsvector_to_array(i.d), tsvector_to_array(q.d))) AS d,
		count(*) FILTER (WHERE abs((i.i4 <%> q.i4) - coalesce(1 - common(i.i4, q.i4)::float8 / nullif(united(i.i4, q.i4), 0), 0)) > 1e-15) AS jaccard,
		count(*) FILTER (WHERE (i.i4 <%> q.i4, i.i4 <%> q.i4, i.i4 <%> q.i4, i.i4 <%> q.i4) <> (i.i8 <%> q.i8, i.t <%> q.t, i.d <%> q.d, q.i4 <%> i.i4)) AS others
	FROM items i, queries q WHERE i.id % 13 = 0 AND i.i4 IS NOT NULL AND q.i4 IS NOT NULL;

SELECT * FROM all_compared();
SELECT k, c.* FROM unnest(ARRAY[1, 10, 300, 3000]) k, compared('i4', '<&>', k) c;
SELECT k, c.* FROM unnest(ARRAY[1, 10, 300, 3000]) k, compared('d', '<%>', k) c;
SELECT * FROM compared('i4', '<&>', 10, 'kind = 3');
SELECT * FROM compared('t', '<%>', 10, 'kind = 3 AND t <%> ($1).t <= 0.9');
SELECT * FROM compared('d', '<&>', 10, 'd IS NOT NULL');

DROP FUNCTION made_set, wide, words, document, common, united, set_plan, distances, rows_within, compared, scan_all, truth_within, bounded, all_compared;
DROP TABLE truths, items, queries;
