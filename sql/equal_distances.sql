-- Rows at equal distances have one order, in the index and in its delta: a LIMIT gives the first rows of a larger one, and a batch those of single searches
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_memoize = off;
SET pgwarp.verify_results = on;
CREATE FUNCTION point(i integer) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(hashint4(i * 6 + j)::float8 / 2147483648)::vector(6) FROM generate_series(1, 6) j';
CREATE TABLE items (id integer, kind integer, v vector(6));
CREATE TABLE questions AS SELECT q, point(q) AS w FROM generate_series(0, 7) q;
-- Ten rows have the same vector. Those of the delta lie in places of deleted rows, between those of the index.
CREATE FUNCTION fill(method text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	TRUNCATE items;
	DROP INDEX IF EXISTS items_index;
	INSERT INTO items SELECT i, i % 7, point(i % 60) FROM generate_series(1, 600) i;
	EXECUTE 'CREATE INDEX items_index ON items USING ' || method;
	DELETE FROM items WHERE id % 3 = 0;
END $$;
CREATE FUNCTION nearest(q integer, rows integer, condition text) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE ids integer[];
BEGIN
	EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM items WHERE %s ORDER BY v <-> point(%s) LIMIT %s) s', condition, q, rows) INTO ids;
	RETURN ids;
END $$;
CREATE FUNCTION joined(rows integer, condition text, batch text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
	PERFORM set_config('pgwarp.knn_batch', batch, true);
	EXECUTE format('SELECT string_agg(q || '': '' || ids, '' '' ORDER BY q) FROM (SELECT q, array_agg(id)::text AS ids FROM questions CROSS JOIN LATERAL
		(SELECT id FROM items WHERE %s ORDER BY v <-> w LIMIT %s) s GROUP BY q) t', condition, rows) INTO answer;
	RETURN answer;
END $$;
CREATE VIEW orders AS SELECT condition,
	(SELECT count(*) FROM questions, unnest(ARRAY[1, 4, 13]) rows WHERE nearest(q, rows, condition) <> (nearest(q, 40, condition))[1:rows]) AS other_prefixes,
	(SELECT count(*) FROM unnest(ARRAY[4, 25]) rows WHERE joined(rows, condition, 'on') <> joined(rows, condition, 'off')) AS other_batches
	FROM unnest(ARRAY['true', 'kind < 3', 'mod(id, 5) > 0']) condition;
SELECT fill('exact (v)');
VACUUM (TRUNCATE off) items;
INSERT INTO items SELECT i, i % 7, point(i % 60) FROM generate_series(601, 800) i;
SELECT * FROM orders;
SELECT fill('ivfadc (v) WITH (lists = 20)');
VACUUM (TRUNCATE off) items;
INSERT INTO items SELECT i, i % 7, point(i % 60) FROM generate_series(601, 800) i;
SELECT * FROM orders;
SELECT fill('pqtree (v)');
VACUUM (TRUNCATE off) items;
INSERT INTO items SELECT i, i % 7, point(i % 60) FROM generate_series(601, 800) i;
SELECT * FROM orders;
SELECT fill('pqtree (v) WITH (refine = ''full'')');
VACUUM (TRUNCATE off) items;
INSERT INTO items SELECT i, i % 7, point(i % 60) FROM generate_series(601, 800) i;
SELECT * FROM orders;
SELECT fill('graph (v)');
VACUUM (TRUNCATE off) items;
INSERT INTO items SELECT i, i % 7, point(i % 60) FROM generate_series(601, 800) i;
SELECT * FROM orders;
DROP TABLE items, questions CASCADE;
DROP FUNCTION joined, nearest, fill, point(integer);
