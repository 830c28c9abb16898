-- indexes of sparse vectors: every answer is that of a sequential scan
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
SET extra_float_digits = 0;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

\set sparse_answers :tests '/sql/include/sparse_answers.sql'
\i :sparse_answers

CREATE INDEX items_l2 ON items USING matchcount (v);
CREATE INDEX items_ip ON items USING matchcount (v sparsevec_ip_ops, kind);
CREATE INDEX items_cosine ON items USING matchcount (v sparsevec_cosine_ops);
CREATE INDEX items_l1 ON items USING matchcount (v sparsevec_l1_ops) INCLUDE (id);
SELECT opcname, opcdefault, opcintype::regtype, amvalidate(o.oid) FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE opcintype = 'sparsevec'::regtype AND amname = 'matchcount' ORDER BY 1;
SELECT i, method, rows, delta_rows, options->'unplaced_rows' AS unplaced, attainable_recall FROM unnest(ARRAY['items_l2', 'items_ip', 'items_cosine', 'items_l1']) i, pgwarp_index_info(i::regclass);
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 300, 4000]) k, compared(k);
SELECT * FROM compared(10, 'kind = 3');
SELECT * FROM compared(2000, 'kind BETWEEN 3 AND 5');
SELECT * FROM compared(10, 'v <-> $1 <= 12 AND kind < 5');
-- inserts, updates and deletes, before and after VACUUM and merges
INSERT INTO items SELECT i, i % 10, made_vector(i) FROM generate_series(1601, 1900) i;
INSERT INTO items VALUES (1901, 1, '{}/200'), (1902, 2, NULL), (1903, 3, (SELECT ('{' || string_agg(i || ':' || i, ',') || '}/200')::sparsevec FROM generate_series(1, 200) i));
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
DELETE FROM items WHERE id % 7 = 3;
UPDATE items SET v = made_vector(id + 4) WHERE id % 11 = 5;
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
VACUUM items;
CALL pgwarp_merge('items_l2');
CALL pgwarp_merge('items_cosine');
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
SELECT * FROM compared(10, 'kind = 3');
SELECT i, live_rows, dead_rows FROM unnest(ARRAY['items_l2', 'items_ip', 'items_cosine', 'items_l1']) i, pgwarp_check(i::regclass, true);
DELETE FROM items WHERE id % 3 = 0;
VACUUM items;
CALL pgwarp_merge('items_ip');
SELECT k, compared.* FROM unnest(ARRAY[10, 4000]) k, compared(k);
REINDEX INDEX items_ip;
SELECT pgwarp_release('items_l1'), pgwarp_prewarm('items_l1') > 0 AS prewarmed;
SELECT k, compared.* FROM unnest(ARRAY[10, 4000]) k, compared(k);

-- plans
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '{1:1}/200' LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind = 3 ORDER BY v <#> '{1:1}/200' LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <=> '{1:1}/200' LIMIT 5;
SELECT plan_of($$SELECT n.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <=> q.q LIMIT 3) n$$) AS plan;
-- a join, against the searches one by one
CREATE FUNCTION joined(operator text, OUT rows bigint, OUT wrong bigint) AS $$
BEGIN
	EXECUTE format('SELECT count(*), count(*) FILTER (WHERE found IS DISTINCT FROM distances(q, %1$L, 7, false, %2$L))
		FROM (SELECT q.q, array_agg(n.d) AS found FROM queries q CROSS JOIN LATERAL (SELECT v %1$s q.q AS d FROM items ORDER BY v %1$s q.q LIMIT 7) n GROUP BY q.id, q.q OFFSET 0) m', operator, 'true') INTO rows, wrong;
END
$$ LANGUAGE plpgsql;
SELECT o, joined.* FROM unnest(ARRAY['<->', '<#>', '<=>', '<+>']) o, joined(o);
RESET enable_seqscan;

-- rows within a bound, without an order
CREATE FUNCTION within(operator text, bound float8, by_index boolean) RETURNS integer[] AS $$
DECLARE
	found integer[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM items WHERE v %s %L <= %s OFFSET 0) n', operator, '{1:1,3:2,60:-1}/200', bound) INTO found;
	RETURN found;
END
$$ LANGUAGE plpgsql SET enable_sort = on;
SELECT o, bound, cardinality(within(o, bound, true)) AS found, within(o, bound, true) IS DISTINCT FROM within(o, bound, false) AS wrong
	FROM (VALUES ('<->', 6), ('<->', -1), ('<#>', -4), ('<#>', 0), ('<=>', 0.5), ('<=>', 3), ('<+>', 20)) v(o, bound);
SELECT plan_of($$SELECT id FROM items WHERE v <-> '{1:1}/200' <= 5$$) AS plan;

-- errors
SET enable_seqscan = off;
SELECT id FROM items ORDER BY v <-> '{1:1}/5' LIMIT 1;
SELECT n.id FROM (VALUES ('{1:1}/200'::sparsevec), ('{1:1}/7')) q(q) CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> q.q LIMIT 1) n;
RESET enable_seqscan;
INSERT INTO items VALUES (5000, 1, '{1:1}/5');
CREATE TABLE free (v sparsevec);
CREATE INDEX ON free USING matchcount (v);
CREATE INDEX ON free USING matchcount ((v::sparsevec(9)));
INSERT INTO free VALUES ('{1:1}/9'), ('{9:1}/9');
INSERT INTO free VALUES ('{1:1}/8');
CREATE INDEX ON items USING graph (v);
CREATE INDEX ON items USING matchcount (v) WITH (gram = 4);
CREATE INDEX ON items USING matchcount (v) WITH (hashes = 64);
SELECT knn_search('items_l2', ARRAY['[1,2,3]'::vector], 3);
SELECT pgwarp_recall('items_l2', 10);

