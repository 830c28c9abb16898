-- Indexes of bit columns: answers beside those of a sequential scan, changes, joins, functions.
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
-- so many candidates that a graph finds all
SET pgwarp.graph_ef_search = 2000;

CREATE TABLE items (id integer PRIMARY KEY, kind integer, b bit(77)) WITH (autovacuum_enabled = off);
-- few bits of a row are set; each 50th row has none, and some rows are equal
CREATE FUNCTION row_of(i integer) RETURNS bit(77) LANGUAGE sql IMMUTABLE AS
	'SELECT CASE WHEN i % 50 = 0 THEN repeat(''0'', 77)::bit(77) ELSE ((hashint4(i / 2) & hashint4(i % 40))::bit(32) || (hashint4(i % 23) & hashint4(7 * i))::bit(32) || hashint4(i % 40)::bit(13))::bit(77) END';
INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1, 1000) i;

-- how many rows an index scan gives for some queries, and whether at the distances at which the nearest are
CREATE FUNCTION found(operator text, k integer, condition text DEFAULT 'true') RETURNS TABLE (rows bigint, same boolean) AS $$
DECLARE
	query bit(77);
	distances double precision[];
	true_distances double precision[];
	statement text := format('SELECT array_agg(d) FROM (SELECT b %1$s $1 AS d FROM items WHERE %2$s ORDER BY b %1$s $1 LIMIT %3$s) n',
		operator, condition, k);
BEGIN
	rows := 0; same := true;
	FOR query IN SELECT b FROM items WHERE id % 100 IN (7, 50) LOOP
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_sort = off;
		EXECUTE statement INTO distances USING query;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_sort = on;
		EXECUTE statement INTO true_distances USING query;
		rows := rows + cardinality(distances);
		same := same AND distances = true_distances;
	END LOOP;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION state(index regclass) RETURNS text LANGUAGE sql AS
	$$SELECT format('%s rows, %s in logs, %s dead; %s live, %s dead', rows, delta_rows, i.dead_rows, live_rows, c.dead_rows)
		FROM pgwarp_index_info(index) i, pgwarp_check(index, true) c$$;

-- built, with rows in the logs, merged, with rows that died, merged again; what goes wrong is told
CREATE PROCEDURE live(definition text, operator text) LANGUAGE plpgsql AS $$
DECLARE
	line record;
	step text;
BEGIN
	EXECUTE 'CREATE INDEX items_index ON items USING ' || definition;
	FOREACH step IN ARRAY ARRAY['SELECT', 'INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1001, 1200) i',
			'CALL pgwarp_merge(''items_index'')', 'DELETE FROM items WHERE id % 7 = 3', 'CALL pgwarp_merge(''items_index'')', 'REINDEX INDEX items_index'] LOOP
		EXECUTE step;
		FOR line IN SELECT 10 AS k, 'true' AS condition UNION ALL SELECT 10, 'kind = 7' UNION ALL SELECT 900, 'true' LOOP
			IF (SELECT NOT f.same OR f.rows = 0 FROM found(operator, line.k, line.condition) f) THEN
				RAISE WARNING '% % % %: %', definition, step, line.k, line.condition, (SELECT f FROM found(operator, line.k, line.condition) f);
			END IF;
		END LOOP;
	END LOOP;
	RAISE WARNING '%: %', definition, state('items_index');
	DROP INDEX items_index;
	TRUNCATE items;
	INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1, 1000) i;
END
$$;
\set VERBOSITY terse
CALL live('exact (b bit_hamming_ops)', '<~>');
CALL live('exact (b bit_jaccard_ops)', '<%>');
CALL live('graph (b bit_hamming_ops)', '<~>');
CALL live('graph (b bit_jaccard_ops)', '<%>');
CALL live('graph (b bit_hamming_ops) WITH (degree = 16)', '<~>');
\set VERBOSITY default

-- rows that VACUUM finds dead: few, and so many that the index is written anew
CREATE INDEX items_exact ON items USING exact (b bit_hamming_ops);
CREATE INDEX items_graph ON items USING graph (b bit_jaccard_ops);
INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1001, 1100) i;
DELETE FROM items WHERE id % 20 = 3;
VACUUM (INDEX_CLEANUP ON) items;
SELECT state('items_exact'), state('items_graph');
SELECT e.*, g.* FROM found('<~>', 10) e, found('<%>', 10) g;
CALL pgwarp_merge('items_exact');
CALL pgwarp_merge('items_graph');
SELECT e.*, g.* FROM found('<~>', 10) e, found('<%>', 10) g;
DELETE FROM items WHERE id % 4 = 1;
VACUUM (INDEX_CLEANUP ON) items;
CALL pgwarp_merge('items_exact');
CALL pgwarp_merge('items_graph');
SELECT state('items_exact'), state('items_graph');
SELECT e.*, g.* FROM found('<~>', 10) e, found('<%>', 10) g;
DROP INDEX items_exact, items_graph;

