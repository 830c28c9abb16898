-- conditions of a relation that is scanned in order of distance
SET client_min_messages = warning;
SET jit = off;
CREATE TABLE items (id integer, kind integer, v vector(3));
INSERT INTO items SELECT i, i % 5, ARRAY[i % 17, i % 101, i]::vector FROM generate_series(1, 5000) i;
CREATE INDEX items_v ON items USING exact (v);
VACUUM ANALYZE items;

EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 0 ORDER BY v <-> '[1,2,3]' LIMIT 2;
-- at the bound
SELECT id FROM items WHERE v <-> '[2,2,2]' <= 0 ORDER BY v <-> '[2,2,2]' LIMIT 2;
SELECT id FROM items WHERE v <-> '[2,2,2]' < 0 ORDER BY v <-> '[2,2,2]' LIMIT 2;
-- the other way round, with filters that stay
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE 5 >= v <-> '[1,2,3]' AND kind = 1 ORDER BY v <-> '[1,2,3]' LIMIT 100;
SELECT id FROM items WHERE 20 >= v <-> '[1,2,3]' AND kind = 1 ORDER BY v <-> '[1,2,3]' LIMIT 100;
-- few rows are looked at
CREATE FUNCTION rows_scanned(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Scan|Rows Removed' THEN RETURN NEXT trim(regexp_replace(line, '\.00', '')); END IF;
	END LOOP;
END $$;
SELECT rows_scanned($$SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 100$$);
-- and behind another condition, which few rows pass
SELECT rows_scanned($$SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 AND kind = 3 ORDER BY v <-> '[1,2,3]' LIMIT 100$$);
SELECT rows_scanned($$SELECT id FROM items WHERE v <-> '[1,2,3]' < 500 AND v <-> '[1,2,3]' <= 9 AND v <-> '[1,2,3]' < 5.5 AND id > 1000 ORDER BY v <-> '[1,2,3]' LIMIT 100$$);
-- without an order every plan says the same
SELECT count(*) FROM items WHERE v <-> '[1,2,3]' < 90;
SET enable_seqscan = off;
SELECT count(*) FROM items WHERE v <-> '[1,2,3]' < 90;
SELECT count(*) FROM (SELECT id FROM items WHERE v <-> '[1,2,3]' < 90 ORDER BY v <-> '[1,2,3]' LIMIT 5000) s;
SELECT count(*) FROM (SELECT id FROM items WHERE v <-> '[1,2,3]' < 90 ORDER BY v <-> '[7,7,70]' LIMIT 5000) s;
RESET enable_seqscan;
-- another distance, another direction, a bound that changes: a filter
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,4]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' > 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < id ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < random() ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE within(vector, float8) AS SELECT array_agg(id) FROM (SELECT id FROM items WHERE v <-> $1 < $2 ORDER BY v <-> $1 LIMIT 100) s;
EXPLAIN (COSTS OFF) EXECUTE within('[1,2,3]', 5);
EXECUTE within('[1,2,3]', 5);
EXECUTE within('[1,2,3]', NULL);
EXECUTE within(NULL, 5);
RESET plan_cache_mode;
-- in a join, in batches
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM (SELECT * FROM items WHERE id < 4) q CROSS JOIN LATERAL (SELECT i.id FROM items i WHERE i.v <-> q.v < 9 ORDER BY i.v <-> q.v LIMIT 100) n;
SELECT q.id, array_agg(n.id ORDER BY n.id) FROM (SELECT * FROM items WHERE id < 4) q
	CROSS JOIN LATERAL (SELECT i.id FROM items i WHERE i.v <-> q.v < 9 ORDER BY i.v <-> q.v LIMIT 100) n GROUP BY q.id ORDER BY q.id;
