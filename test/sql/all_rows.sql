-- a query that reads all rows gets all of them, in order, from an approximate index too
SET jit = off;
SET enable_seqscan = off;
SET enable_sort = off;
CREATE TABLE items (id integer, kind integer, v vector(3));
INSERT INTO items SELECT i, i % 5, ARRAY[i % 61, i % 53, i % 47]::vector FROM generate_series(1, 4000) i;
CREATE INDEX items_v ON items USING ivfadc (v) WITH (lists = 60);
VACUUM ANALYZE items;
-- of the nearest rows most are found late
SET pgwarp.ivfadc_probes = 1;

-- rows, and those that come out of order
CREATE FUNCTION read_rows(statement text, OUT total bigint, OUT in_order boolean) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TEMP TABLE rows_read AS %s', statement);
	SELECT count(*), bool_and(before IS NULL OR before <= d) INTO total, in_order
		FROM (SELECT d, lag(d) OVER (ORDER BY ctid) AS before FROM rows_read) r;
	DROP TABLE rows_read;
END $$;
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM items ORDER BY v <-> '[1,2,3]'$$);
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM items WHERE kind = 3 ORDER BY v <-> '[1,2,3]'$$);
SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> '[1,2,3]') s;
SELECT cardinality(ARRAY(SELECT id FROM items WHERE kind > 0 ORDER BY v <-> '[1,2,3]'));
SET client_min_messages = debug1;
SELECT count(*) FROM (SELECT id FROM items WHERE kind = 2 ORDER BY v <-> '[1,2,3]' OFFSET 0) s;
RESET client_min_messages;

-- where a join drops rows before they reach the LIMIT, as many are searched for as it is expected to need
CREATE TABLE kinds AS SELECT i AS kind FROM generate_series(2, 3) i;
CREATE INDEX kinds_kind ON kinds (kind);
VACUUM ANALYZE kinds;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT v <-> '[1,2,3]' AS d FROM items WHERE EXISTS (SELECT FROM kinds WHERE kinds.kind = items.kind) ORDER BY v <-> '[1,2,3]' LIMIT 2000;
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM items WHERE EXISTS (SELECT FROM kinds WHERE kinds.kind = items.kind) ORDER BY v <-> '[1,2,3]' LIMIT 2000$$);
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM items JOIN kinds USING (kind) ORDER BY v <-> '[1,2,3]' LIMIT 2000$$);
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM items LEFT JOIN kinds USING (kind) WHERE kinds.kind IS NULL ORDER BY v <-> '[1,2,3]' LIMIT 5000$$);

-- each search of a nested loop
SELECT q.id, count(*) FROM generate_series(1, 3) q(id) CROSS JOIN LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> ARRAY[q.id, 2, 3]::vector OFFSET 0) n GROUP BY q.id ORDER BY q.id;

-- partitions of which one has no index
CREATE TABLE parts (id integer, kind integer, v vector(3)) PARTITION BY LIST (kind);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (0, 1);
CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN (2, 3, 4);
INSERT INTO parts SELECT id, kind, v FROM items;
CREATE INDEX ON parts_b USING ivfadc (v) WITH (lists = 60);
VACUUM ANALYZE parts;
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM parts ORDER BY v <-> '[1,2,3]'$$);
SELECT * FROM read_rows($$SELECT v <-> '[1,2,3]' AS d FROM parts WHERE kind IN (SELECT kind FROM kinds) ORDER BY v <-> '[1,2,3]' LIMIT 5000$$);

-- a cursor is read in part: rows that are found late are left out, but all that come are in order
CREATE TEMP TABLE fetched (id integer, d float8);
DO $$
DECLARE
	item record;
BEGIN
	FOR item IN SELECT id, v <-> '[1,2,3]' AS d FROM items ORDER BY v <-> '[1,2,3]' LOOP
		INSERT INTO fetched VALUES (item.id, item.d);
	END LOOP;
END $$;
SELECT count(*) = count(DISTINCT id) AS none_twice, count(*) BETWEEN 3000 AND 4000 AS most, bool_and(before IS NULL OR before <= d) AS in_order
	FROM (SELECT id, d, lag(d) OVER (ORDER BY ctid) AS before FROM fetched) f;

-- an index of few rows is searched through
CREATE TABLE few AS SELECT id, v FROM items WHERE id <= 1000;
CREATE INDEX few_v ON few USING ivfadc (v) WITH (lists = 60);
RESET pgwarp.ivfadc_probes;
SET pgwarp.recall = 0.5;
SELECT count(*) FROM (SELECT id FROM few ORDER BY v <-> '[1,2,3]' LIMIT 2000) s;
DROP FUNCTION read_rows(text);
DROP TABLE items, kinds, parts, few;
