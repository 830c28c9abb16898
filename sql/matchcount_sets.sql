-- sets by an index: arrays and documents by common elements, and by the Jaccard distance
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

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

-- the same sets as values of the four types: with duplicates, NULL elements, several dimensions, empty ones, NULL
CREATE FUNCTION made_set(seed integer) RETURNS integer[] AS $$
	SELECT CASE WHEN seed % 41 = 0 THEN NULL WHEN seed % 37 = 0 THEN '{}' WHEN seed % 19 = 0 THEN ARRAY[[e[1], e[2]], [e[1], 5]]
			WHEN seed % 5 = 0 THEN e || ARRAY[NULL, e[1]] ELSE e END
		FROM (SELECT array_agg((seed * i * 7919 + i * i * (seed % 7)) % (20 + i * 9) - 30) AS e FROM generate_series(1, seed % 13 + 1) i) n
$$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION wide(integer[]) RETURNS bigint[] AS 'SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY(SELECT e * 4294967311 FROM unnest($1) e) END' LANGUAGE sql IMMUTABLE;
CREATE FUNCTION words(integer[]) RETURNS text[] AS $$SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY(SELECT CASE WHEN e = 5 THEN '' ELSE 'é' || e END FROM unnest($1) e) END$$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION document(integer[]) RETURNS tsvector AS $$SELECT CASE WHEN $1 IS NOT NULL THEN array_to_tsvector(ARRAY(SELECT DISTINCT 'w' || e FROM unnest($1) e WHERE e IS NOT NULL)) END$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE items (id integer PRIMARY KEY, kind integer, i4 int4[], i8 int8[], t text[], d tsvector);
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1, 1500) i, made_set(i) s;
CREATE TABLE queries (i4 int4[], i8 int8[], t text[], d tsvector);
INSERT INTO queries SELECT s, wide(s), words(s), document(s) FROM generate_series(1, 30) i, made_set(i * 131) s;
INSERT INTO queries SELECT s, wide(s), words(s), document(s)
	FROM (VALUES ('{}'::int4[]), ('{1000}'), ('{5}'), ('{NULL}'), (NULL), (ARRAY(SELECT generate_series(-30, 120)))) v (s);
ALTER TABLE queries ADD n integer GENERATED ALWAYS AS IDENTITY;
ANALYZE items, queries;
-- the operators against SQL
CREATE FUNCTION common(anyarray, anyarray) RETURNS bigint AS 'SELECT count(*) FROM (SELECT unnest($1) INTERSECT SELECT unnest($2)) n (e) WHERE e IS NOT NULL' LANGUAGE sql;
CREATE FUNCTION united(anyarray, anyarray) RETURNS bigint AS 'SELECT count(*) FROM (SELECT unnest($1) UNION SELECT unnest($2)) n (e) WHERE e IS NOT NULL' LANGUAGE sql;
SELECT count(*), count(*) FILTER (WHERE (i.i4 <&> q.i4) <> -common(i.i4, q.i4)) AS i4, count(*) FILTER (WHERE (i.i8 <&> q.i8) <> -common(i.i8, q.i8)) AS i8,
		count(*) FILTER (WHERE (i.t <&> q.t) <> -common(i.t, q.t)) AS t, count(*) FILTER (WHERE (i.d <&> q.d) <> -common(tsvector_to_array(i.d), tsvector_to_array(q.d))) AS d,
		count(*) FILTER (WHERE abs((i.i4 <%> q.i4) - coalesce(1 - common(i.i4, q.i4)::float8 / nullif(united(i.i4, q.i4), 0), 0)) > 1e-15) AS jaccard,
		count(*) FILTER (WHERE (i.i4 <%> q.i4, i.i4 <%> q.i4, i.i4 <%> q.i4, i.i4 <%> q.i4) <> (i.i8 <%> q.i8, i.t <%> q.t, i.d <%> q.d, q.i4 <%> i.i4)) AS others
	FROM items i, queries q WHERE i.id % 13 = 0 AND i.i4 IS NOT NULL AND q.i4 IS NOT NULL;

