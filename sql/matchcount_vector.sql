-- vectors by locality-sensitive hashes
SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set vector_index :tests '/sql/include/vector_index.sql'
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of
\set method matchcount

\set operators vector_l2_ops
\set operator <->
\i :vector_index

\set operators vector_cosine_ops
\set operator <=>
\i :vector_index

\set operators vector_l1_ops
\set operator <+>
\i :vector_index

-- options that make no sense, and their meaning
CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(16), h halfvec(16), title text);
CREATE INDEX ON items USING matchcount (v vector_ip_ops);
CREATE INDEX ON items USING matchcount (v) WITH (hashes = 4);
CREATE INDEX ON items USING matchcount (v) WITH (hashes = 2000);
CREATE INDEX ON items USING matchcount (v) WITH (hashes = 100, epsilon = 0.05);
CREATE INDEX ON items USING matchcount (v) WITH (epsilon = 0.001);
CREATE INDEX ON items USING matchcount (v) WITH (epsilon = 0.5);
CREATE INDEX ON items USING matchcount (v) WITH (epsilon = 0.02, delta = 0.01);
CREATE INDEX ON items USING matchcount (v) WITH (delta = 0.0001);
CREATE INDEX ON items USING matchcount (v) WITH (buckets = 1);
CREATE INDEX ON items USING matchcount (v) WITH (buckets = 256);
CREATE INDEX ON items USING matchcount (v) WITH (gram = 2);
CREATE INDEX ON items USING matchcount (v) WITH (lsh = rbh);
CREATE INDEX ON items USING matchcount (v vector_cosine_ops) WITH (buckets = 10);
CREATE INDEX ON items USING matchcount (v vector_l1_ops) WITH (lsh = minhash);
CREATE INDEX ON items USING matchcount (title) WITH (hashes = 100);
CREATE INDEX ON items USING matchcount (title) WITH (lsh = rbh);
CREATE INDEX ON items USING matchcount (title) WITH (recall = 0.9);

-- rows around 40 centres
INSERT INTO items SELECT i, i % 10, v, v::halfvec, 'title ' || i FROM generate_series(1, 4000) i, LATERAL
	(SELECT ARRAY(SELECT (hashint8((i % 40)::bigint * 31 + d) % 1000)::real / 100 + (hashint8(i::bigint * 31 + d) % 1000)::real / 400
		FROM generate_series(1, 16) d)::vector(16) AS v) drawn;
CREATE INDEX items_l2 ON items USING matchcount (v);
CREATE INDEX items_few ON items USING matchcount (v) WITH (epsilon = 0.1, delta = 0.1, buckets = 16);
CREATE INDEX items_l1 ON items USING matchcount (v vector_l1_ops) WITH (hashes = 100);
CREATE INDEX items_rbh ON items USING matchcount (v vector_l1_ops) WITH (hashes = 100, lsh = rbh);
CREATE INDEX items_cosine ON items USING matchcount (v vector_cosine_ops) WITH (hashes = 300);
CREATE INDEX items_half ON items USING matchcount (h);
SELECT i.relname, info.rows, info.options - 'width_millionths' AS options FROM pg_class i, LATERAL pgwarp_index_info(i.oid) info
	WHERE i.relname ~ '^items_' AND i.relkind = 'i' AND i.relname <> 'items_pkey' ORDER BY i.relname;
SELECT i.relname, pgwarp_recall(i.oid, 10) >= 0.93 AS recall FROM pg_class i
	WHERE i.relname ~ '^items_' AND i.relkind = 'i' AND i.relname <> 'items_pkey' ORDER BY i.relname;

-- the share of the functions on which a row agrees with the query estimates its similarity
SELECT bool_and(similarity BETWEEN 0 AND 1) AS valid, count(DISTINCT error) AS errors, round(min(error)::numeric, 4) AS error, count(*) AS rows
	FROM matchcount_estimate('items_l2', (SELECT v FROM items WHERE id = 1));
SELECT id, similarity FROM matchcount_estimate('items_cosine', (SELECT v FROM items WHERE id = 1), 1) e JOIN items i ON i.ctid = e.tid;
SELECT count(*) AS estimates, count(*) FILTER (WHERE abs(e.similarity - exp(-(i.v <+> q.v) / s.sigma)) <= e.error) >= 0.94 * count(*) AS right
	FROM (SELECT (options->>'width_millionths')::float8 / 1e6 AS sigma FROM pgwarp_index_info('items_rbh')) s, items q,
	LATERAL matchcount_estimate('items_rbh', q.v, 50) e JOIN items i ON i.ctid = e.tid WHERE q.id % 400 = 1;
SELECT count(*) AS estimates, count(*) FILTER (WHERE abs(e.similarity - (1 - acos(1 - (i.v <=> q.v)) / pi())) <= e.error) >= 0.94 * count(*) AS right
	FROM items q, LATERAL matchcount_estimate('items_cosine', q.v, 50) e JOIN items i ON i.ctid = e.tid WHERE q.id % 400 = 2;
