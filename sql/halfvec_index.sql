-- Indexes of halfvec columns: answers, changes, joins, functions.
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
-- every list and many candidates, so that answers don't depend on how a device trained lists and codes
SET pgwarp.ivfadc_probes = 1000;
SET pgwarp.refine_factor = 100;
SET pgwarp.graph_ef_search = 1000;
SET pgwarp.pqtree_candidates = 2000;

CREATE TABLE items (id integer PRIMARY KEY, kind integer, h halfvec(8)) WITH (autovacuum_enabled = off);
CREATE FUNCTION row_of(i integer) RETURNS halfvec LANGUAGE sql IMMUTABLE AS
	'SELECT ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i), sin(0.77 * i), cos(5.1 * i), sin(3.3 * i), 100 * cos(0.013 * i)]::halfvec';
INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1, 1000) i;

-- how many of the nearest rows of some queries an index scan finds, in order and at the same distances, and whether those are of the vectors too
CREATE FUNCTION found(operator text, k integer, condition text DEFAULT 'true') RETURNS TABLE (rows bigint, hits bigint, same boolean, as_vectors boolean) AS $$
DECLARE
	query halfvec(8);
	ids integer[];
	distances double precision[];
	truth integer[];
	true_distances double precision[];
	statement text := format('SELECT array_agg(id), array_agg(d) FROM (SELECT id, h %1$s $1 AS d FROM items WHERE %2$s ORDER BY h %1$s $1 LIMIT %3$s) n',
		operator, condition, k);
BEGIN
	rows := 0; hits := 0; same := true; as_vectors := true;
	FOR query IN SELECT h FROM items WHERE id % 100 = 7 LOOP
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_sort = off;
		EXECUTE statement INTO ids, distances USING query;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_sort = on;
		EXECUTE statement INTO truth, true_distances USING query;
		rows := rows + cardinality(ids);
		hits := hits + (SELECT count(*) FROM unnest(ids) a JOIN unnest(truth) b ON a = b);
		same := same AND distances = true_distances;
		EXECUTE format('SELECT array_agg(d ORDER BY d) FROM (SELECT h::vector %1$s $1::vector AS d FROM items WHERE %2$s ORDER BY 1 LIMIT %3$s) n', operator, condition, k)
			INTO true_distances USING query;
		as_vectors := as_vectors AND distances = true_distances;
	END LOOP;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION state(index regclass) RETURNS text LANGUAGE sql AS
	$$SELECT format('%s rows, %s in logs, %s dead; %s live, %s dead', rows, delta_rows, i.dead_rows, live_rows, c.dead_rows)
		FROM pgwarp_index_info(index) i, pgwarp_check(index, true) c$$;
-- built, with rows in the logs, merged; what goes wrong is told
CREATE PROCEDURE live(definition text, operator text) LANGUAGE plpgsql AS $$
DECLARE
	line record;
	step text;
BEGIN
	EXECUTE 'CREATE INDEX items_index ON items USING ' || definition;
	FOREACH step IN ARRAY ARRAY['', 'INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1001, 1200) i',
			'CALL pgwarp_merge(''items_index'')'] LOOP
		EXECUTE coalesce(nullif(step, ''), 'SELECT');
		FOR line IN SELECT 10 AS k, 'true' AS condition UNION ALL SELECT 10, 'kind = 7' UNION ALL SELECT 900, 'true' LOOP
			IF (SELECT (f.rows, f.hits, f.same, f.as_vectors) IS DISTINCT FROM (f.rows, f.rows, true, true) OR f.rows = 0 FROM found(operator, line.k, line.condition) f) THEN
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
CALL live('exact (h)', '<->');
CALL live('exact (h) WITH (vectors = half)', '<->');
CALL live('exact (h halfvec_ip_ops)', '<#>');
CALL live('exact (h halfvec_cosine_ops)', '<=>');
CALL live('exact (h halfvec_cosine_ops) WITH (vectors = half)', '<=>');
CALL live('exact (h halfvec_l1_ops)', '<+>');
CALL live('ivfadc (h) WITH (lists = 10)', '<->');
CALL live('ivfadc (h halfvec_ip_ops) WITH (lists = 10, refine = full)', '<#>');
CALL live('ivfadc (h halfvec_cosine_ops) WITH (lists = 10, refine = full)', '<=>');
CALL live('ivfadc (h halfvec_cosine_ops) WITH (lists = 10)', '<=>');
CALL live('ivfadc (h) WITH (lists = 10, codes = half, refine = none)', '<->');
CALL live('ivfadc (h) WITH (lists = 10, codes = int8)', '<->');
CALL live('ivfadc (h halfvec_ip_ops) WITH (lists = 10, codes = half)', '<#>');
CALL live('pqtree (h)', '<->');
CALL live('pqtree (h) WITH (refine = none)', '<->');
CALL live('pqtree (h halfvec_ip_ops) WITH (refine = full)', '<#>');
CALL live('pqtree (h halfvec_cosine_ops)', '<=>');
CALL live('pqtree (h halfvec_cosine_ops) WITH (refine = full)', '<=>');
CALL live('graph (h)', '<->');
CALL live('graph (h halfvec_ip_ops) WITH (vectors = half)', '<#>');
CALL live('graph (h halfvec_cosine_ops) WITH (vectors = half)', '<=>');
CALL live('graph (h halfvec_l1_ops)', '<+>');
\set VERBOSITY default