-- answers by an index, and by a sort or a scan
CREATE FUNCTION set_plan(by_index boolean) RETURNS void AS $$
	SELECT set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name
$$ LANGUAGE sql;
CREATE FUNCTION distances(col text, op text, q queries, k integer, by_index boolean, condition text) RETURNS float8[] AS $$
DECLARE
	found float8[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT %1$s %2$s ($1).%1$s AS d FROM items WHERE %3$s ORDER BY %1$s %2$s ($1).%1$s LIMIT %4$s) n', col, op, condition, k)
		INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION rows_within(col text, op text, q queries, bound text, by_index boolean) RETURNS integer[] AS $$
DECLARE
	found integer[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM items WHERE %1$s %2$s ($1).%1$s %3$s OFFSET 0) n', col, op, bound) INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql SET enable_sort = on;
CREATE FUNCTION compared(col text, op text, k integer, condition text DEFAULT 'true', OUT queries bigint, OUT wrong bigint) AS $$
	SELECT count(*), count(*) FILTER (WHERE distances(col, op, q, k, true, condition) IS DISTINCT FROM distances(col, op, q, k, false, condition)) FROM queries q
$$ LANGUAGE sql;
-- the distances of all rows to the queries, computed once for each state of the table
CREATE TABLE truths (col text, op text, n integer, d float8[], ids integer[]);
CREATE FUNCTION scan_all() RETURNS void AS $$
DECLARE
	col text;
	op text;