SELECT count(*) FROM matchcount_estimate('items_l2', (SELECT v FROM items WHERE id = 1), 0);
SELECT count(*) FROM matchcount_estimate('items_half', (SELECT v FROM items WHERE id = 1), 5);
SELECT count(*) FROM matchcount_estimate('items_cosine', array_fill(0, ARRAY[16])::vector);
SELECT * FROM matchcount_estimate('items_l2', '[1,2,3]'::vector);
SELECT * FROM matchcount_estimate('items_l2', (SELECT v FROM items WHERE id = 1), -1);
CREATE INDEX items_exact ON items USING exact (v);
CREATE INDEX items_text ON items USING matchcount (title);
SELECT * FROM matchcount_estimate('items_exact', (SELECT v FROM items WHERE id = 1));
SELECT * FROM matchcount_estimate('items_text', (SELECT v FROM items WHERE id = 1));
DROP INDEX items_exact, items_text;
CREATE ROLE regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT * FROM matchcount_estimate('items_l2', array_fill(0, ARRAY[16])::vector);
RESET ROLE;
DROP ROLE regress_pgwarp_reader;
-- rows that a transaction has deleted, and inserted
BEGIN;
DELETE FROM items WHERE id % 2 = 0;
INSERT INTO items SELECT 5000, 0, v, h, title FROM items WHERE id = 1;
SELECT count(*), count(*) FILTER (WHERE id % 2 = 0) AS gone, count(*) FILTER (WHERE id = 5000) AS new
	FROM matchcount_estimate('items_l2', (SELECT v FROM items WHERE id = 1), 100) e JOIN items i ON i.ctid = e.tid;
ROLLBACK;

-- a search that compares all rows is exact; a filter, and the rows behind the first ones
DROP INDEX items_few, items_l1, items_rbh, items_cosine, items_half;
CREATE FUNCTION nearest(query vector, k integer, by_index boolean, condition text DEFAULT 'true') RETURNS double precision[] AS $$
DECLARE
	found double precision[];
BEGIN
	PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name;
	EXECUTE format('SELECT array_agg(d) FROM (SELECT v <-> $1 AS d FROM items WHERE %s ORDER BY v <-> $1 LIMIT %s) n',
		condition, k) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql;
SELECT plan_of($$SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 10$$) AS plan;
SET pgwarp.matchcount_candidates = 65536;
SELECT count(*) AS queries, count(*) FILTER (WHERE nearest(v, 20, true) IS DISTINCT FROM nearest(v, 20, false)) AS wrong
	FROM items WHERE id % 400 = 7;
SELECT count(*) FILTER (WHERE nearest(v, 20, true, 'kind = 3') IS DISTINCT FROM nearest(v, 20, false, 'kind = 3')) AS wrong
	FROM items WHERE id % 400 = 7;
RESET pgwarp.matchcount_candidates;
SELECT count(*) AS queries, count(*) FILTER (WHERE nearest(v, 4000, true) IS DISTINCT FROM nearest(v, 4000, false)) AS wrong
	FROM items WHERE id % 2000 = 7;

-- rows that come and go, before and after a merge
INSERT INTO items SELECT 10000 + id, kind, v + array_fill(0.01, ARRAY[16])::vector, h, title FROM items WHERE id <= 1200;
DELETE FROM items WHERE id % 3 = 0;
VACUUM (INDEX_CLEANUP ON) items;
CALL pgwarp_merge('items_l2');
SELECT rows, delta_rows, dead_rows, options - 'width_millionths' AS options, calibration->>'renewed_by' AS renewed_by, calibration->>'changed_rows' AS changed_rows
	FROM pgwarp_index_info('items_l2');
SELECT pgwarp_recall('items_l2', 10) >= 0.93 AS recall;
INSERT INTO items SELECT 20000 + id, kind, v + array_fill(0.01, ARRAY[16])::vector, h, title FROM items WHERE id <= 100;
CALL pgwarp_merge('items_l2');
SELECT rows, delta_rows, options - 'width_millionths' AS options FROM pgwarp_index_info('items_l2');
SELECT count(*) FROM items q, LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n WHERE q.id > 20000 AND n.id = q.id;
SELECT live_rows, dead_rows FROM pgwarp_check('items_l2', true);

-- an index that was made without rows
CREATE TABLE later (id integer, v vector(16));
CREATE INDEX later_v ON later USING matchcount (v) WITH (hashes = 50);
INSERT INTO later SELECT id, v FROM items WHERE id <= 1000;
SELECT count(*) FROM (SELECT * FROM later ORDER BY v <-> array_fill(1, ARRAY[16])::vector) l;
CALL pgwarp_merge('later_v');
INSERT INTO later SELECT id + 10000, v FROM items WHERE id <= 100;
SELECT rows, delta_rows, options - 'width_millionths' AS options FROM pgwarp_index_info('later_v');
SELECT pgwarp_recall('later_v', 10) >= 0.93 AS recall;

-- many queries in one request
SELECT count(*) FROM items q, LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n WHERE q.id <= 200 AND n.id = q.id;
SELECT count(*) FROM knn_search('items_l2', ARRAY(SELECT v FROM items WHERE id <= 50 ORDER BY id), 5);
DROP TABLE items, later;
DROP FUNCTION nearest, plan_of;