-- the largest indices, and the most elements
CREATE TABLE wide (id integer, v sparsevec(1000000000));
INSERT INTO wide SELECT i, ('{' || i || ':1,' || 1000000000 - i || ':2}/1000000000')::sparsevec FROM generate_series(1, 50) i;
INSERT INTO wide SELECT 51, ('{' || string_agg(i * 60000 || ':' || i % 7 + 1, ',') || '}/1000000000')::sparsevec FROM generate_series(1, 16000) i;
CREATE INDEX wide_v ON wide USING matchcount (v sparsevec_ip_ops);
INSERT INTO wide SELECT 100 + id, v FROM wide;
SET enable_seqscan = off;
SELECT v <#> '{7:1,999999993:1,60000:1}/1000000000' AS d FROM wide ORDER BY v <#> '{7:1,999999993:1,60000:1}/1000000000' LIMIT 5;
SELECT v <#> (SELECT v FROM wide WHERE id = 51) AS d FROM wide ORDER BY v <#> (SELECT v FROM wide WHERE id = 51) LIMIT 3;

-- an empty table, and one of zero vectors alone
CREATE TABLE none (id integer, v sparsevec(3));
CREATE INDEX none_cosine ON none USING matchcount (v sparsevec_cosine_ops);
SELECT id FROM none ORDER BY v <=> '{1:1}/3' LIMIT 3;
INSERT INTO none VALUES (1, '{}/3'), (2, NULL);
SELECT id, v <=> '{1:1}/3' AS d FROM none ORDER BY v <=> '{1:1}/3' LIMIT 3;
INSERT INTO none VALUES (3, '{1:2}/3');
CALL pgwarp_merge('none_cosine');
SELECT id, v <=> '{1:1}/3' AS d FROM none ORDER BY v <=> '{1:1}/3' LIMIT 3;
SELECT live_rows, dead_rows FROM pgwarp_check('none_cosine', true);

-- a zero vector has no cosine distance to any row, also where the index returns the distance, of a row in the index or in the table
DROP INDEX none_cosine;
CREATE INDEX none_only ON none USING matchcount (v sparsevec_cosine_ops) INCLUDE (id);
VACUUM none;
SELECT plan_of($$SELECT id, v <=> '{}/3' AS d FROM none ORDER BY v <=> '{}/3'$$) AS plan;
SELECT v <=> '{}/3' AS d FROM none ORDER BY v <=> '{}/3';
SELECT count(*) FROM (SELECT id FROM none WHERE v <=> '{}/3' < 3 ORDER BY v <=> '{}/3') n;
INSERT INTO none VALUES (4, '{1:3}/3');
SELECT v <=> '{}/3' AS d FROM none ORDER BY v <=> '{}/3';

DROP TABLE items, queries, free, wide, none;
DROP FUNCTION made_vector, set_plan, distances, compared, joined, within, plan_of;