BEGIN
	PERFORM set_plan(false);
	TRUNCATE truths;
	FOR col, op IN SELECT c, o FROM unnest(ARRAY['i4', 'i8', 't', 'd']) c, unnest(ARRAY['<&>', '<%>']) o LOOP
		EXECUTE format('INSERT INTO truths SELECT %1$L, %2$L, n, array_agg(distance ORDER BY distance), array_agg(id ORDER BY distance)
			FROM (SELECT q.n, i.id, i.%1$s %2$s q.%1$s AS distance FROM queries q, items i) m GROUP BY n', col, op);
	END LOOP;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION truth_within(truth truths, bound text) RETURNS integer[] AS $$
	SELECT array_agg(id ORDER BY id) FROM unnest(truth.d, truth.ids) u (d, id), nullif(trim('''' FROM split_part(bound, ' ', 2)), 'NULL') value
		WHERE CASE WHEN bound ~ '=' THEN d <= value::float8 ELSE d < value::float8 END
$$ LANGUAGE sql;
CREATE FUNCTION bounded(of_col text, of_op text, bound text, OUT found bigint, OUT wrong bigint) AS $$
	SELECT sum(cardinality(w)), count(*) FILTER (WHERE w IS DISTINCT FROM truth_within(truth, bound))
		FROM truths truth JOIN queries q USING (n), rows_within(of_col, of_op, q, bound, true) w WHERE col = of_col AND op = of_op
$$ LANGUAGE sql;
CREATE FUNCTION all_compared(OUT col text, OUT op text, OUT wrong bigint) RETURNS SETOF record AS $$
	SELECT scan_all();
	SELECT truth.col, truth.op, sum((SELECT count(*) FROM unnest(ARRAY[1, 10, 3000]) k
					WHERE distances(truth.col, truth.op, q, k, true, 'true') IS DISTINCT FROM truth.d[1:k])
				+ (SELECT count(*) FROM unnest(CASE truth.op WHEN '<&>' THEN ARRAY['<= -2', '< -3'] ELSE ARRAY['<= 0.5', '< 0.8'] END) bound
					WHERE rows_within(truth.col, truth.op, q, bound, true) IS DISTINCT FROM truth_within(truth, bound)))::bigint
		FROM truths truth JOIN queries q USING (n) GROUP BY truth.col, truth.op ORDER BY 1, 2
$$ LANGUAGE sql;
CREATE INDEX items_i4 ON items USING matchcount (i4);
CREATE INDEX items_i8 ON items USING matchcount (i8);
CREATE INDEX items_t ON items USING matchcount (t);
CREATE INDEX items_d ON items USING matchcount (d);
CREATE INDEX items_i4_jaccard ON items USING matchcount (i4 int4_array_jaccard_ops);
CREATE INDEX items_i8_jaccard ON items USING matchcount (i8 int8_array_jaccard_ops);
CREATE INDEX items_t_jaccard ON items USING matchcount (t text_array_jaccard_ops);
CREATE INDEX items_d_jaccard ON items USING matchcount (d tsvector_jaccard_ops);
SELECT * FROM all_compared();
SELECT k, (compared('i4', '<&>', k)).* FROM unnest(ARRAY[1, 10, 300, 3000]) k;
SELECT k, (compared('d', '<%>', k)).* FROM unnest(ARRAY[1, 10, 300, 3000]) k;
SELECT * FROM compared('i4', '<&>', 10, 'kind = 3');
SELECT * FROM compared('t', '<%>', 10, 'kind = 3 AND t <%> ($1).t <= 0.9');
SELECT * FROM compared('d', '<&>', 10, 'd IS NOT NULL');
-- bounds: of no row, of some, of every row
SELECT bound, (bounded('i4', '<&>', bound)).* FROM unnest(ARRAY['<= NULL', '<= -1000', '< ''-infinity''', '<= -5', '< -2', '<= -1.5', '<= -1', '< 0', '<= 0', '< 0.5',
	'<= ''infinity''', '<= ''nan''']) bound;
SELECT bound, (bounded('t', '<%>', bound)).* FROM unnest(ARRAY['<= NULL', '<= -1', '< 0', '<= 0', '<= 0.3', '< 0.75', '<= 0.9', '< 1', '<= 1', '< 2', '<= ''nan''']) bound;
-- inserts and deletes, before and after a merge
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1501, 1800) i, made_set(i) s;
INSERT INTO items VALUES (1801, 1, '{}', '{}', '{}', ''), (1802, 2, NULL, NULL, NULL, NULL), (1803, 3, ARRAY(SELECT generate_series(1, 32768)), '{1}', '{a}', 'a');
SELECT * FROM all_compared();
DELETE FROM items WHERE id % 7 = 3;
UPDATE items SET i4 = ARRAY[7, 7, i4[1]], d = d || 'w7' WHERE id % 11 = 5;
SELECT * FROM all_compared();
VACUUM items;
SELECT * FROM all_compared();
DO $$
DECLARE
	index regclass;
BEGIN
	FOR index IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' LOOP
		CALL pgwarp_merge(index);
	END LOOP;
END
$$;
SELECT * FROM all_compared();
SELECT relname, live_rows, dead_rows FROM pg_index JOIN pg_class c ON c.oid = indexrelid, pgwarp_check(c.oid, true) WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' ORDER BY 1;
SELECT method, rows, delta_rows, dead_rows, options, calibration, attainable_recall, drift FROM pgwarp_index_info('items_t');
REINDEX TABLE items;
SELECT * FROM all_compared();
-- the largest queries, alone and in a batch
SET enable_seqscan = off;
SELECT id, i4 <&> ARRAY(SELECT generate_series(1, 32768)) AS distance FROM items ORDER BY i4 <&> ARRAY(SELECT generate_series(1, 32768)) LIMIT 1;
SELECT i, n.* FROM (SELECT i, ARRAY(SELECT generate_series(i, 32767 + i)) AS q FROM generate_series(1, 10) i) l CROSS JOIN LATERAL
	(SELECT id, i4 <&> q AS distance FROM items ORDER BY i4 <&> q LIMIT 1) n;
RESET enable_seqscan;
SELECT pgwarp_release('items_d'), pgwarp_prewarm('items_d') > 0 AS prewarmed;

