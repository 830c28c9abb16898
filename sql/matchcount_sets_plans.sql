-- sets by an index: plans, joins, prepared statements, security, kinds of indexes
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of
\set sets :tests '/sql/include/sets.sql'
\i :sets

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
\set planned_rows :tests '/sql/include/planned_rows.sql'
\i :planned_rows
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
