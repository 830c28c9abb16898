-- INCLUDE columns: what is answered from the index, what is not, and that both give the same rows.
SET client_min_messages = warning;
SET jit = off;
SET seq_page_cost = 1000;
SET enable_bitmapscan = off;
SET enable_memoize = off;
SET pgwarp.verify_results = on;

CREATE TABLE items (gone text, id integer, kind integer, title text, v vector(4), w vector(4));
ALTER TABLE items DROP COLUMN gone;
INSERT INTO items SELECT i, i % 5, CASE WHEN i % 7 > 0 THEN repeat('title ' || i, i % 40) END,
	ARRAY[i % 17, i % 101, i % 13, i]::vector, ARRAY[i, 1, 1, i % 3]::vector FROM generate_series(1, 1000) i;
INSERT INTO items VALUES (0, 0, 'no vector', NULL, NULL);
CREATE INDEX items_v ON items USING exact (v) INCLUDE (id, title);
SELECT pg_get_indexdef('items_v'::regclass);
VACUUM ANALYZE items;

-- plans: the included columns and the distance
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, title FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, v <-> '[1,2,3,4]' AS d, 10 - (v <-> '[1,2,3,4]') AS e FROM items ORDER BY d LIMIT 3;
EXPLAIN (COSTS OFF) SELECT title FROM items WHERE id % 10 = 3 AND v <-> '[1,2,3,4]' > 7 ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
SELECT id FROM items ORDER BY v <-> '[1,2,3,4]', id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, random() FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
PREPARE nearest(vector) AS SELECT id FROM items ORDER BY v <-> $1 LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE nearest('[1,2,3,4]');
EXECUTE nearest('[1,2,3,4]');
EXECUTE nearest('[5,6,7,900]');
RESET plan_cache_mode;
-- what was fetched, without what only newer servers tell
CREATE FUNCTION fetches_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
		IF line !~ 'Index Searches' THEN RETURN NEXT replace(line, '.00 ', ' '); END IF;
	END LOOP;
END $$;
SELECT fetches_of($$SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3$$);
-- below other nodes
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE pg_backend_pid() > 0 ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
SELECT id, v <-> '[1,2,3,4]' AS d FROM items WHERE (SELECT true) ORDER BY d LIMIT 3;
SELECT id FROM items WHERE (SELECT false) ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' FETCH FIRST 1 ROW WITH TIES;
(SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 2) UNION ALL (SELECT id FROM items ORDER BY v <-> '[1,2,3,900]' LIMIT 2);
WITH near AS MATERIALIZED (SELECT id, v <-> '[1,2,3,4]' AS d FROM items ORDER BY d LIMIT 4) SELECT sum(id), max(d) FROM near;
SELECT id FROM items WHERE id IN (SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 2);
SELECT sum(id), sum(n) FROM (SELECT i.id, count(*) OVER () AS n FROM (SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 4) i) s;
SELECT id, (SELECT n.id FROM items n WHERE n.id <> i.id ORDER BY n.v <-> i.v LIMIT 1) AS other FROM items i WHERE id < 4 ORDER BY id;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, left(title, 8) AS title FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
CREATE TABLE copied AS SELECT id, v <-> '[1,2,3,4]' AS d FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
INSERT INTO copied SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
SELECT id, count(*), count(d) FROM copied GROUP BY id ORDER BY id;
ROLLBACK;
SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
-- more than that is wanted
EXPLAIN (COSTS OFF) SELECT v FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, vector_dims(v) FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, v <-> '[0,0,0,0]' FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, random() * (v <-> '[1,2,3,4]') FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind = 3 ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT ctid, id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT items FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3 FOR UPDATE;
EXPLAIN (COSTS OFF) SELECT id, (SELECT v <-> '[0,0,0,0]') FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3,4]' < 20 ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 3;
RESET enable_indexonlyscan;
-- joins: in batches, but not where the distance is computed above the scan
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM items q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT a.id FROM items a JOIN items b ON b.id = a.id ORDER BY a.v <-> '[1,2,3,4]' LIMIT 3;
-- sub-selects of a target list: in batches
EXPLAIN (COSTS OFF) SELECT q.id, (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 1) FROM items q;
-- never without order
RESET seq_page_cost;
EXPLAIN (COSTS OFF) SELECT count(*) FROM items;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE id = 7;
SET seq_page_cost = 1000;
SELECT count(id) FROM items;

