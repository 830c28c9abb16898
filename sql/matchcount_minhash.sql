-- sets by signatures: approximate answers, their recall, and estimated similarities
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

LOAD 'pgwarp';
SELECT opcname, opcdefault, opcintype::regtype, amvalidate(oid) FROM pg_opclass WHERE opcname ~ '_minhash_ops$' ORDER BY 1;

-- groups of sets that share most elements; some are empty, some NULL
CREATE FUNCTION made_set(seed integer) RETURNS integer[] AS $$
	SELECT CASE WHEN seed % 97 = 0 THEN NULL WHEN seed % 89 = 0 THEN '{}' ELSE
		ARRAY(SELECT CASE WHEN (hashint4(seed * 1000 + i) & 7) < 2 THEN hashint4(seed * 1000 + i) ELSE seed % 60 * 100000 + i END FROM generate_series(1, 40) i) END
$$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION wide(integer[]) RETURNS bigint[] AS 'SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY(SELECT e * 4294967311 FROM unnest($1) e) END' LANGUAGE sql IMMUTABLE;
CREATE FUNCTION words(integer[]) RETURNS text[] AS $$SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY(SELECT 'w' || e FROM unnest($1) e) END$$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION document(integer[]) RETURNS tsvector AS $$SELECT CASE WHEN $1 IS NOT NULL THEN array_to_tsvector(ARRAY(SELECT DISTINCT 'w' || e FROM unnest($1) e)) END$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE items (id integer PRIMARY KEY, kind integer, i4 int4[], i8 int8[], t text[], d tsvector);
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1, 1200) i, made_set(i) s;
CREATE TABLE queries (i4 int4[], i8 int8[], t text[], d tsvector);
INSERT INTO queries SELECT s, wide(s), words(s), document(s) FROM generate_series(5001, 5012) i, made_set(i) s WHERE s IS NOT NULL;
INSERT INTO queries VALUES ('{}', '{}', '{}', '');
ANALYZE items, queries;
CREATE INDEX items_i4 ON items USING matchcount (i4 int4_array_minhash_ops);
CREATE INDEX items_i8 ON items USING matchcount (i8 int8_array_minhash_ops) WITH (hashes = 128);
CREATE INDEX items_t ON items USING matchcount (t text_array_minhash_ops) WITH (epsilon = 0.1, delta = 0.1);
CREATE INDEX items_d ON items USING matchcount (d tsvector_minhash_ops) WITH (hashes = 300, recall = 0.99);
SELECT i.relname, info.rows, info.options FROM pg_class i, LATERAL pgwarp_index_info(i.oid) info
	WHERE i.relname ~ '^items_' AND i.relkind = 'i' AND i.relname <> 'items_pkey' ORDER BY i.relname;

-- the rows at the distances of the nearest that an index finds, of all; every row comes, at last in order
CREATE FUNCTION distances(col text, q queries, k integer, by_index boolean, condition text) RETURNS float8[] AS $$
DECLARE
	found float8[];
BEGIN
	PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_sort', (NOT by_index)::text, true), set_config('enable_indexscan', by_index::text, true);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT %1$s <%%> ($1).%1$s AS d FROM items WHERE %2$s ORDER BY %1$s <%%> ($1).%1$s LIMIT %3$s) n', col, condition, k) INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION recall(col text, k integer, condition text DEFAULT 'true') RETURNS float8 AS $$
	SELECT avg((SELECT count(*) FROM unnest(distances(col, q, k, true, condition)) d WHERE d <= exact[k]) / k::float8)
		FROM queries q, distances(col, q, k, false, condition) exact
$$ LANGUAGE sql;
CREATE FUNCTION all_recalls(OUT col text, OUT found boolean, OUT filtered boolean, OUT whole bigint) RETURNS SETOF record AS $$
	SELECT col, recall(col, 10) >= 0.93, recall(col, 10, 'kind = 3') >= 0.93,
			(SELECT count(*) FROM queries q WHERE distances(col, q, 3000, true, 'true') IS DISTINCT FROM distances(col, q, 3000, false, 'true'))
		FROM unnest(ARRAY['i4', 'i8', 't', 'd']) col
$$ LANGUAGE sql;
SELECT * FROM all_recalls();
SET pgwarp.matchcount_candidates = 65536;
SELECT recall('i4', 10) AS i4, recall('t', 100) AS t;
RESET pgwarp.matchcount_candidates;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM items ORDER BY i4 <%> '{1,2}' LIMIT 3$$) AS plan;
SELECT plan_of($$SELECT id FROM items WHERE i4 <%> '{1,2}' <= 0.5$$) AS plan;
RESET enable_seqscan;

