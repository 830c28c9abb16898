-- rows that an approximate index finds too late for their place in the order: a scan that reads on to the rows without a
-- distance has offered all others before
SET jit = off;
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, kind integer, v vector(3));
INSERT INTO items SELECT i, i % 5, CASE WHEN i <= 4000 THEN ARRAY[i % 61, i % 53, i % 47]::vector END FROM generate_series(1, 4800) i;
CREATE INDEX items_v ON items USING ivfadc (v) INCLUDE (id) WITH (lists = 60);
VACUUM ANALYZE items;
CREATE TABLE asked AS SELECT id, v FROM items WHERE id IN (1, 1001, 2001, 3001);
SET enable_seqscan = off;
SET enable_sort = off;
-- of the nearest rows most are found late
SET pgwarp.ivfadc_probes = 1;

-- rows, those with a distance, and whether they come in order, NULLs last
CREATE FUNCTION read_rows(statement text, OUT total bigint, OUT placed bigint, OUT in_order boolean) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TEMP TABLE rows_read AS %s', statement);
	SELECT count(*), count(d), coalesce(bool_and(d IS NULL OR before <= d) FILTER (WHERE number > 1), true) INTO total, placed, in_order
		FROM (SELECT d, lag(d) OVER (ORDER BY ctid) AS before, row_number() OVER (ORDER BY ctid) AS number FROM rows_read) r;
	DROP TABLE rows_read;
END $$;
SELECT n AS "limit", read_rows(format($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' LIMIT %s$$, n)) FROM unnest(ARRAY[2500, 3900, 4000, 4500, 10000]) n;
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]'$$);
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' FETCH FIRST 4400 ROWS WITH TIES$$);
-- index-only scans
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[25,47,14]' LIMIT 4500;
SELECT count(*), count(*) FILTER (WHERE id <= 4000) AS placed FROM (SELECT id FROM items ORDER BY v <-> '[25,47,14]' LIMIT 4500) s;
-- filters
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM items WHERE kind < 5 ORDER BY v <-> '[25,47,14]' LIMIT 4500$$);
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM items WHERE kind = 3 ORDER BY v <-> '[25,47,14]' LIMIT 900$$);
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM items WHERE kind = 3 AND v IS NOT NULL ORDER BY v <-> '[25,47,14]' LIMIT 900$$);
-- pages of one size: every row once, NULLs on the last
CREATE FUNCTION pages(size integer) RETURNS TABLE (page integer, total bigint, placed bigint) LANGUAGE plpgsql AS $$
BEGIN
	CREATE TEMP TABLE paged (page integer, id integer);
	FOR p IN 0 .. 4800 / size LOOP
		EXECUTE format($q$INSERT INTO paged SELECT %s, id FROM items ORDER BY v <-> '[25,47,14]' LIMIT %s OFFSET %s$q$, p, size, p * size);
	END LOOP;
	RETURN QUERY SELECT p.page, count(*), count(*) FILTER (WHERE id <= 4000) FROM paged p GROUP BY p.page ORDER BY p.page;
	RETURN QUERY SELECT NULL::integer, count(DISTINCT id), count(DISTINCT id) FILTER (WHERE id <= 4000) FROM paged;
	DROP TABLE paged;
END $$;
SELECT * FROM pages(2400);
SELECT total = placed AS none_twice FROM (SELECT count(*) AS total, count(DISTINCT id) AS placed FROM generate_series(0, 9) p
	CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> '[25,47,14]' LIMIT 400 OFFSET p * 400) s) s;
