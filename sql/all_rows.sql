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

-- an OFFSET alone, and a LIMIT without a number
CREATE TABLE spread AS SELECT i AS id, i % 5 AS kind, ARRAY[sin(i), cos(3 * i), sin(7 * i)]::vector(3) AS v FROM generate_series(1, 4000) i;
CREATE INDEX spread_v ON spread USING ivfadc (v) WITH (lists = 20);
VACUUM ANALYZE spread;
SELECT * FROM read_rows($$SELECT v <-> '[.1,.2,.3]' AS d FROM spread ORDER BY v <-> '[.1,.2,.3]' OFFSET 100$$);
SELECT * FROM read_rows($$SELECT v <-> '[.1,.2,.3]' AS d FROM spread WHERE kind = 3 ORDER BY v <-> '[.1,.2,.3]' OFFSET 100$$);
SELECT * FROM read_rows($$SELECT v <-> '[.1,.2,.3]' AS d FROM spread ORDER BY v <-> '[.1,.2,.3]' LIMIT (SELECT NULL::int)$$);
SELECT * FROM read_rows($$SELECT v <-> '[.1,.2,.3]' AS d FROM spread ORDER BY v <-> '[.1,.2,.3]' LIMIT (SELECT NULL::int) OFFSET 1 FOR UPDATE$$);
SELECT q.id, count(*) FROM generate_series(1, 3) q(id) CROSS JOIN LATERAL (SELECT i.id FROM spread i
	ORDER BY i.v <-> ARRAY[q.id * .1, .2, .3]::vector LIMIT CASE q.id WHEN 1 THEN 10 WHEN 3 THEN 3000 END) n GROUP BY q.id ORDER BY q.id;
SELECT count(*) FROM (SELECT id FROM (SELECT id FROM spread ORDER BY v <-> '[.1,.2,.3]' OFFSET 100) s LIMIT 200) s;
PREPARE first_rows (bigint) AS SELECT count(*) FROM (SELECT id FROM spread ORDER BY v <-> '[.1,.2,.3]' LIMIT $1) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE first_rows (NULL);
EXECUTE first_rows (20);
RESET plan_cache_mode;
DEALLOCATE first_rows;

-- a CTE, read as far as its query, and merge joins
WITH near AS MATERIALIZED (SELECT id FROM spread ORDER BY v <-> '[.1,.2,.3]') SELECT count(*) FROM near;
WITH near AS MATERIALIZED (SELECT id FROM spread ORDER BY v <-> '[.1,.2,.3]') SELECT count(*) FROM near a JOIN near b USING (id);
SELECT * FROM read_rows($$WITH near AS MATERIALIZED (SELECT v <-> '[.1,.2,.3]' AS d FROM spread ORDER BY v <-> '[.1,.2,.3]') SELECT d FROM near$$);
WITH near AS MATERIALIZED (SELECT id FROM spread ORDER BY v <-> '[.1,.2,.3]') SELECT id FROM near LIMIT 1 OFFSET 10;
WITH RECURSIVE near AS ((SELECT id FROM spread ORDER BY v <-> '[.1,.2,.3]' OFFSET 1) UNION ALL SELECT id FROM near WHERE false) SELECT count(*) FROM near;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM (SELECT v <-> '[.1,.2,.3]' AS d FROM spread ORDER BY d) a JOIN (SELECT v <-> '[.1,.2,.3]' AS d FROM spread ORDER BY d) b ON a.d = b.d;
RESET enable_hashjoin;
RESET enable_nestloop;
DROP TABLE spread;

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
SELECT id, count(*) FROM (SELECT q.id FROM generate_series(1, 3) q(id) CROSS JOIN LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> ARRAY[q.id, 2, 3]::vector OFFSET 0) n LIMIT 9000) s
	GROUP BY id ORDER BY id;

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

-- indexes without vectors, whose rows come in the order of codes
SET pgwarp.iterative = strict;
CREATE TABLE coded (id integer, kind integer, v vector(24));
SELECT setseed(0.5);
INSERT INTO coded SELECT i, i % 400, (SELECT array_agg(random()) FROM generate_series(1, 24) d WHERE i + d > 0)::vector FROM generate_series(1, 5000) i;
CREATE TABLE asked AS SELECT id, v FROM coded WHERE id <= 40;
CREATE INDEX kinds_of_coded ON kinds (kind);
TRUNCATE kinds;
INSERT INTO kinds SELECT generate_series(0, 399);
VACUUM ANALYZE coded, asked, kinds;
SET pgwarp.recall = 0.95;
SET client_min_messages = warning;
CREATE FUNCTION coded_rows() RETURNS TABLE (what text, total bigint, in_order boolean) LANGUAGE plpgsql AS $$
DECLARE
	query text;
	d text;
