SET client_min_messages = warning;
SET pgwarp.verify_results = on;

-- rows whose order takes their distances keep their address: ctid, and rows locked and written

CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(8));
-- near enough to one another that half vectors do not tell which is nearer, with some of the same distance
INSERT INTO items
	SELECT i, i % 10, ARRAY[100 + sin(i) / 50, cos(1.7 * i) / 50, sin(2.3 * i + 1) / 50, cos(0.31 * i) / 50, sin(0.77 * i) / 50, cos(5.1 * i) / 50, 0, (i % 20 = 0)::int]::vector(8)
	FROM generate_series(1, 2000) i;
INSERT INTO items SELECT id + 2000, kind, v FROM items WHERE id % 40 = 0;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (lists = 10, refine = half);
VACUUM ANALYZE items;
SET enable_seqscan = off;
SET enable_sort = off;
SET pgwarp.ivfadc_probes = 10;
SET pgwarp.refine_factor = 100;

-- how many rows a query returns, with how many addresses, how many of them the row's, and whether in order
CREATE FUNCTION addresses(condition text, k integer) RETURNS TABLE (rows bigint, addresses bigint, right_ones bigint, ordered boolean) AS $$
BEGIN
	RETURN QUERY EXECUTE format($q$
		WITH found AS MATERIALIZED (SELECT row_number() OVER () AS n, f.* FROM (
			SELECT id, ctid AS address, v <-> '[100,0,0,0,0,0,0,0]' AS d FROM items WHERE %s ORDER BY v <-> '[100,0,0,0,0,0,0,0]' LIMIT %s) f)
		SELECT count(*), count(DISTINCT found.address), count(*) FILTER (WHERE items.ctid = found.address), array_agg(found.d ORDER BY n) = array_agg(found.d ORDER BY found.d)
		FROM found JOIN items USING (id)$q$, condition, k);
END
$$ LANGUAGE plpgsql;
SELECT * FROM addresses('true', 60);
SELECT * FROM addresses('kind = 3', 60);
SELECT * FROM addresses('true', 2050);

-- the nearest rows, by a full comparison
CREATE TABLE nearest AS SELECT id FROM items ORDER BY (v <-> '[100,0,0,0,0,0,0,0]') + 0, id LIMIT 40;
SELECT count(*) AS found FROM nearest JOIN (SELECT id FROM items ORDER BY v <-> '[100,0,0,0,0,0,0,0]' LIMIT 40) n USING (id);

-- they can be locked, and that does not extend the table
CREATE TEMP TABLE bytes AS SELECT pg_relation_size('items') AS before;
BEGIN;
EXPLAIN (COSTS off) SELECT id FROM items ORDER BY v <-> '[100,0,0,0,0,0,0,0]' LIMIT 40 FOR UPDATE;
CREATE TEMP TABLE locked ON COMMIT DROP AS WITH l AS (SELECT id FROM items ORDER BY v <-> '[100,0,0,0,0,0,0,0]' LIMIT 40 FOR UPDATE) SELECT * FROM l;
SELECT count(*) AS rows, count(DISTINCT id) AS different, count(nearest.id) AS nearest FROM locked LEFT JOIN nearest USING (id);
-- a locked row has a transaction that holds it
SELECT count(*) FROM items JOIN locked USING (id) WHERE items.xmax::text::bigint <> 0;
COMMIT;
SELECT pg_relation_size('items') = before AS same_size FROM bytes;

-- and written by their address
BEGIN;
UPDATE items SET kind = -1 WHERE ctid = ANY (ARRAY(SELECT ctid FROM items ORDER BY v <-> '[100,0,0,0,0,0,0,0]' LIMIT 40));
SELECT count(*) AS rows, count(nearest.id) AS nearest FROM items LEFT JOIN nearest USING (id) WHERE kind = -1;
ROLLBACK;
DELETE FROM items WHERE ctid = ANY (ARRAY(SELECT ctid FROM items WHERE kind = 3 ORDER BY v <-> '[100,0,0,0,0,0,0,0]' LIMIT 40));
SELECT count(*) FROM items WHERE kind = 3;

-- a cursor's current row
BEGIN;
DECLARE rows CURSOR FOR SELECT id FROM items ORDER BY v <-> '[100,0,0,0,0,0,0,0]' FOR UPDATE;
MOVE 25 IN rows;
UPDATE items SET kind = -2 WHERE CURRENT OF rows;
SELECT count(*) FROM items WHERE kind = -2;
COMMIT;

DROP FUNCTION addresses(text, integer);
DROP TABLE items, nearest, bytes;