-- joins, in batches and each row by itself, and with the numbers of an index that the engine could search through
SELECT q.id, count(*), count(n.v) AS placed FROM asked q CROSS JOIN LATERAL (SELECT i.v FROM items i ORDER BY i.v <-> q.v LIMIT 4500) n GROUP BY q.id ORDER BY q.id;
SELECT q.id, (SELECT count(s.v) FROM (SELECT i.v FROM items i ORDER BY i.v <-> q.v LIMIT 4500) s) AS placed FROM asked q ORDER BY q.id;
CREATE TABLE few AS SELECT id, v FROM items WHERE id <= 800 OR v IS NULL;
CREATE INDEX few_v ON few USING ivfadc (v) WITH (lists = 60);
SELECT q.id, count(*), count(n.v) AS placed FROM asked q CROSS JOIN LATERAL (SELECT f.v FROM few f ORDER BY f.v <-> q.v LIMIT 900) n GROUP BY q.id ORDER BY q.id;
SET pgwarp.knn_batch = off;
SELECT q.id, count(*), count(n.v) AS placed FROM asked q CROSS JOIN LATERAL (SELECT i.v FROM items i ORDER BY i.v <-> q.v LIMIT 4500) n GROUP BY q.id ORDER BY q.id;
SELECT q.id, count(*), count(n.v) AS placed FROM asked q CROSS JOIN LATERAL (SELECT f.v FROM few f ORDER BY f.v <-> q.v LIMIT 900) n GROUP BY q.id ORDER BY q.id;
RESET pgwarp.knn_batch;
-- rows of the logs count
INSERT INTO few SELECT id, v FROM items WHERE id BETWEEN 801 AND 1300;
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM few ORDER BY v <-> '[25,47,14]' LIMIT 1400$$);

-- partitions
CREATE TABLE parts (id integer, kind integer, v vector(3)) PARTITION BY RANGE (kind);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (2);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (2) TO (5);
INSERT INTO parts SELECT * FROM items;
CREATE INDEX ON parts USING ivfadc (v) WITH (lists = 60);
VACUUM ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT v FROM parts ORDER BY v <-> '[25,47,14]' LIMIT 4500;
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM parts ORDER BY v <-> '[25,47,14]' LIMIT 4500$$);
SELECT read_rows($$SELECT v <-> '[25,47,14]' AS d FROM parts WHERE id > 0 ORDER BY v <-> '[25,47,14]' LIMIT 4500$$);

-- A cursor that is read to its end at once has all of them. One that is read in part leaves rows out that are found
-- late, and NULLs come when it has offered all others.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items ORDER BY v <-> '[25,47,14]';
MOVE ALL IN c;
\echo :ROW_COUNT rows
CLOSE c;
CREATE FUNCTION fetched(OUT nulls bigint, OUT most boolean, OUT in_order boolean) LANGUAGE plpgsql AS $$
DECLARE
	item record;
	last float8 := '-inf';
	placed bigint := 0;
BEGIN
	nulls := 0;
	in_order := true;
	FOR item IN SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' LOOP
		in_order := in_order AND (item.d IS NULL OR (nulls = 0 AND item.d >= last));
		last := coalesce(item.d, last);
		nulls := nulls + (item.d IS NULL)::int;
		placed := placed + (item.d IS NOT NULL)::int;
	END LOOP;
	most := placed BETWEEN 3000 AND 4000;
END $$;
SELECT * FROM fetched();
COMMIT;

-- another method, and distances from codes alone
RESET pgwarp.ivfadc_probes;
SET pgwarp.graph_ef_search = 10;
DROP INDEX items_v;
CREATE INDEX items_v ON items USING graph (v) WITH (degree = 4);
SELECT n AS "limit", read_rows(format($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' LIMIT %s$$, n)) FROM unnest(ARRAY[2500, 4500]) n;
DROP INDEX items_v;
SET pgwarp.ivfadc_probes = 1;
CREATE INDEX items_v ON items USING ivfadc (v) WITH (lists = 60, refine = none);
SELECT n AS "limit", read_rows(format($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' LIMIT %s$$, n)) FROM unnest(ARRAY[2500, 4500]) n;
DROP INDEX items_v;
RESET pgwarp.ivfadc_probes;
SET pgwarp.pqtree_candidates = 10;
CREATE INDEX items_v ON items USING pqtree (v);
SELECT n AS "limit", read_rows(format($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' LIMIT %s$$, n)) FROM unnest(ARRAY[2500, 4500]) n;
DROP INDEX items_v;
CREATE INDEX items_v ON items USING pqtree (v) WITH (refine = none);
SELECT n AS "limit", read_rows(format($$SELECT v <-> '[25,47,14]' AS d FROM items ORDER BY v <-> '[25,47,14]' LIMIT %s$$, n)) FROM unnest(ARRAY[2500, 4500]) n;
RESET pgwarp.pqtree_candidates;
DROP FUNCTION read_rows(text), pages(integer), fetched();
DROP TABLE items, asked, few, parts;