-- recall is that of rows that stand out, as the measurement tells
SELECT relname, calibration->>'recall_of' AS recall_of, (calibration->>'queries')::integer > 150 AS many, (calibration->>'standing_out_within')::float8 BETWEEN 0.6 AND 0.98 AS within,
		(calibration->>'sample')::integer AS sample, pgwarp_recall(relname::regclass, 10, 100) >= 0.93 AS ten, pgwarp_recall(relname::regclass, 1, 100) >= 0.93 AS first
	FROM unnest(ARRAY['items_i4', 'items_i8', 'items_t', 'items_d']) relname, pgwarp_index_info(relname::regclass);
-- a fifth of these sets are nearly those before them, and the others have nothing in common: few candidates find these
CREATE TABLE large AS SELECT i AS id, ARRAY(SELECT CASE WHEN i % 5 = 4 AND j % 10 <> 0 THEN hashint4((i - 1) * 1000 + j) ELSE hashint4(i * 1000 + j) END FROM generate_series(1, 400) j) AS s
	FROM generate_series(1, 4000) i;
CREATE INDEX large_minhash ON large USING matchcount (s int4_array_minhash_ops);
VACUUM ANALYZE large;
SELECT calibration->'queries' > '40' AS many, calibration->>'recall_of' AS recall_of, pgwarp_recall('large_minhash', 10, 100) AS recall FROM pgwarp_index_info('large_minhash');
CREATE FUNCTION join_line(name text) RETURNS text AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT a.id, n.id FROM (SELECT id, s FROM large WHERE id % 100 = 4 OFFSET 0) a CROSS JOIN LATERAL (SELECT b.id FROM large b ORDER BY b.s <%> a.s LIMIT 10) n LOOP
		IF line ~ name THEN RETURN trim(line); END IF;
	END LOOP;
	RETURN NULL;
END
$$ LANGUAGE plpgsql;
SELECT substring(join_line('Effort') FROM 'candidates=(\d+)$')::integer <= 20 AS few, regexp_replace(join_line('Recall Of'), '[\d.]+', 'N', 'g') AS recall_of;
SELECT count(*), count(*) FILTER (WHERE a.id = n.id + 1) AS pairs FROM (SELECT id, s FROM large WHERE id % 100 = 4 OFFSET 0) a CROSS JOIN LATERAL (SELECT b.id FROM large b ORDER BY b.s <%> a.s LIMIT 10) n;
SET pgwarp.matchcount_candidates = 20;
SELECT join_line('Effort') AS effort, join_line('Recall Of') AS recall_of;
RESET pgwarp.matchcount_candidates;
-- of an exact index and one by signatures the cheaper: signatures of large sets, as long as the candidates are few
CREATE INDEX large_exact ON large USING matchcount (s int4_array_jaccard_ops);
SELECT plan_of($$SELECT id FROM large ORDER BY s <%> '{1,2,3}' LIMIT 10$$) AS plan;
SET pgwarp.matchcount_candidates = 1000;
SELECT plan_of($$SELECT id FROM large ORDER BY s <%> '{1,2,3}' LIMIT 10$$) AS plan;
RESET pgwarp.matchcount_candidates;
CREATE INDEX items_exact ON items USING matchcount (i4 int4_array_jaccard_ops);
SELECT plan_of($$SELECT id FROM items ORDER BY i4 <%> '{1,2,3}' LIMIT 10$$) AS plan;
DROP INDEX items_exact;
-- nothing stands out: a row that is made up tells the candidates, and pgwarp_recall has none to tell of
DELETE FROM large WHERE id % 5 = 4;
VACUUM large;
REINDEX INDEX large_minhash;
SELECT calibration->'queries' AS queries, calibration->'curve'->0->'effort' AS effort, (calibration->'curve'->0->'recall'->>'10')::float8 > 0.98 AS found, pgwarp_recall('large_minhash', 10, 100) AS recall
	FROM pgwarp_index_info('large_minhash');
-- a merge measures again
INSERT INTO large SELECT id + 10000, s FROM large WHERE id % 5 < 2;
CALL pgwarp_merge('large_minhash');
SELECT calibration->'queries' > '60' AS many, pgwarp_recall('large_minhash', 1, 200) AS recall FROM pgwarp_index_info('large_minhash');
DROP TABLE large;
DROP FUNCTION join_line;

-- inserts and deletes, before and after a merge
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1201, 1500) i, made_set(i) s;
DELETE FROM items WHERE id % 7 = 3;
SELECT * FROM all_recalls();
VACUUM items;
CALL pgwarp_merge('items_i4');
CALL pgwarp_merge('items_i8');
CALL pgwarp_merge('items_t');
CALL pgwarp_merge('items_d');
SELECT * FROM all_recalls();
SELECT relname, live_rows, dead_rows FROM pg_index JOIN pg_class c ON c.oid = indexrelid, pgwarp_check(c.oid, true) WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' ORDER BY 1;