-- an eighth of a byte a dimension, in pages and in logs
CREATE TABLE wide (id int, b bit(2048));
INSERT INTO wide SELECT i, (SELECT string_agg(hashint4(i * 64 + d)::bit(32)::text, '')::bit(2048) FROM generate_series(1, 64) d) FROM generate_series(1, 1500) i;
CREATE INDEX wide_b ON wide USING exact (b bit_hamming_ops);
SELECT pg_relation_size('wide_b') < 2 * 1500 * 256 AS packed;
SELECT pg_relation_size('wide_b') AS before \gset
INSERT INTO wide SELECT id + 1500, b FROM wide;
SELECT pg_relation_size('wide_b') - :before < 2 * 1500 * 256 AS packed_in_logs;
DROP TABLE wide;

-- an index that begins empty
CREATE TABLE started (id int, b bit(3));
CREATE INDEX started_exact ON started USING exact (b bit_hamming_ops);
CREATE INDEX started_graph ON started USING graph (b bit_jaccard_ops);
INSERT INTO started SELECT i, i::bit(3) FROM generate_series(0, 7) i;
INSERT INTO started VALUES (8, NULL);
SET seq_page_cost = 1000;
SELECT id FROM started ORDER BY b <~> B'111' LIMIT 4;
SELECT id FROM started ORDER BY b <%> B'111' LIMIT 4;
CALL pgwarp_merge('started_exact');
CALL pgwarp_merge('started_graph');
SELECT state('started_exact'), state('started_graph');
SELECT id FROM started ORDER BY b <~> B'111' LIMIT 4;
SELECT id, b <%> B'011' AS d FROM started ORDER BY b <%> B'011' LIMIT 5;
DROP TABLE started;

-- one bit, and as many as there may be
CREATE TABLE bounds (id int, one bit, most bit(64000));
INSERT INTO bounds SELECT i, (i % 2)::bit(1), overlay(repeat('0', 64000) PLACING repeat('1', 1000 * i) FROM 1)::bit(64000) FROM generate_series(1, 30) i;
CREATE INDEX bounds_one ON bounds USING graph (one bit_hamming_ops);
CREATE INDEX bounds_most ON bounds USING graph (most bit_hamming_ops);
CREATE INDEX bounds_exact ON bounds USING exact (most bit_jaccard_ops);
INSERT INTO bounds SELECT 100 + id, one, most FROM bounds WHERE id IN (7, 12);
SELECT count(*) FILTER (WHERE one = B'1'), array_agg(one <~> B'1') FROM (SELECT one FROM bounds ORDER BY one <~> B'1' LIMIT 17) s;
SELECT id, d FROM (SELECT id, most <~> (SELECT most FROM bounds WHERE id = 12) AS d FROM bounds ORDER BY most <~> (SELECT most FROM bounds WHERE id = 12) LIMIT 4) s ORDER BY d, id;
SELECT id, round(d::numeric, 6) AS d FROM (SELECT id, most <%> (SELECT most FROM bounds WHERE id = 7) AS d FROM bounds ORDER BY most <%> (SELECT most FROM bounds WHERE id = 7) LIMIT 4) s ORDER BY d, id;
SELECT state('bounds_most'), state('bounds_exact');
DROP TABLE bounds;

-- queries
TRUNCATE items;
INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1, 1000) i;
CREATE INDEX items_index ON items USING graph (b bit_hamming_ops) INCLUDE (id);
VACUUM items;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY b <~> row_of(5) LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, b FROM items ORDER BY b <%> row_of(5) LIMIT 3;
SELECT b <~> row_of(5) AS d FROM items ORDER BY b <~> row_of(5) LIMIT 1;
PREPARE nearest(bit) AS SELECT b <~> $1 AS d FROM items ORDER BY b <~> $1 LIMIT 1;
EXECUTE nearest(row_of(77));
DEALLOCATE nearest;
SELECT id FROM items ORDER BY b <~> B'101' LIMIT 1;
SELECT id FROM items ORDER BY b <~> repeat('1', 78)::varbit LIMIT 1;
SELECT count(*) FROM (SELECT id FROM items ORDER BY b <~> NULL LIMIT 5) s;
SELECT count(*) FROM (SELECT id FROM items WHERE b <~> row_of(5) < 3 ORDER BY b <~> row_of(5) LIMIT 100) s;
SELECT count(*) FROM (SELECT id FROM items ORDER BY b <~> row_of(5)) s;
SELECT count(*) FROM items;