-- a bound of another width
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v <-> '[1,2,3]' < 5::real ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- where rows may come late, farther ones are only left out
SET pgwarp.iterative = relaxed;
SELECT array_agg(id) FROM (SELECT id FROM items WHERE v <-> '[1,2,3]' < 5::real ORDER BY v <-> '[1,2,3]' LIMIT 10) s;
RESET pgwarp.iterative;
-- a changed row is compared again
BEGIN;
SELECT id FROM items WHERE v <-> '[1,2,3]' < 5 ORDER BY v <-> '[1,2,3]' LIMIT 10 FOR UPDATE;
ROLLBACK;
-- conditions with sub-plans
SELECT id FROM items i WHERE EXISTS (SELECT FROM items o WHERE o.id = i.id * 2 AND o.kind = 1) ORDER BY v <-> '[1,2,3]' LIMIT 5;
SELECT id FROM items WHERE kind = (SELECT max(kind) FROM items) AND v <-> '[1,2,3]' < (SELECT 12 + count(*) FROM items WHERE id < 3) ORDER BY v <-> '[1,2,3]' LIMIT 5;
SELECT id FROM items WHERE id IN (SELECT id * 3 FROM items WHERE kind = 2) ORDER BY v <-> '[1,2,3]' LIMIT 5;
-- what a partial index implies is no filter of its scan
CREATE INDEX items_odd ON items USING exact (v) WHERE kind = 4;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind = 4 ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind = 4 AND id > 50 ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE kind = 4 AND id > 50 ORDER BY v <-> '[1,2,3]' LIMIT 3;
DROP TABLE items;

-- partitions
CREATE TABLE parts (id integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (2500);
CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (2500) TO (10000);
INSERT INTO parts SELECT i, ARRAY[i % 17, i % 101, i % 1000]::vector FROM generate_series(1, 5000) i;
CREATE INDEX ON parts USING exact (v);
VACUUM ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE v <-> '[1,2,3]' < 6 ORDER BY v <-> '[1,2,3]' LIMIT 100;
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM parts WHERE v <-> '[1,2,3]' < 6 ORDER BY v <-> '[1,2,3]' LIMIT 100) s;
SET enable_indexscan = off;
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM parts WHERE v <-> '[1,2,3]' < 6 ORDER BY v <-> '[1,2,3]' LIMIT 100) s;
RESET enable_indexscan;
DROP TABLE parts;

-- row security: no condition sees a row before the policy has
SET client_min_messages = notice;
CREATE TABLE docs (id integer, secret text, v vector(2));
INSERT INTO docs SELECT i, 'secret ' || i, ARRAY[i, 0]::vector FROM generate_series(1, 3000) i;
CREATE INDEX docs_v ON docs USING exact (v);
VACUUM ANALYZE docs;
SET enable_seqscan = off;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON docs USING (v <-> '[0,0]' < 2.5);
CREATE ROLE regress_pgwarp_reader;
GRANT SELECT ON docs TO regress_pgwarp_reader;
CREATE FUNCTION leak(text) RETURNS boolean COST 0.0001 LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'leaked: %', $1; RETURN false; END $$;
SET ROLE regress_pgwarp_reader;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE leak(secret) ORDER BY v <-> '[0,0]' LIMIT 10;
SELECT id FROM docs WHERE leak(secret) ORDER BY v <-> '[0,0]' LIMIT 10;
-- a bound of the reader's own tells nothing of hidden rows, not even how many they are
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE v <-> '[9,0]' < 8.5 ORDER BY v <-> '[9,0]' LIMIT 10;
SELECT id FROM docs WHERE v <-> '[9,0]' < 8.5 ORDER BY v <-> '[9,0]' LIMIT 10;
RESET ROLE;
ALTER POLICY p ON docs USING (id % 1000 = 3);
SET ROLE regress_pgwarp_reader;
SELECT rows_scanned($$SELECT id FROM docs WHERE leak(secret) AND v <-> '[0,0]' < 5 ORDER BY v <-> '[0,0]' LIMIT 10$$);
SELECT rows_scanned($$SELECT id FROM docs WHERE v <-> '[0,0]' < 5 AND id > 2 ORDER BY v <-> '[0,0]' LIMIT 10$$);
RESET ROLE;
RESET enable_seqscan;
DROP TABLE docs;
DROP FUNCTION leak(text), rows_scanned(text);
DROP ROLE regress_pgwarp_reader;

-- filters of indexes that may miss rows: min(LIMIT, passing) rows, in order, none twice
SET client_min_messages = warning;
CREATE TABLE points (id integer, centre integer, kind integer, v vector(8));
SELECT setseed(0.5);
INSERT INTO points SELECT i, c.n, i % 200, (SELECT array_agg(hashint4(c.n * 8 + d)::float8 / 2147483648 + (hashint4(i * 16 + d)::float8 / 2147483648) / 8 ORDER BY d)
	FROM generate_series(1, 8) d)::vector(8) FROM generate_series(1, 8000) i, LATERAL (SELECT abs(hashint4(i)) % 40 AS n) c;