-- rows that died: few, and so many that the index is written anew
CREATE INDEX items_exact ON items USING exact (h);
CREATE INDEX items_cosine ON items USING exact (h halfvec_cosine_ops);
CREATE INDEX items_ivfadc ON items USING ivfadc (h halfvec_ip_ops) WITH (lists = 10);
INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1001, 1100) i;
DELETE FROM items WHERE id % 20 = 3;
VACUUM (INDEX_CLEANUP ON) items;
SELECT state('items_exact'), state('items_cosine'), state('items_ivfadc');
SELECT f.*, c.*, i.* FROM found('<->', 10) f, found('<=>', 10) c, found('<#>', 10) i;
CALL pgwarp_merge('items_exact');
CALL pgwarp_merge('items_cosine');
CALL pgwarp_merge('items_ivfadc');
SELECT f.*, c.*, i.* FROM found('<->', 10) f, found('<=>', 10) c, found('<#>', 10) i;
INSERT INTO items SELECT i, i % 10, row_of(i) FROM generate_series(1101, 1200) i;
DELETE FROM items WHERE id % 4 = 1;
VACUUM (INDEX_CLEANUP ON) items;
CALL pgwarp_merge('items_exact');
CALL pgwarp_merge('items_cosine');
CALL pgwarp_merge('items_ivfadc');
SELECT state('items_exact'), state('items_cosine'), state('items_ivfadc');
SELECT f.*, c.*, i.* FROM found('<->', 10) f, found('<=>', 10) c, found('<#>', 10) i;
REINDEX TABLE items;
SELECT f.*, c.*, i.* FROM found('<->', 10) f, found('<=>', 10) c, found('<#>', 10) i;
DROP INDEX items_exact, items_cosine, items_ivfadc;

-- half the size of an index of vectors, whatever the operator
CREATE TABLE wide (h halfvec(256), v vector(256));
INSERT INTO wide SELECT a::halfvec, a::halfvec FROM (SELECT ARRAY(SELECT hashint8(i * 300 + d) % 1000 FROM generate_series(1, 256) d) AS a FROM generate_series(1::bigint, 2000) i) s;
CREATE INDEX wide_h ON wide USING exact (h);
CREATE INDEX wide_v ON wide USING exact (v);
SELECT pg_relation_size('wide_h') < 0.6 * pg_relation_size('wide_v') AS half_l2;
DROP INDEX wide_h, wide_v;
CREATE INDEX wide_h ON wide USING exact (h halfvec_cosine_ops);
CREATE INDEX wide_v ON wide USING exact (v vector_cosine_ops);
SELECT pg_relation_size('wide_h') < 0.6 * pg_relation_size('wide_v') AS half_cosine;
SELECT pg_relation_size('wide_h') AS before \gset
INSERT INTO wide SELECT * FROM wide;
SELECT pg_relation_size('wide_h') - :before < 0.7 * 2000 * 1024 AS half_in_logs;
DROP TABLE wide;