-- joins, in batches; index-only
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM items q CROSS JOIN LATERAL (SELECT i.id FROM items i ORDER BY i.b <~> q.b LIMIT 2) n WHERE q.kind = 3;
SELECT count(*), count(*) FILTER (WHERE n.d = 0) AS own FROM items q CROSS JOIN LATERAL (SELECT i.id, i.b <~> q.b AS d FROM items i ORDER BY i.b <~> q.b LIMIT 1) n WHERE q.kind = 3;
SELECT n.d FROM (VALUES (B'1'::varbit)) q(b) CROSS JOIN LATERAL (SELECT i.b <~> q.b AS d FROM items i ORDER BY i.b <~> q.b LIMIT 1) n;

-- functions
SELECT s.query, s.distance, s.distance = i.b <~> row_of(s.query) AS right FROM knn_search('items_index', ARRAY[row_of(1), row_of(2)], 1) s JOIN items i ON i.ctid = s.tid ORDER BY s.query;
SELECT s.query, s.distance FROM knn_search('items_index', ARRAY[row_of(1), NULL, row_of(3)], 1) s ORDER BY 1;
SELECT s.query, s.distance FROM knn_search('items_index', 'SELECT b FROM items WHERE id < 4 ORDER BY id', 1) s ORDER BY 1;
SELECT * FROM knn_search('items_index', ARRAY['[1,2]']::vector[], 1);
SELECT * FROM knn_search('items_index', 'SELECT ''[1]''::halfvec', 1);
SELECT * FROM knn_search('items_index', ARRAY[B'101'], 1);
SELECT count(*), count(*) FILTER (WHERE g.distance = a.b <~> b.b) AS right FROM knn_graph('items_index', 2) g JOIN items a ON a.ctid = g.tid JOIN items b ON b.ctid = g.neighbor;
SELECT pgwarp_recall('items_index'), method, rows FROM pgwarp_index_info('items_index');
SELECT pgwarp_prewarm('items_index') IS NOT NULL AS prewarmed;
SELECT id FROM kmeans('items', 'b', 2);
DROP INDEX items_index;
CREATE INDEX items_vector ON items USING exact ((ARRAY[id]::vector(1)));
SELECT * FROM knn_search('items_vector', ARRAY[B'1'], 1);
DROP INDEX items_vector;

-- bits of vectors, re-ranked by the vectors
CREATE TABLE vectors (id int, v vector(16));
INSERT INTO vectors SELECT i, (SELECT array_agg(hashint4(i * 16 + d) % 1000) FROM generate_series(1, 16) d)::vector FROM generate_series(1, 500) i;
CREATE INDEX vectors_bits ON vectors USING graph ((binary_quantize(v)::bit(16)) bit_hamming_ops);
EXPLAIN (COSTS OFF) SELECT id FROM vectors ORDER BY binary_quantize(v)::bit(16) <~> B'0101010101010101' LIMIT 20;
SELECT id FROM (SELECT * FROM vectors ORDER BY binary_quantize(v)::bit(16) <~> binary_quantize((SELECT v FROM vectors WHERE id = 42)) LIMIT 20) s ORDER BY v <-> (SELECT v FROM vectors WHERE id = 42) LIMIT 1;
DROP TABLE vectors;

-- partitions
CREATE TABLE parted (id int, b bit(77)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (101);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (101) TO (1001);
INSERT INTO parted SELECT id, b FROM items WHERE id <= 1000;
CREATE INDEX ON parted USING exact (b bit_jaccard_ops);
EXPLAIN (COSTS OFF) SELECT id FROM parted ORDER BY b <%> row_of(99) LIMIT 2;
SELECT b <%> row_of(99) AS d FROM parted ORDER BY b <%> row_of(99) LIMIT 2;
DROP TABLE parted;

-- what can't be indexed
CREATE TABLE undefined (b bit(8), v varbit(8), w bit varying, many bit(64001));
CREATE INDEX ON undefined USING exact (b);
CREATE INDEX ON undefined USING ivfadc (b bit_hamming_ops);
CREATE INDEX ON undefined USING exact (v bit_hamming_ops);
CREATE INDEX ON undefined USING graph ((b || b) bit_hamming_ops);
CREATE INDEX ON undefined USING graph (many bit_hamming_ops);
CREATE INDEX ON undefined USING exact ((w::bit(64001)) bit_hamming_ops);
CREATE INDEX ON undefined USING exact (b bit_hamming_ops) WITH (vectors = half);
CREATE INDEX ON undefined USING graph (b bit_hamming_ops) WITH (vectors = bits);
CREATE INDEX ON undefined USING graph ((binary_quantize('[1]'::vector)) bit_hamming_ops);
CREATE INDEX ON undefined USING graph ((w::bit(4)) bit_jaccard_ops);
INSERT INTO undefined VALUES (B'10101010', B'1', B'1');
SELECT w FROM undefined ORDER BY w::bit(4) <%> B'1000';
DROP TABLE undefined, items;
DROP PROCEDURE live;
DROP FUNCTION found, state, row_of;
