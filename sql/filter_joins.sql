-- Joins and sub-selects whose searches have keys of each outer row: read ahead in batches (KnnBatch), with the same rows as one by one
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_memoize = off;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, v vector(4), tenant integer, price numeric, name text);
SELECT setseed(0.5);
INSERT INTO items SELECT i, CASE WHEN i % 60 > 0 THEN ARRAY[random(), random(), random(), i % 5]::vector END, i % 12, i % 90, 'name ' || i % 7 FROM generate_series(1, 3000) i;
CREATE TABLE queries (id integer, q vector(4), tenant integer, tenants integer[], name text);
INSERT INTO queries SELECT i, CASE WHEN i % 25 > 0 THEN ARRAY[random(), random(), random(), i % 5]::vector END, CASE WHEN i % 20 > 0 THEN i % 14 END,
	CASE WHEN i % 15 > 0 THEN ARRAY[i % 12, i % 5, NULL] END, 'name ' || i % 9 FROM generate_series(1, 300) i;
ANALYZE items, queries;

-- What a KnnBatch did, and whether the rows are those without it
CREATE FUNCTION batched(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	with_batches text;
	without text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || statement LOOP
		IF line ~ 'KnnBatch|Index Cond|Cache Hits|Filter: \(|While' THEN
			RETURN NEXT regexp_replace(regexp_replace(regexp_replace(ltrim(line, ' '), '\(actual.*', ''), '\(InitPlan \d+\)\.col1|\$\d+', '$n', 'g'), '\w+\.(\w)', 'outer.\1', 'g');
		END IF;
	END LOOP;
	EXECUTE 'SELECT string_agg(s::text, '' '' ORDER BY s::text) FROM (' || statement || ') s' INTO with_batches;
	PERFORM set_config('pgwarp.knn_batch', 'off', true);
	EXECUTE 'SELECT string_agg(s::text, '' '' ORDER BY s::text) FROM (' || statement || ') s' INTO without;
	PERFORM set_config('pgwarp.knn_batch', 'on', true);
	RETURN NEXT format('%s rows, the same: %s', (SELECT count(*) FROM regexp_matches(with_batches, '\)', 'g')), with_batches = without);
END $$;

CREATE INDEX items_v ON items USING exact (tenant, v, price, name);
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant ORDER BY v <-> q.q LIMIT 3) i');
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND price < 40 AND name = q.name ORDER BY v <-> q.q LIMIT 30) i');
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = ANY (q.tenants) AND price IS NOT NULL ORDER BY v <-> q.q LIMIT 3) i');
SELECT batched('SELECT q.id, i.id FROM queries q LEFT JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND v IS NOT NULL ORDER BY v <-> q.q LIMIT 2) i ON true');
-- conditions that the index does not know, beside keys
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND id % 3 = 1 ORDER BY v <-> q.q LIMIT 3) i');
-- one query, keys of each row
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant ORDER BY v <-> ''[.5,.5,.5,3]'' LIMIT 2) i');
-- many rows of each search
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant ORDER BY v <-> q.q) i WHERE q.id < 20');
-- sub-selects
SELECT batched('SELECT id, (SELECT i.id FROM items i WHERE i.tenant = q.tenant AND price > 10 ORDER BY v <-> q.q LIMIT 1) FROM queries q');
SELECT batched('SELECT id, ARRAY(SELECT i.id FROM items i WHERE i.tenant = q.tenant AND i.name IN (q.name, ''name 1'') ORDER BY v <-> q.q LIMIT 4) FROM queries q');
-- values that are the same for all rows, whatever it takes to evaluate them: those of the scan, once one has begun
SET filter_joins.tenant = '4';
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = current_setting(''filter_joins.tenant'')::integer AND name = q.name ORDER BY v <-> q.q LIMIT 3) i');
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = ANY (ARRAY(SELECT tenant FROM queries WHERE id < 3)) ORDER BY v <-> q.q LIMIT 3) i');
SELECT batched('SELECT id, (SELECT i.id FROM items i WHERE i.tenant = current_setting(''filter_joins.tenant'')::integer ORDER BY v <-> q.q LIMIT 1) FROM queries q');
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = nullif(current_setting(''filter_joins.none'', true), '''')::integer ORDER BY v <-> q.q LIMIT 3) i');
-- late, never, and with other values for each of the rows further out
SELECT batched('SELECT id, CASE WHEN id > 250 THEN (SELECT i.id FROM items i WHERE i.tenant = current_setting(''filter_joins.tenant'')::integer ORDER BY v <-> q.q LIMIT 1) END FROM queries q');
SELECT batched('SELECT id, CASE WHEN id > 1000 THEN (SELECT i.id FROM items i WHERE i.tenant = 12 / (SELECT count(*) FROM queries WHERE id < 0) ORDER BY v <-> q.q LIMIT 1) END FROM queries q');
SELECT batched('SELECT t, (SELECT sum(i.id) FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = t + 1 ORDER BY v <-> q.q LIMIT 3) i WHERE q.id < 100) FROM generate_series(1, 4) t');
-- values of each row that may raise errors are not evaluated ahead
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = 12 / (q.id + 1) ORDER BY v <-> q.q LIMIT 3) i WHERE q.id < 9');
DROP INDEX items_v;

-- approximate methods, with delta rows and deleted rows
CREATE INDEX items_v ON items USING graph (v, tenant, price);
INSERT INTO items SELECT i, ARRAY[random(), random(), random(), i % 5]::vector, i % 12, i % 90, 'late' FROM generate_series(3001, 3100) i;
DELETE FROM items WHERE id % 9 = 0;
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND price < 60 ORDER BY v <-> q.q LIMIT 3) i');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING ivfadc (v, tenant, price) WITH (lists = 10);
SELECT batched('SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND price < 60 ORDER BY v <-> q.q LIMIT 3) i');
DROP INDEX items_v;

-- pairs within a distance, of one tenant
CREATE INDEX items_name ON items USING matchcount (name, tenant);
SELECT batched('SELECT q.id, i.id FROM queries q JOIN items i ON i.name <~~> q.name <= 1 AND i.tenant = q.tenant WHERE q.id < 60');
-- documents by the words of each row, of its tenant: the longest of requests
CREATE INDEX items_words ON items USING matchcount (to_tsvector('simple', name) tsvector_bm25_ops, tenant);
CREATE TABLE asked AS SELECT id, tenant, ('[1.2,0.75,2] ' || id % 7 || ':1.5 name:1')::bm25_query AS words FROM queries WHERE tenant IS NOT NULL;
ANALYZE asked;
SELECT batched('SELECT q.id, i.d FROM asked q CROSS JOIN LATERAL (SELECT to_tsvector(''simple'', name) <&> q.words AS d FROM items WHERE tenant = q.tenant ORDER BY to_tsvector(''simple'', name) <&> q.words LIMIT 2) i');
DROP TABLE items, queries, asked;
DROP FUNCTION batched;