-- far from zero, tiny, subnormal and zero values
CREATE TABLE extremes (id int, h halfvec(3));
INSERT INTO extremes VALUES (1, '[65504,65504,65504]'), (2, '[65504,65472,-65504]'), (3, '[6e-8,0,0]'), (4, '[0,0,0]'), (5, '[-6e-8,1.2e-7,0]'), (6, '[6.1e-5,6.1e-5,0]'), (7, NULL), (8, '[-0,0,1]');
SET seq_page_cost = 1000;
CREATE INDEX extremes_h ON extremes USING exact (h);
SELECT id, h <-> '[0,0,0]' AS l2 FROM extremes ORDER BY h <-> '[0,0,0]';
SELECT id FROM extremes ORDER BY h <-> '[65504,65504,65504]' LIMIT 3;
DROP INDEX extremes_h;
CREATE INDEX extremes_h ON extremes USING exact (h halfvec_cosine_ops);
SELECT id, round((h <=> '[6e-8,6e-8,0]')::numeric, 12) AS cosine FROM extremes ORDER BY h <=> '[6e-8,6e-8,0]';
INSERT INTO extremes VALUES (9, '[-1.2e-7,6e-8,0]'), (10, '[0,0,0]'), (11, '[65504,1,1]');
SELECT id, round((h <=> '[1,1,0]')::numeric, 12) AS cosine FROM extremes ORDER BY h <=> '[1,1,0]';
CALL pgwarp_merge('extremes_h');
SELECT id, round((h <=> '[1,1,0]')::numeric, 12) AS cosine FROM extremes ORDER BY h <=> '[1,1,0]';
SELECT state('extremes_h');
DROP TABLE extremes;

-- an index that begins empty
CREATE TABLE started (id int, h halfvec(2));
CREATE INDEX started_exact ON started USING exact (h);
CREATE INDEX started_ivfadc ON started USING ivfadc (h halfvec_cosine_ops);
INSERT INTO started SELECT i, ARRAY[i, 1]::halfvec FROM generate_series(1, 20) i;
SELECT id FROM started ORDER BY h <-> '[7.2,1]' LIMIT 2;
CALL pgwarp_merge('started_exact');
CALL pgwarp_merge('started_ivfadc');
SELECT state('started_exact'), state('started_ivfadc');
SELECT id FROM started ORDER BY h <-> '[7.2,1]' LIMIT 2;
SELECT id FROM started ORDER BY h <=> '[7.2,1]' LIMIT 2;
DROP TABLE started;

-- queries: halfvecs, and vectors, which become halfvecs
CREATE INDEX items_index ON items USING exact (h) INCLUDE (id);
VACUUM items;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY h <-> row_of(5)::vector(8) LIMIT 3;
SELECT id FROM items ORDER BY h <-> row_of(5) LIMIT 3;
SELECT id FROM items ORDER BY h <-> row_of(5)::vector(8) LIMIT 3;
PREPARE nearest(halfvec) AS SELECT id FROM items ORDER BY h <-> $1 LIMIT 1;
EXECUTE nearest(row_of(77));
SELECT id FROM items ORDER BY h <-> '[1,2]';
SELECT id FROM items ORDER BY h <-> ARRAY[70000,0,0,0,0,0,0,0]::vector LIMIT 1;
INSERT INTO items VALUES (2000, 0, '[1,2]');
SELECT count(*) FROM (SELECT id FROM items ORDER BY h <-> NULL LIMIT 5) s;
SELECT id FROM items WHERE h <-> row_of(5) < 0.5 ORDER BY h <-> row_of(5) LIMIT 100;

-- joins, in batches; index-only
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM items q CROSS JOIN LATERAL (SELECT i.id FROM items i ORDER BY i.h <-> q.h LIMIT 2) n WHERE q.kind = 3;
SELECT count(*), sum(n.id), count(*) FILTER (WHERE n.id = q.id) AS own FROM items q CROSS JOIN LATERAL (SELECT i.id FROM items i ORDER BY i.h <-> q.h LIMIT 2) n WHERE q.kind = 3;
SELECT count(*), count(*) FILTER (WHERE n.id = q.id) AS own FROM (SELECT id, kind, h::vector(8) AS v FROM items) q
	CROSS JOIN LATERAL (SELECT i.id, i.h <-> q.v AS d FROM items i ORDER BY i.h <-> q.v LIMIT 1) n WHERE q.kind = 3;
SELECT count(*) FROM (SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.h <-> q.h LIMIT 1) AS nearest FROM items q WHERE kind = 4 OFFSET 0) s WHERE nearest = ARRAY[id];