-- estimates are within their error
SELECT count(*) > 200 AS many, count(*) FILTER (WHERE abs(e.similarity - (1 - (i.i4 <%> q.i4))) <= e.error) >= 0.94 * count(*) AS right, count(DISTINCT e.error) AS errors
	FROM queries q, LATERAL matchcount_estimate('items_i4', q.i4, 50) e JOIN items i ON i.ctid = e.tid;
SELECT bool_and(similarity > 0.8) AS own FROM items i, LATERAL matchcount_estimate('items_d', i.d, 1) WHERE i.id IN (4, 5, 6);
SELECT bool_and(similarity = 1) AS equal FROM items i, LATERAL matchcount_estimate('items_i8', i.i8, 1) WHERE i.id IN (4, 5, 6);
SELECT count(*) FROM matchcount_estimate('items_t', '{w1}'::text[], 0);

-- empty tables
CREATE TABLE few (s int4[]);
CREATE INDEX few_s ON few USING matchcount (s int4_array_minhash_ops);
SET enable_seqscan = off;
SELECT s <%> '{1,2,3}' AS distance FROM few ORDER BY s <%> '{1,2,3}' LIMIT 2;
INSERT INTO few VALUES ('{1,2}'), ('{}'), (NULL), ('{3,4,5}');
SELECT s, s <%> '{1,2,3}' AS distance FROM few ORDER BY s <%> '{1,2,3}', s LIMIT 4;
CALL pgwarp_merge('few_s');
SELECT s, s <%> '{1,2,3}' AS distance FROM few ORDER BY s <%> '{1,2,3}', s LIMIT 4;
RESET enable_seqscan;

SET client_min_messages = notice;
SELECT pgwarp_recall('few_s') IS NULL AS nothing_stands_out;
TRUNCATE few;
SELECT pgwarp_recall('few_s') IS NULL AS no_row;
SET client_min_messages = warning;
-- domains
CREATE DOMAIN tags AS int4[] CHECK (cardinality(value) < 100);
CREATE DOMAIN tag AS text;
CREATE TABLE others (id integer, d tags, e tag[]);
INSERT INTO others SELECT id, i4, t FROM items;
CREATE INDEX others_d ON others USING matchcount (d int4_array_minhash_ops);
CREATE INDEX others_e ON others USING matchcount ((e::text[]) text_array_minhash_ops);
ANALYZE others;
SET enable_seqscan = off;
SELECT plan_of($$SELECT id FROM others ORDER BY d <%> '{1,2}' LIMIT 3$$) AS plan;
SELECT plan_of($$SELECT id FROM others ORDER BY e::text[] <%> '{w1,w2}' LIMIT 3$$) AS plan;
SELECT count(*) FROM others o, LATERAL (SELECT n.id FROM others n ORDER BY n.d <%> o.d LIMIT 1) n WHERE o.id < 20 AND n.id = o.id AND o.d <> '{}';
SELECT count(*) FROM others o, LATERAL (SELECT n.id FROM others n ORDER BY n.e::text[] <%> o.e::text[] LIMIT 1) n WHERE o.id < 20 AND n.id = o.id AND o.e <> '{}';
RESET enable_seqscan;
SELECT count(*) FROM matchcount_estimate('others_d', '{1}'::tags);
SELECT pgwarp_recall('others_d', 10, 100) > 0.9 AS domain, pgwarp_recall('others_e', 10, 100) > 0.9 AS expression;
CREATE INDEX ON others USING matchcount (e text_array_minhash_ops);
DROP TABLE others;
DROP DOMAIN tags, tag;

-- what is refused
CREATE INDEX ON items USING matchcount (i4 int4_array_minhash_ops) WITH (hashes = 7);
CREATE INDEX ON items USING matchcount (i4 int4_array_minhash_ops) WITH (hashes = 64, delta = 0.1);
CREATE INDEX ON items USING matchcount (i4 int4_array_minhash_ops) WITH (buckets = 67);
CREATE INDEX ON items USING matchcount (i4 int4_array_minhash_ops) WITH (gram = 4);
CREATE INDEX ON items USING matchcount (t int4_array_minhash_ops);
CREATE INDEX items_exact ON items USING matchcount (i4 int4_array_jaccard_ops);
SELECT * FROM matchcount_estimate('items_exact', '{1}'::int4[]);
SELECT pgwarp_recall('items_exact');
SELECT * FROM matchcount_estimate('items_i8', '{1}'::int4[]);
SELECT * FROM matchcount_estimate('items_i4', '[1]'::vector);
SELECT * FROM matchcount_estimate('items_i4', ARRAY(SELECT generate_series(1, 32769)));

DROP FUNCTION made_set, wide, words, document, distances, recall, all_recalls, plan_of;
DROP TABLE items, queries, few;