-- plans
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY i4 <&> '{1,2}' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY '{1,2}'::int4[] <%> i4 LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE t <&> '{a,b}' <= -2;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE set_jaccard_distance(d, 'w1 w2') < 0.5 ORDER BY d <%> 'w1 w2' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE -3 >= overlap_distance('{1,2,3}'::int8[], i8) AND kind = 3;
SELECT plan_of($$SELECT b.id FROM queries a JOIN items b ON a.i4 <%> b.i4 <= 0.25$$) AS plan;
SELECT plan_of($$SELECT b.id FROM queries a JOIN items b ON b.t <&> a.t <= -2 AND b.kind = 3$$) AS plan;
SELECT plan_of($$SELECT n.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items ORDER BY d <&> q.d LIMIT 3) n$$) AS plan;
RESET enable_seqscan;
CREATE FUNCTION planned_rows(statement text) RETURNS float8 AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
	RETURN plan->0->'Plan'->>'Plan Rows';
END
$$ LANGUAGE plpgsql;
ANALYZE items;
SELECT bound, planned_rows('SELECT FROM items WHERE i4 <&> ''{1,2}'' ' || bound) AS overlap FROM unnest(ARRAY['<= -3', '<= -2', '< -1', '<= -1', '< 0', '<= 0', '<= 1']) bound;
SELECT bound, planned_rows('SELECT FROM items WHERE i4 <%> ''{1,2}'' ' || bound) AS jaccard FROM unnest(ARRAY['<= 0', '<= 0.5', '< 0.9', '< 1', '<= 1']) bound;
SELECT bound, planned_rows('SELECT FROM items a JOIN items b ON a.i4 <&> b.i4 ' || bound) AS pairs FROM unnest(ARRAY['<= -3', '< 0', '<= 0']) bound;
DROP FUNCTION planned_rows;

-- joins, in batches too
SELECT count(*), count(*) FILTER (WHERE found <> distances('d', '<&>', q, 3, false, 'true')) AS wrong
	FROM (SELECT q, array_agg(n.distance ORDER BY n.distance) AS found
		FROM queries q CROSS JOIN LATERAL (SELECT d <&> q.d AS distance FROM items ORDER BY d <&> q.d LIMIT 3) n
		WHERE q.d IS NOT NULL GROUP BY q) j;
SET pgwarp.batch_size = 16;
SET enable_seqscan = off;
SET enable_material = off;
SELECT plan_of($$SELECT a.id AS a, b.id AS b FROM items a JOIN items b ON a.t <%> b.t <= 0.25 WHERE a.kind = 4$$) AS plan;
CREATE TABLE pairs AS SELECT a.id AS a, b.id AS b FROM items a JOIN items b ON a.t <%> b.t <= 0.25 WHERE a.kind = 4;
CREATE TABLE matches AS SELECT a.id AS a, b.id AS b FROM items a JOIN items b ON a.i8 <&> b.i8 <= -6 WHERE a.kind = 5;
RESET enable_seqscan;
SET enable_indexscan = off;
SELECT count(*), (SELECT count(*) FROM (SELECT * FROM pairs EXCEPT SELECT a.id, b.id FROM items a JOIN items b ON a.t <%> b.t <= 0.25 WHERE a.kind = 4) n) AS more,
	(SELECT count(*) FROM (SELECT a.id, b.id FROM items a JOIN items b ON a.t <%> b.t <= 0.25 WHERE a.kind = 4 EXCEPT SELECT * FROM pairs) n) AS fewer FROM pairs;
SELECT count(*), (SELECT count(*) FROM (SELECT * FROM matches EXCEPT SELECT a.id, b.id FROM items a JOIN items b ON a.i8 <&> b.i8 <= -6 WHERE a.kind = 5) n) AS more,
	(SELECT count(*) FROM (SELECT a.id, b.id FROM items a JOIN items b ON a.i8 <&> b.i8 <= -6 WHERE a.kind = 5 EXCEPT SELECT * FROM matches) n) AS fewer FROM matches;