-- functions
SELECT s.query, i.id, s.distance = i.h <-> row_of(s.query) AS right FROM knn_search('items_index', ARRAY[row_of(1), row_of(2)], 2) s JOIN items i ON i.ctid = s.tid ORDER BY s.query, s.distance;
SELECT s.query, i.id, s.distance = i.h <-> row_of(s.query) AS right FROM knn_search('items_index', ARRAY[row_of(1)::vector, NULL, row_of(3)::vector], 1) s JOIN items i ON i.ctid = s.tid ORDER BY 1;
SELECT s.query, i.id, s.distance = i.h <-> '[0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1]' AS right FROM knn_search('items_index', ARRAY['[0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1]']::vector[], 1) s JOIN items i ON i.ctid = s.tid;
SELECT s.query, i.id FROM knn_search('items_index', 'SELECT h FROM items WHERE id < 4 ORDER BY id', 1) s JOIN items i ON i.ctid = s.tid ORDER BY 1;
SELECT s.query, i.id FROM knn_search('items_index', 'SELECT h::vector FROM items WHERE id < 4 ORDER BY id', 1) s JOIN items i ON i.ctid = s.tid ORDER BY 1;
SELECT * FROM knn_search('items_index', 'SELECT 1', 1);
SELECT * FROM knn_search('items_index', ARRAY['[1,2]']::halfvec[], 1);
SELECT * FROM knn_search('items_index', ARRAY['[70000,0,0,0,0,0,0,0]']::vector[], 1);
SELECT count(*), count(*) FILTER (WHERE a.id = b.id) AS own FROM knn_graph('items_index', 2) g JOIN items a ON a.ctid = g.tid JOIN items b ON b.ctid = g.neighbor;
SELECT pgwarp_recall('items_index');
SELECT id, vector_dims(centroid), pg_typeof(centroid) FROM kmeans('items', 'h', 2) ORDER BY id;
SELECT count(DISTINCT nearest_centroid(h::vector, (SELECT array_agg(centroid ORDER BY id) FROM kmeans('items', 'h', 2)))) FROM items WHERE id < 500;

-- an index of vectors takes halfvecs for queries of functions; operators need a cast
CREATE INDEX items_vector ON items USING exact ((h::vector(8)));
SELECT s.query, i.id, s.distance = i.h <-> row_of(2) AS right FROM knn_search('items_vector', ARRAY[NULL, row_of(2)], 1) s JOIN items i ON i.ctid = s.tid;
SELECT id FROM items ORDER BY h::vector(8) <-> row_of(9)::vector LIMIT 1;
DROP INDEX items_index, items_vector;

-- halves of a column of vectors
CREATE TABLE vectors (id int, v vector);
INSERT INTO vectors SELECT i, row_of(i) FROM generate_series(1, 300) i;
CREATE INDEX vectors_half ON vectors USING ivfadc ((v::halfvec(8)) halfvec_l2_ops);
EXPLAIN (COSTS OFF) SELECT id FROM vectors ORDER BY v::halfvec(8) <-> row_of(5) LIMIT 2;
SELECT id FROM vectors ORDER BY v::halfvec(8) <-> row_of(5) LIMIT 2;
INSERT INTO vectors VALUES (301, '[70000,0,0,0,0,0,0,0]');
SELECT state('vectors_half');
DROP TABLE vectors;

-- partitions
CREATE TABLE parted (id int, h halfvec(8)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (101);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (101) TO (1001);
INSERT INTO parted SELECT id, h FROM items;
CREATE INDEX ON parted USING exact (h halfvec_cosine_ops);
EXPLAIN (COSTS OFF) SELECT id FROM parted ORDER BY h <=> row_of(100) LIMIT 2;
SELECT id FROM parted ORDER BY h <=> row_of(100) LIMIT 1;
DROP TABLE parted;

-- what can't be indexed
CREATE TABLE undefined (h halfvec, a bit(8));
CREATE INDEX ON undefined USING exact (h);
CREATE INDEX ON undefined USING exact ((h::halfvec(3)) vector_l2_ops);
CREATE INDEX ON undefined USING ivfadc ((h::halfvec(3)) halfvec_l1_ops);
DROP TABLE undefined, items;
DROP PROCEDURE live;
DROP FUNCTION found, state, row_of;