ANALYZE points;
CREATE FUNCTION keeps(number integer, one_in integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN number % one_in = 0; END $$;
CREATE TABLE asked AS SELECT row_number() OVER (ORDER BY id) AS number, v FROM points WHERE id % 1000 = 7 AND id > 2000;
CREATE TABLE truth (filter text, number bigint, ids integer[], distances float8[]);
CREATE FUNCTION answer(filter text, query vector, wanted integer, OUT ids integer[], OUT distances float8[]) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT array_agg(id), array_agg(d) FROM (SELECT id, v <-> %L AS d FROM points WHERE %s ORDER BY v <-> %L LIMIT %s) s', query, filter, query, wanted) INTO ids, distances;
END $$;
CREATE TABLE filters (filter text);
INSERT INTO filters VALUES ('kind < 100'), ('kind < 10'), ('kind = 5'), ('centre < 20'), ('centre < 2'), ('keeps(id, 2)'), ('keeps(id, 20)'), ('keeps(id, 200)'),
	('keeps(centre, 20)'), ('keeps(id, 3000)'), ('id < 0'), ('id > 0'), ('kind = 5 AND keeps(id, 3)');
INSERT INTO truth SELECT f.filter, a.number, t.* FROM filters f, asked a, answer(f.filter, a.v, 10) t;
CREATE FUNCTION sorted(distances float8[]) RETURNS boolean LANGUAGE sql AS $$ SELECT distances IS NOT DISTINCT FROM (SELECT array_agg(d ORDER BY d) FROM unnest(distances) d) $$;
CREATE VIEW verdict AS SELECT f.filter, bool_and(coalesce(cardinality(t.ids), 0) = coalesce(cardinality(a.ids), 0)) AS all_rows, bool_and(sorted(a.distances)) AS in_order,
	bool_and(coalesce((SELECT count(DISTINCT i) FROM unnest(a.ids) i), 0) = coalesce(cardinality(a.ids), 0)) AS none_twice,
	coalesce(avg((SELECT count(*) FROM unnest(a.ids) i WHERE i = ANY (t.ids))::float8 / cardinality(t.ids)), 1) >= 0.94 AS recall
	FROM filters f JOIN truth t USING (filter) JOIN asked q USING (number), answer(f.filter, q.v, 10) a GROUP BY f.filter ORDER BY f.filter COLLATE "C";
SET enable_seqscan = off;
CREATE INDEX points_v ON points USING graph (v);
VACUUM ANALYZE points;
EXPLAIN (COSTS OFF) SELECT id FROM points WHERE kind < 10 ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 10;
SELECT * FROM verdict;
DROP INDEX points_v;
CREATE INDEX points_v ON points USING pqtree (v);
SELECT * FROM verdict;
DROP INDEX points_v;
CREATE INDEX points_v ON points USING ivfadc (v) WITH (lists = 80);
SELECT * FROM verdict;
-- where rows may come late
SET pgwarp.iterative = relaxed;
SELECT filter, all_rows, none_twice FROM verdict;
RESET pgwarp.iterative;
-- included columns, and a distance that is a bound
DROP INDEX points_v;
CREATE INDEX points_v ON points USING graph (v) INCLUDE (id, kind, centre) WITH (vectors = half);
VACUUM points;
EXPLAIN (COSTS OFF) SELECT id FROM points WHERE kind < 10 ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 10;
CREATE FUNCTION in_index_order(filter text, query vector) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	distances float8[];
BEGIN
	EXECUTE format('SELECT array_agg(p.v <-> %L ORDER BY s.place) FROM (SELECT id, row_number() OVER () AS place FROM (SELECT id FROM points WHERE %s ORDER BY v <-> %L LIMIT 10) t) s
		JOIN points p USING (id)', query, filter, query) INTO distances;
	RETURN sorted(distances) AND cardinality(distances) = 10;
END $$;
SELECT filter, bool_and(in_index_order(filter, v)) FROM filters, asked WHERE filter NOT IN ('id < 0', 'keeps(id, 3000)') GROUP BY filter ORDER BY filter COLLATE "C";

-- cursors: with a LIMIT; without one in order, none twice
DROP INDEX points_v;
CREATE INDEX points_v ON points USING graph (v);
BEGIN;
DECLARE limited CURSOR FOR SELECT v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' AS d FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 12;
CREATE FUNCTION fetched(name refcursor, rows integer) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
	d float8;
	distances float8[];
BEGIN
	FOR i IN 1 .. rows LOOP
		FETCH name INTO d;
		EXIT WHEN NOT FOUND;
		distances := distances || d;
	END LOOP;
	RETURN distances;
END $$;
CREATE TABLE first_distances AS SELECT fetched('limited', 4) AS d;
SELECT cardinality(d), sorted(d) FROM (SELECT first_distances.d || fetched('limited', 100) AS d FROM first_distances) s;
DECLARE unlimited CURSOR FOR SELECT v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' AS d FROM points WHERE keeps(id, 5) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]';
SELECT cardinality(d) > 1480, sorted(d) FROM (SELECT fetched('unlimited', 5000) AS d) s;
-- the row that a cursor is at
DECLARE plain CURSOR FOR SELECT id FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 3;
FETCH 1 FROM plain \gset first_
UPDATE points SET kind = -1 WHERE CURRENT OF plain;
SELECT count(*), max(id) = :first_id FROM points WHERE kind = -1;
FETCH 1 FROM plain \gset second_
UPDATE points SET kind = -2 WHERE CURRENT OF plain;
SELECT count(*), max(id) = :second_id FROM points WHERE kind = -2;
ROLLBACK;

-- a volatile condition sees a row once at most
CREATE TABLE seen (id integer PRIMARY KEY);
CREATE FUNCTION looks_at(number integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (number); RETURN number % 97 = 0; END $$;
SELECT count(*) FROM (SELECT id FROM points WHERE looks_at(id) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10) s;
SELECT count(*) BETWEEN 500 AND 7999 FROM seen;
-- locks, and the address of a row that was held back
BEGIN;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10 FOR UPDATE) s;
SELECT count(*) FROM (SELECT id, ctid AS address, tableoid AS home FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10) s
	JOIN points p ON p.id = s.id AND p.ctid = s.address AND p.tableoid = s.home;
SELECT count(*) FROM (SELECT points AS whole FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10) s WHERE keeps((s.whole).id, 50);
ROLLBACK;
-- executed again for each row of a join, in batches and alone
CREATE VIEW joined AS SELECT a.number, n.id, n.place FROM asked a CROSS JOIN LATERAL (SELECT id, row_number() OVER () AS place FROM
	(SELECT p.id FROM points p WHERE keeps(p.id, 40) AND p.id <> a.number ORDER BY p.v <-> a.v LIMIT 5) s) n;
CREATE TABLE in_batches AS SELECT * FROM joined;
SET pgwarp.knn_batch = off;
CREATE TABLE alone AS SELECT * FROM joined;
RESET pgwarp.knn_batch;
SET enable_indexscan = off;
RESET enable_seqscan;
SELECT count(*), avg((b.id IS NOT NULL)::integer) > 0.94, avg((o.id IS NOT NULL)::integer) > 0.94 FROM joined j LEFT JOIN in_batches b USING (number, id) LEFT JOIN alone o USING (number, id);
SELECT count(*) FROM in_batches b JOIN points p USING (id) JOIN asked a USING (number) JOIN in_batches b2 ON b2.number = b.number AND b2.place > b.place JOIN points p2 ON p2.id = b2.id
	WHERE p2.v <-> a.v < p.v <-> a.v;
-- the scan returns rows as the table has them, unless they are wide or lack a column that was added with a default
RESET enable_indexscan;
SET enable_seqscan = off;
CREATE FUNCTION columns_scanned() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE $query$EXPLAIN (COSTS OFF, VERBOSE) SELECT id, kind FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10$query$ LOOP
		IF line ~ 'Output' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END $$;
SELECT columns_scanned() OFFSET 2;
SELECT count(*), count(DISTINCT id) AS ids FROM (SELECT * FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10) s
	JOIN points p USING (id, centre, kind) WHERE p.v = s.v;
ALTER TABLE points ADD COLUMN added integer DEFAULT 7;
SELECT columns_scanned() OFFSET 2;
SELECT min(added), max(added), count(*) FROM (SELECT id, added FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10) s;
ALTER TABLE points DROP COLUMN centre, ADD COLUMN wide text;
UPDATE points SET wide = repeat('wide', 100);
VACUUM FULL ANALYZE points;
SELECT columns_scanned() OFFSET 2;
SELECT count(*), min(length(wide)), max(added) FROM (SELECT id, wide, added FROM points WHERE keeps(id, 50) ORDER BY v <-> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10) s;
RESET enable_seqscan;
DROP FUNCTION columns_scanned();
DROP VIEW joined, verdict;
DROP TABLE points, asked, truth, filters, seen, in_batches, alone;
DROP FUNCTION keeps(integer, integer), answer(text, vector, integer), sorted(float8[]), in_index_order(text, vector), looks_at(integer);