RESET enable_indexscan;
RESET enable_material;
-- a query that is too large raises an error when its row is reached, not when it is read ahead
CREATE TABLE asked AS SELECT i, CASE WHEN i = 25 THEN ARRAY(SELECT generate_series(1, 40000)) ELSE made_set(i) END AS q FROM generate_series(1, 40) i;
SET enable_seqscan = off;
SELECT count(*) FROM (SELECT FROM asked CROSS JOIN LATERAL (SELECT id FROM items ORDER BY i4 <&> q LIMIT 1) n LIMIT 15) j;
SELECT count(*) FROM asked CROSS JOIN LATERAL (SELECT id FROM items ORDER BY i4 <&> q LIMIT 1) n;
RESET enable_seqscan;
RESET pgwarp.batch_size;
DROP TABLE asked;

-- prepared statements: a plan for any value
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
PREPARE sharing (int4[], float8) AS SELECT count(*) FROM items WHERE i4 <&> $1 <= $2;
EXPLAIN (COSTS OFF) EXECUTE sharing ('{1,2}', -2);
EXECUTE sharing ('{1,2,3,4,5,6,7}', -3);
EXECUTE sharing ('{1,2,3,4,5,6,7}', NULL);
EXECUTE sharing (NULL, -3);
EXECUTE sharing ('{}', 0);
EXECUTE sharing ('{}', -1);
PREPARE nearest (tsvector) AS SELECT d <&> $1 AS distance FROM items ORDER BY d <&> $1 LIMIT 2;
EXECUTE nearest ('w1 w2 w3 w4');
EXECUTE nearest ('');
EXECUTE nearest (NULL);
RESET plan_cache_mode;
DEALLOCATE ALL;
-- a cursor
BEGIN;
SET LOCAL enable_sort = off;
DECLARE nearest CURSOR FOR SELECT i4 <&> '{1,2,3,4,5,6,7}' AS distance FROM items ORDER BY i4 <&> '{1,2,3,4,5,6,7}';
FETCH 3 nearest;
MOVE 1000 nearest;
FETCH 1 nearest;
CLOSE nearest;
COMMIT;
RESET enable_seqscan;
-- row level security: a bound must not tell how many hidden rows are near, so it is a filter
CREATE ROLE regress_sets_reader;
GRANT SELECT ON items TO regress_sets_reader;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON items TO regress_sets_reader USING (kind % 2 = 1);
SET ROLE regress_sets_reader;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM items WHERE i4 <&> '{1,2}' <= -2$$) AS plan;
SELECT count(*), count(*) FILTER (WHERE kind % 2 = 0) AS hidden FROM items WHERE i4 <&> '{1,2}' <= -2;
RESET enable_seqscan;
RESET ROLE;
DROP POLICY odd ON items;
REVOKE ALL ON items FROM regress_sets_reader;
DROP ROLE regress_sets_reader;
ALTER TABLE items DISABLE ROW LEVEL SECURITY;

-- what is refused
CREATE INDEX ON items USING matchcount (i4) WITH (gram = 4);
CREATE INDEX ON items USING matchcount (d) WITH (hashes = 64);
CREATE INDEX ON items USING matchcount (t) WITH (recall = 0.9);
CREATE INDEX ON items USING matchcount (t int4_array_overlap_ops);
CREATE INDEX ON items USING exact (i4);
CREATE INDEX ON items USING matchcount ((i4::float8[]));
CREATE INDEX ON items USING matchcount (t varchar_array_overlap_ops);
SELECT * FROM matchcount_estimate('items_i4', '[1]'::vector);
SELECT * FROM knn_search('items_d', ARRAY['[1]'::vector], 3);
SELECT i4 <&> t FROM items;
INSERT INTO items VALUES (-1, 0, ARRAY(SELECT generate_series(1, 32769)));
INSERT INTO items VALUES (-1, 0, NULL, NULL, NULL, array_to_tsvector(ARRAY(SELECT i::text FROM generate_series(1, 32769) i)));
SET enable_seqscan = off;
SELECT id FROM items ORDER BY i8 <&> ARRAY(SELECT generate_series(1::bigint, 32769)) LIMIT 1;
RESET enable_seqscan;
CREATE TABLE large AS SELECT ARRAY(SELECT generate_series(1, 32769)) AS s;
CREATE INDEX ON large USING matchcount (s);
DROP TABLE large;