-- rows
SELECT id, left(title, 10), round((v <-> '[1,2,3,4]')::numeric, 4) AS d FROM items ORDER BY v <-> '[1,2,3,4]' LIMIT 4;
PREPARE distances(vector) AS SELECT count(id), count(d) FROM (SELECT id, v <-> $1 AS d FROM items ORDER BY v <-> $1) s;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE distances(NULL);
EXECUTE distances(NULL);
EXECUTE distances('[1,2,3,4]');
RESET plan_cache_mode;

-- The rows of each query, by the index alone and by plain scans of it.
CREATE FUNCTION rows_of(query text, index_only bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text; used bool := false;
BEGIN
	PERFORM set_config('enable_indexonlyscan', index_only::text, true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'Index Only Scan using' THEN used := true; END IF;
	END LOOP;
	IF used <> index_only THEN RETURN 'another plan' || index_only || used; END IF;
	EXECUTE 'SELECT md5(string_agg(s::text, '','')) || '' '' || count(*) FROM (' || query || ') s' INTO result;
	RETURN result;
END $$;
CREATE FUNCTION same_rows(query text) RETURNS text LANGUAGE sql AS
	$$SELECT CASE WHEN rows_of(query, true) = rows_of(query, false) THEN 'same' ELSE rows_of(query, true) || ' <> ' || rows_of(query, false) END$$;
SELECT same_rows('SELECT id, title, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
SELECT same_rows('SELECT id, title FROM items WHERE id % 97 = 5 ORDER BY v <-> ''[3,3,3,500]''');
SELECT same_rows('SELECT q.id, n.id, n.title, n.d FROM (SELECT id, w FROM items WHERE id BETWEEN 1 AND 300) q CROSS JOIN LATERAL
	(SELECT id, title, i.v <-> q.w AS d FROM items i ORDER BY i.v <-> q.w LIMIT 5) n');
SELECT same_rows('SELECT q.id, (SELECT title FROM items i ORDER BY i.v <-> q.w LIMIT 1) FROM items q WHERE id < 300 ORDER BY q.id');
CREATE TABLE others (id integer, title text, v vector(4));
INSERT INTO others SELECT id + 10000, 'other ' || title, v + v FROM items;
CREATE INDEX others_v ON others USING exact (v) INCLUDE (id, title);
VACUUM ANALYZE others;
SELECT same_rows('SELECT q.id, (SELECT string_agg(n.id || n.title, '','' ORDER BY id) FROM
	((SELECT id, title FROM items i ORDER BY i.v <-> q.w LIMIT 4) UNION ALL
	 (SELECT id, title FROM others o ORDER BY o.v <-> q.w LIMIT 4)) n) FROM items q WHERE id < 300 ORDER BY q.id');
-- what the batches did: each scan found its answer there, with the places of the rows
CREATE FUNCTION batches_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '(Batches|Rows Read|Requests|Searches|Cache Hits|Deepened|Index Only Scan|Heap Fetches)' AND line !~ 'Index Searches' THEN
			RETURN NEXT regexp_replace(trim(line), '[(]actual.*', '');
		END IF;
	END LOOP;
END $$;
SELECT batches_of('SELECT q.id, n.id FROM (SELECT id, w FROM items WHERE id BETWEEN 1 AND 300) q CROSS JOIN LATERAL
	(SELECT id FROM items i ORDER BY i.v <-> q.w LIMIT 5) n');
SELECT batches_of('SELECT q.id, (SELECT id FROM items i ORDER BY i.v <-> q.w LIMIT 1) FROM items q');
SELECT batches_of('SELECT q.id, (SELECT sum(n.id) FROM
	((SELECT id FROM items i ORDER BY i.v <-> q.w LIMIT 4) UNION ALL
	 (SELECT id FROM others o ORDER BY o.v <-> q.w LIMIT 4)) n) FROM items q');
-- no page of the heap is read for them
SET pgwarp.verify_results = off;
SELECT pg_stat_force_next_flush() IS NULL AS flushed;
SELECT pg_stat_get_blocks_fetched('others'::regclass) AS before \gset
SELECT count(n) FROM (SELECT (SELECT sum(n.id) FROM
	((SELECT id FROM items i ORDER BY i.v <-> q.w LIMIT 4) UNION ALL
	 (SELECT id FROM others o ORDER BY o.v <-> q.w LIMIT 4)) n) AS n FROM items q OFFSET 0) s;
SELECT pg_stat_force_next_flush() IS NULL AS flushed;
SELECT pg_stat_get_blocks_fetched('others'::regclass) - :before <= 10 AS from_index;
SET pgwarp.verify_results = on;
DROP TABLE others;

-- changes: the delta log, and pages that are not all-visible
INSERT INTO items SELECT i, 1, CASE WHEN i % 2 = 0 THEN 'inserted ' || i END, ARRAY[1, 2, 3, i]::vector FROM generate_series(1001, 1100) i;
UPDATE items SET title = 'updated ' || id WHERE id % 10 = 4;
DELETE FROM items WHERE id % 10 = 5;
SELECT same_rows('SELECT id, title, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
VACUUM items;
SELECT same_rows('SELECT id, title, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
SELECT fetches_of($$SELECT id, title FROM items ORDER BY v <-> '[1,2,3,1050]' LIMIT 3$$);
SELECT id, title FROM items ORDER BY v <-> '[1,2,3,1050]' LIMIT 3;
BEGIN;
UPDATE items SET id = -id WHERE id BETWEEN 1040 AND 1050;
SELECT id, title FROM items ORDER BY v <-> '[1,2,3,1050]' LIMIT 3;
SAVEPOINT s;
DELETE FROM items WHERE id < 0;
SELECT id, title FROM items ORDER BY v <-> '[1,2,3,1050]' LIMIT 3;
ROLLBACK TO s;
SELECT id, title FROM items ORDER BY v <-> '[1,2,3,1050]' LIMIT 3;
ROLLBACK;
SELECT id, title FROM items ORDER BY v <-> '[1,2,3,1050]' LIMIT 3;
REINDEX INDEX items_v;
VACUUM items;
SELECT same_rows('SELECT id, title, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
REINDEX INDEX CONCURRENTLY items_v;
SELECT same_rows('SELECT id, title, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items ORDER BY v <-> '[1,2,3,4]';
FETCH 2 FROM c;
DELETE FROM items WHERE id < 10;
FETCH 3 FROM c;
ROLLBACK;

-- methods and metrics: the distance's value where the index has it, else an order by it
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Scan using' THEN RETURN substring(line FROM '(Index.*) using'); END IF;
	END LOOP;
END $$;
CREATE FUNCTION try_index(definition text, operator text) RETURNS TABLE (plan_order text, plan_distance text, ordered text) LANGUAGE plpgsql AS $$
DECLARE by_order text := 'SELECT id, title FROM items ORDER BY v ' || operator || ' ''[1,2,3,400]'' LIMIT 50';
-- rows at one distance may come in any order
DECLARE distances text := 'SELECT (SELECT v ' || operator || ' ''[1,2,3,400]'' FROM items WHERE id = a.id AND title IS NOT DISTINCT FROM a.title)
	FROM (' || by_order || ') a';
DECLARE by_distance text := 'SELECT id, v ' || operator || ' ''[1,2,3,400]'' AS d FROM items ORDER BY d LIMIT 50';
BEGIN
	DROP INDEX items_v;
	EXECUTE 'CREATE INDEX items_v ON items ' || definition;
	plan_order := plan_of(by_order);
	plan_distance := plan_of(by_distance);
	ordered := CASE WHEN plan_order ~ 'Only' THEN same_rows(distances) END;
	RETURN NEXT;
END $$;
SET pgwarp.ivfadc_probes = 65536;
SET pgwarp.refine_factor = 100;
SELECT * FROM try_index('USING exact (v vector_ip_ops) INCLUDE (title, id)', '<#>');
SELECT * FROM try_index('USING exact (v vector_l1_ops) INCLUDE (id, title)', '<+>');
SELECT * FROM try_index('USING exact (v vector_cosine_ops) INCLUDE (id, title)', '<=>');
SELECT * FROM try_index('USING ivfadc (v) INCLUDE (id, title) WITH (lists = 10)', '<->');
SELECT * FROM try_index('USING ivfadc (v) INCLUDE (id, title) WITH (lists = 10, refine = full)', '<->');
SELECT * FROM try_index('USING ivfadc (v) INCLUDE (id, title) WITH (lists = 10, refine = none)', '<->');
SELECT * FROM try_index('USING ivfadc (v vector_cosine_ops) INCLUDE (id, title) WITH (lists = 10, codes = int8)', '<=>');
SET pgwarp.pqtree_candidates = 100000;
SELECT * FROM try_index('USING pqtree (v) INCLUDE (id, title)', '<->');
SELECT * FROM try_index('USING pqtree (v) INCLUDE (id, title) WITH (refine = full)', '<->');
SELECT * FROM try_index('USING pqtree (v) INCLUDE (id, title) WITH (refine = none)', '<->');
SELECT * FROM try_index('USING pqtree (v vector_cosine_ops) INCLUDE (id, title)', '<=>');
RESET pgwarp.pqtree_candidates;
-- bounds order by one thing only
SELECT id FROM items ORDER BY v <=> '[1,2,3,4]', id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <=> '[1,2,3,4]' FETCH FIRST 3 ROWS WITH TIES;
RESET pgwarp.ivfadc_probes;
RESET pgwarp.refine_factor;

-- a zero query under cosine: any order, every row
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM items ORDER BY v <=> '[0,0,0,0]') s;

-- columns: of one length, the vector itself, expressions, partial, types by reference and by value
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact (((v + w)::vector(4))) INCLUDE (id, kind, v, w) WHERE kind > 1;
SELECT plan_of('SELECT id, v, w, kind FROM items WHERE kind > 1 ORDER BY (v + w)::vector(4) <-> ''[1,2,3,4]'' LIMIT 5');
SELECT same_rows('SELECT id, v, w, kind FROM items WHERE kind > 1 ORDER BY (v + w)::vector(4) <-> ''[1,2,3,4]'' LIMIT 50');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact (v) INCLUDE (kind);
SELECT same_rows('SELECT kind, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
ALTER TABLE items ALTER kind TYPE numeric(10, 2);
VACUUM items;
SELECT same_rows('SELECT kind, v <-> ''[1,2,3,4]'' AS d FROM items ORDER BY d');
ALTER TABLE items DROP COLUMN kind;
SELECT count(*) FROM pg_class WHERE relname = 'items_v';
CREATE INDEX items_v ON items USING exact (v) INCLUDE ((id + 1));
CREATE INDEX items_v ON items USING exact (v) INCLUDE (v);

-- wide values: toasted ones are kept in the index as far as a page goes
CREATE TABLE wide (id integer, body text, v vector(3));
ALTER TABLE wide ALTER body SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i, repeat(chr(65 + i % 26), i * 80), ARRAY[i, 1, 1]::vector FROM generate_series(1, 100) i;
CREATE INDEX wide_v ON wide USING exact (v) INCLUDE (body, id);
INSERT INTO wide SELECT i, repeat(chr(65 + i % 26), (i - 100) * 300), ARRAY[i, 1, 1]::vector FROM generate_series(101, 120) i;
INSERT INTO wide VALUES (121, repeat('x', 8130), '[121,1,1]');
VACUUM ANALYZE wide;
SELECT same_rows('SELECT id, body FROM wide ORDER BY v <-> ''[1,2,3]''');
SELECT fetches_of($$SELECT id, length(body) FROM wide ORDER BY v <-> '[1,2,3]'$$);
DO $$ BEGIN
	INSERT INTO wide SELECT 1000, string_agg(md5(i::text), ''), '[1,2,3]' FROM generate_series(1, 1000) i;
EXCEPTION WHEN program_limit_exceeded THEN RAISE WARNING '%: %', SQLSTATE, SQLERRM;
END $$;
DO $$ BEGIN
	INSERT INTO wide VALUES (1000, repeat('x', 8140), '[1,2,3]');
EXCEPTION WHEN program_limit_exceeded THEN RAISE WARNING '%: %', SQLSTATE, SQLERRM;
END $$;
-- the index keeps no columns of a row without a place, so these may be of any length
INSERT INTO wide SELECT i, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000 * i) n), NULL FROM generate_series(1, 2) i;
VACUUM ANALYZE wide;
SELECT same_rows('SELECT id, body FROM wide ORDER BY v <-> ''[1,2,3]''');
SELECT fetches_of($$SELECT id, length(body) FROM wide ORDER BY v <-> '[1,2,3]'$$);
SELECT q.id, count(*), sum(length(n.body)) FROM (VALUES (1, '[1,2,3]'::vector), (2, '[4,5,6]'), (3, NULL)) q(id, v),
	LATERAL (SELECT body FROM wide ORDER BY v <-> q.v) n GROUP BY 1 ORDER BY 1;
DROP INDEX wide_v;
INSERT INTO wide SELECT 1000, string_agg(md5(i::text), ''), '[1,2,3]' FROM generate_series(1, 1000) i;
DO $$ BEGIN
	CREATE INDEX wide_v ON wide USING exact (v) INCLUDE (body);
EXCEPTION WHEN program_limit_exceeded THEN RAISE WARNING '%: %', SQLSTATE, SQLERRM;
END $$;
DROP TABLE wide;

-- unlogged, temporary, empty
CREATE UNLOGGED TABLE unlogged (id integer, v vector(3));
CREATE INDEX ON unlogged USING exact (v) INCLUDE (id);
SELECT id FROM unlogged ORDER BY v <-> '[1,2,3]';
INSERT INTO unlogged VALUES (1, '[1,1,1]'), (NULL, '[2,2,2]'), (3, '[3,3,3]');
VACUUM unlogged;
SELECT plan_of('SELECT id FROM unlogged ORDER BY v <-> ''[1,2,3]''');
SELECT id FROM unlogged ORDER BY v <-> '[1,2,3]';
CREATE TEMPORARY TABLE temporary (id integer, v vector(3));
INSERT INTO temporary VALUES (1, '[1,1,1]'), (NULL, '[2,2,2]'), (3, '[3,3,3]');
CREATE INDEX ON temporary USING exact (v) INCLUDE (id);
VACUUM temporary;
SELECT plan_of('SELECT id FROM temporary ORDER BY v <-> ''[1,2,3]''');
SELECT id FROM temporary ORDER BY v <-> '[1,2,3]';

-- row-level security
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact (v) INCLUDE (id);
VACUUM items;
CREATE ROLE regress_pgwarp_include;
GRANT SELECT ON items TO regress_pgwarp_include;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON items USING (id < 500);
SET ROLE regress_pgwarp_include;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3,700]' LIMIT 2;
SELECT id FROM items ORDER BY v <-> '[1,2,3,700]' LIMIT 2;
RESET ROLE;

-- partitions: each by its plain scan
CREATE TABLE parts (id integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (50) TO (100);
INSERT INTO parts SELECT i, ARRAY[i, i, 1]::vector FROM generate_series(1, 99) i;
CREATE INDEX ON parts USING exact (v) INCLUDE (id);
VACUUM ANALYZE parts;
SELECT id FROM parts ORDER BY v <-> '[50.1,50.1,1]' LIMIT 3;

-- functions see the index as any other
SELECT count(*) FROM knn_search('items_v', ARRAY['[1,2,3,4]'::vector], 10);
SELECT rows, delta_rows FROM pgwarp_index_info('items_v');

DROP TABLE items, unlogged, parts;
DROP ROLE regress_pgwarp_include;
DROP FUNCTION same_rows, rows_of, plan_of, try_index;