BEGIN
	SELECT v INTO query FROM coded WHERE id = 77;
	d := format('v <-> %L', query);
	FOREACH what IN ARRAY ARRAY['FROM coded ORDER BY %1$s LIMIT 500', 'FROM coded JOIN kinds USING (kind) ORDER BY %1$s LIMIT 500',
		'FROM coded WHERE EXISTS (SELECT FROM kinds k WHERE k.kind = coded.kind) ORDER BY %1$s LIMIT 500',
		'FROM coded WHERE id %% 400 = 7 ORDER BY %1$s LIMIT 10', 'FROM coded WHERE id %% 400 = 7 ORDER BY %1$s LIMIT 100',
		'FROM coded ORDER BY %1$s', 'FROM coded WHERE kind = 3 ORDER BY %1$s'] LOOP
		SELECT r.total, r.in_order INTO total, in_order FROM read_rows(format('SELECT %s AS d ', d) || format(what, d)) r;
		RETURN NEXT;
	END LOOP;
	what := 'DISTINCT ON';
	SELECT r.total, r.in_order INTO total, in_order FROM read_rows(format('SELECT DISTINCT ON (%1$s) %1$s AS d FROM coded ORDER BY %1$s LIMIT 500', d)) r;
	RETURN NEXT;
	what := 'a function that returns rows';
	SELECT r.total, r.in_order INTO total, in_order FROM read_rows(format('SELECT %1$s AS d, generate_series(1, 1) FROM coded ORDER BY %1$s LIMIT 500', d)) r;
	RETURN NEXT;
	what := 'rank';
	SELECT r.total, r.in_order INTO total, in_order FROM read_rows(format('SELECT %1$s AS d, rank() OVER (ORDER BY %1$s) FROM coded ORDER BY 1 LIMIT 500', d)) r;
	RETURN NEXT;
END $$;
-- searches of a join with fewer rows than pass
CREATE FUNCTION join_rows(OUT batched text, OUT alone text) LANGUAGE plpgsql AS $$
DECLARE
	statement text := $q$SELECT count(*) || ' searches, ' || count(*) FILTER (WHERE n < 10) || ' of them short' FROM (SELECT count(c.id) AS n FROM asked a LEFT JOIN LATERAL
		(SELECT c.id FROM coded c WHERE c.id % 400 = 7 ORDER BY c.v <-> a.v LIMIT 10) c ON true GROUP BY a.id) s$q$;
BEGIN
	EXECUTE statement INTO batched;
	PERFORM set_config('pgwarp.knn_batch', 'off', true);
	EXECUTE statement INTO alone;
	PERFORM set_config('pgwarp.knn_batch', 'on', true);
END $$;
-- a cursor has nearly all rows
CREATE FUNCTION cursor_rows(OUT most boolean, OUT in_order boolean) LANGUAGE plpgsql AS $$
DECLARE
	query vector;
	item record;
	last float8 := '-inf';
	total bigint := 0;
BEGIN
	SELECT v INTO query FROM coded WHERE id = 77;
	in_order := true;
	FOR item IN SELECT v <-> query AS d FROM coded ORDER BY v <-> query LOOP
		in_order := in_order AND item.d >= last;
		last := item.d;
		total := total + 1;
	END LOOP;
	most := total > 4000;
END $$;
CREATE INDEX coded_v ON coded USING graph (v) WITH (vectors = bits);
SELECT * FROM coded_rows();
SELECT * FROM join_rows();
SELECT * FROM cursor_rows();
DROP INDEX coded_v;
CREATE INDEX coded_v ON coded USING ivfadc (v) WITH (refine = none);
SELECT * FROM coded_rows();
SELECT * FROM join_rows();
SELECT * FROM cursor_rows();
DROP INDEX coded_v;
CREATE INDEX coded_v ON coded USING pqtree (v) WITH (refine = none);
SELECT * FROM coded_rows();
SELECT * FROM join_rows();
SELECT * FROM cursor_rows();
DROP FUNCTION read_rows(text), coded_rows(), join_rows(), cursor_rows();
DROP TABLE items, kinds, parts, few, coded, asked;