-- partial and expression indexes, included columns, domains, other types, partitions
DROP INDEX items_i4, items_i8, items_t, items_d, items_i4_jaccard, items_i8_jaccard, items_t_jaccard, items_d_jaccard;
CREATE INDEX items_partial ON items USING matchcount (i4) WHERE kind = 3;
SELECT * FROM compared('i4', '<&>', 10, 'kind = 3');
CREATE INDEX items_included ON items USING matchcount (t) INCLUDE (id, kind);
VACUUM items;
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id, kind FROM items ORDER BY t <&> '{é1,é2}' LIMIT 5;
SELECT count(*), bool_and(distance = i.t <&> '{é1,é2,é3}') AS right_distances
	FROM (SELECT id, t <&> '{é1,é2,é3}' AS distance FROM items ORDER BY t <&> '{é1,é2,é3}' LIMIT 50) n JOIN items i USING (id);
INSERT INTO items (id, t) VALUES (3000, '{é1,é2,é3,one}');
SELECT id FROM items ORDER BY t <&> '{é1,é2,é3,one}' LIMIT 1;
CALL pgwarp_merge('items_included');
SELECT id FROM items ORDER BY t <&> '{é1,é2,é3,one}' LIMIT 1;
CREATE DOMAIN tags AS int4[] CHECK (cardinality(value) < 100);
CREATE DOMAIN tag AS int4 CHECK (value > -1000);
CREATE TABLE others (id integer, d tags, e tag[], v varchar(10)[], body text);
INSERT INTO others SELECT id, i4, i4, t, array_to_string(t, ' ') FROM items WHERE id < 1000;
CREATE INDEX others_d ON others USING matchcount (d);
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY d <&> '{1,2}' LIMIT 3;
SELECT d <&> '{1,2,3}' AS distance FROM others ORDER BY d <&> '{1,2,3}' LIMIT 3;
CREATE INDEX others_v ON others USING matchcount (v);
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY v <&> '{é1,é2}' LIMIT 3;
SELECT v <&> '{é1,é2,é3}' AS distance FROM others ORDER BY v <&> '{é1,é2,é3}' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM others WHERE overlap_distance(v, '{é1,é2,é3}') <= -2;
SELECT count(*) = (SELECT count(*) FROM items WHERE id < 1000 AND common(t, '{é1,é2,é3}') >= 2) AS same FROM others WHERE overlap_distance(v, '{é1,é2,é3}') <= -2;
SELECT plan_of($$SELECT a.id, b.id FROM others a JOIN others b ON a.v <&> b.v <= -8$$) AS plan;
SELECT count(*) > 0 AS any, count(*) = (SELECT count(*) FROM others a JOIN others b ON a.v::text[] <&> b.v::text[] <= -8) AS same FROM others a JOIN others b ON a.v <&> b.v <= -8;
-- text[] beside varchar[] is taken as varchar[]
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY v <&> ARRAY['é1', 'é2'] LIMIT 3;
SELECT v <&> ARRAY['é1', 'é2', 'é3'] AS distance FROM others ORDER BY v <&> ARRAY['é1', 'é2', 'é3'] LIMIT 3;
CREATE INDEX others_v_text ON others USING matchcount ((v::text[]));
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY v::text[] <&> '{é1,é2}' LIMIT 3;
-- smallint[], and larger integers than the column has
ALTER TABLE others ADD s smallint[];
UPDATE others SET s = d::int4[];
CREATE INDEX others_s ON others USING matchcount (s);
CREATE INDEX others_s_jaccard ON others USING matchcount (s int2_array_jaccard_ops);
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY s <&> '{1,2}' LIMIT 3;
SELECT array_agg(n.d) = (SELECT array_agg(m.d) FROM (SELECT i4 <&> '{1,2,3,4,5}' AS d FROM items WHERE id < 1000 ORDER BY 1 LIMIT 20) m) AS same FROM (SELECT s <&> '{1,2,3,4,5}' AS d FROM others ORDER BY s <&> '{1,2,3,4,5}' LIMIT 20) n;
SELECT count(*) = (SELECT count(*) FROM items WHERE id < 1000 AND i4 <%> '{1,2,3,4,5}' <= 0.6) AS same FROM others WHERE s <%> '{1,2,3,4,5}' <= 0.6;
SELECT id FROM others ORDER BY s <&> '{100000}' LIMIT 1;
SET enable_seqscan = on;
SELECT plan_of($$SELECT id FROM others ORDER BY s <&> ARRAY[1, 100000] LIMIT 1$$) AS plan;
SET enable_seqscan = off;
SELECT e <&> '{1,2,3}' AS distance FROM others WHERE id < 4 ORDER BY id;
CREATE INDEX others_body ON others USING matchcount (to_tsvector('simple', body));
EXPLAIN (COSTS OFF) SELECT id FROM others WHERE to_tsvector('simple', body) <&> to_tsvector('simple', 'é1 and é2') <= -2;
SELECT count(*) = (SELECT count(*) FROM others WHERE to_tsvector('simple', body) @@ 'é1 & é2'::tsquery) AS same
	FROM others WHERE to_tsvector('simple', body) <&> to_tsvector('simple', 'é1 and é2') <= -2;
RESET enable_sort;
CREATE TABLE parts (id integer, i4 int4[]) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (900);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (900) TO (5000);
INSERT INTO parts SELECT id, i4 FROM items;
CREATE INDEX ON parts USING matchcount (i4);
ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT id FROM parts ORDER BY i4 <&> '{1,2}' LIMIT 3;
SELECT array_agg(d) = (SELECT array_agg(d) FROM (SELECT i4 <&> '{1,2,3,4,5,6}' AS d FROM items ORDER BY 1 LIMIT 20) n) AS same
	FROM (SELECT i4 <&> '{1,2,3,4,5,6}' AS d FROM parts ORDER BY i4 <&> '{1,2,3,4,5,6}' LIMIT 20) n;
SELECT count(*) = (SELECT count(*) FROM items WHERE common(i4, '{1,2,3,4,5,6}') >= 2) AS same FROM parts WHERE i4 <&> '{1,2,3,4,5,6}' <= -2;
RESET enable_seqscan;

-- no rows; rows that are all empty
CREATE TABLE empty (s int4[]);
CREATE INDEX empty_s ON empty USING matchcount (s);
SET enable_seqscan = off;
SELECT * FROM empty ORDER BY s <&> '{1}' LIMIT 3;
INSERT INTO empty SELECT '{}' FROM generate_series(1, 5);
SELECT s <&> '{1}' AS distance FROM empty ORDER BY s <&> '{1}' LIMIT 3;
CALL pgwarp_merge('empty_s');
SELECT s <&> '{1}' AS distance FROM empty ORDER BY s <&> '{1}' LIMIT 3;
REINDEX INDEX empty_s;
SELECT count(*) FROM empty WHERE s <&> '{1}' <= 0;
SELECT count(*) FROM empty WHERE s <&> '{1}' <= -1;
INSERT INTO empty VALUES ('{1}'), (NULL);
SELECT s FROM empty ORDER BY s <&> '{1}' LIMIT 2;
CALL pgwarp_merge('empty_s');
SELECT s FROM empty ORDER BY s <&> '{1}' LIMIT 2;
SELECT live_rows, dead_rows FROM pgwarp_check('empty_s', true);
RESET enable_seqscan;

DROP FUNCTION made_set, wide, words, document, common, united, set_plan, distances, rows_within, compared, scan_all, truth_within, bounded, all_compared, plan_of;
DROP TABLE truths, items, queries, others, parts, empty, pairs, matches;
DROP DOMAIN tags, tag;
