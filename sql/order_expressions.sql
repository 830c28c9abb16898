-- orders by expressions around a distance, and by a distance and then something else: every answer is that of a sort
SET client_min_messages = warning;
SET jit = off;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, kind integer, v vector(3), h halfvec(3), n vector(3) NOT NULL DEFAULT '[1,2,3]', t text);
INSERT INTO items SELECT i, i % 7, CASE WHEN i % 60 = 7 THEN NULL WHEN i % 45 = 8 THEN '[0,0,0]' ELSE ARRAY[i % 5, i % 3, i % 11]::vector END FROM generate_series(1, 600) i;
UPDATE items SET h = v::halfvec, n = coalesce(v, '[0,0,0]'), t = repeat('ab', id % 9);
CREATE INDEX items_l2 ON items USING exact (v);
CREATE INDEX items_cosine ON items USING exact (v vector_cosine_ops);
CREATE INDEX items_ip ON items USING exact (v vector_ip_ops);
CREATE INDEX items_l1 ON items USING exact (v vector_l1_ops);
CREATE INDEX items_half ON items USING exact (h halfvec_cosine_ops);
CREATE INDEX items_half_ip ON items USING exact (h halfvec_ip_ops);
CREATE INDEX items_n ON items USING exact (n vector_cosine_ops, kind);
CREATE INDEX items_t ON items USING matchcount (t);
VACUUM FULL items;
ANALYZE items;
CREATE TABLE asked AS SELECT id, v, h FROM items WHERE id IN (3, 4, 7, 8);
ANALYZE asked;

CREATE FUNCTION plan_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END $$;
CREATE FUNCTION rows_of(statement text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE found text[];
BEGIN
	EXECUTE 'SELECT array_agg(s::text) FROM (' || statement || ') s' INTO found;
	RETURN found;
END $$;
-- Whether the answer by an index is that of sequential scans, in its order; `used`: a part of the plan by the index.
CREATE FUNCTION compared(statement text, used text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE truth text[]; answer text[]; plan text;
BEGIN
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
	truth := rows_of(statement);
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
	plan := plan_of(statement);
	IF plan !~ used THEN RETURN E'another plan:\n' || plan; END IF;
	IF plan ~ 'Sort  |Sort\n' AND used !~ 'Incremental Sort' THEN RETURN E'a sort:\n' || plan; END IF;
	answer := rows_of(statement);
	PERFORM set_config('enable_seqscan', 'on', true);
	IF answer IS NOT DISTINCT FROM truth THEN RETURN coalesce(cardinality(truth), 0) || ' rows'; END IF;
	RETURN E'another answer:\n' || array_to_string(truth, ' ') || E'\n' || array_to_string(answer, ' ') || E'\n' || plan;
END $$;

-- Each expression that an index gives the order of, in every place of NULLs, for pages and all rows, with filters, and in
-- a join; the values tell the order.
CREATE TABLE forms (number integer, form text);
INSERT INTO forms VALUES
	(1, 'SELECT EXPR AS d FROM items ORDER BY d DIR LIMIT 10'),
	(2, 'SELECT EXPR AS d FROM items ORDER BY d DIR LIMIT 50'),
	(3, 'SELECT EXPR AS d FROM items ORDER BY d DIR'),
	(4, 'SELECT EXPR AS d FROM items ORDER BY d DIR LIMIT 20 OFFSET 8'),
	(5, 'SELECT EXPR AS d, kind FROM items WHERE kind = 3 AND id % 2 = 1 ORDER BY EXPR DIR LIMIT 12'),
	(6, 'SELECT EXPR AS d FROM items WHERE v IS NOT NULL AND id % 2 = 1 ORDER BY d DIR LIMIT 40'),
	(7, 'SELECT EXPR AS d FROM items WHERE v IS NULL ORDER BY d DIR LIMIT 5'),
	(8, 'SELECT d FROM (SELECT id, EXPR AS d FROM items) s ORDER BY d DIR LIMIT 30');
CREATE FUNCTION all_forms(expression text, direction text, used text) RETURNS SETOF text LANGUAGE sql AS $$
	WITH asked AS MATERIALIZED (SELECT form, nulls, compared(replace(replace(form, 'EXPR', expression), 'DIR', concat_ws(' ', direction, 'NULLS', nulls)), used) AS answer
		FROM forms, unnest('{FIRST,LAST}'::text[]) nulls)
	SELECT expression || ': ' || count(*) || ' forms, ' || sum(substring(answer FROM '^(\d+) rows$')::int) || ' rows' FROM asked
	UNION ALL SELECT form || ' ' || nulls || ': ' || answer FROM asked WHERE answer !~ '^\d+ rows$'
$$;
SELECT all_forms('v <-> ''[1,2,3]''', '', 'items_l2');
SELECT all_forms('l2_distance(v, ''[1,2,3]'')', '', 'items_l2');
SELECT all_forms('l2_distance(''[1,2,3]'', v)', 'ASC', 'items_l2');
SELECT all_forms('-(v <-> ''[1,2,3]'')', 'DESC', 'items_l2');
SELECT all_forms('1 - (v <=> ''[1,2,3]'')', 'DESC', 'items_cosine');
SELECT all_forms('1 - (v <=> ''[0,0,0]'')', 'DESC', 'items_cosine');
SELECT all_forms('1 - (v <=> (SELECT NULL::vector))', 'DESC', 'items_cosine');
SELECT all_forms('1 - (v <=> (SELECT v FROM asked WHERE id = 4))', 'DESC', 'items_cosine');
SELECT all_forms('1 - cosine_distance(v, ''[1,2,3]'')', 'DESC', 'items_cosine');
SELECT all_forms('cosine_distance(v, ''[1,2,3]'')', '', 'items_cosine');
SELECT all_forms('100 * (1 - (v <=> ''[1,2,3]'') / 2)', 'DESC', 'items_cosine');
SELECT all_forms('-(1 - (v <=> ''[1,2,3]''))', '', 'items_cosine');
SELECT all_forms('round((1 - (v <=> ''[1,2,3]''))::numeric, 2)', 'DESC', 'items_cosine');
SELECT all_forms('(1 - (v <=> ''[1,2,3]''))::real', 'DESC', 'items_cosine');
SELECT all_forms('round(v <=> ''[1,2,3]'')', '', 'items_cosine');
SELECT all_forms('1 - (h <=> ''[1,2,3]'')', 'DESC', 'items_half');
SELECT all_forms('inner_product(h, ''[1,2,3]'')', 'DESC', 'items_half_ip');
SELECT all_forms('(v <#> ''[1,2,3]'') * -1', 'DESC', 'items_ip');
SELECT all_forms('-1 * (v <#> ''[1,2,3]'')', 'DESC', 'items_ip');
SELECT all_forms('inner_product(v, ''[1,2,3]'')', 'DESC', 'items_ip');
SELECT all_forms('inner_product(''[1,2,3]'', v)', 'DESC', 'items_ip');
SELECT all_forms('-inner_product(v, ''[1,2,3]'')', '', 'items_ip');
SELECT all_forms('l1_distance(v, ''[1,2,3]'') + 1', '', 'items_l1');
SELECT all_forms('1 - (n <=> ''[1,2,3]'')', 'DESC', 'items_n');
SELECT all_forms('edit_distance(t, ''abab'')', '', 'items_t');
DELETE FROM forms WHERE number IN (3, 7);

-- approximate indexes come in the same order; and their rows before and after others without a place are inserted
CREATE TABLE near (id integer, v vector(3)) WITH (autovacuum_enabled = off);
INSERT INTO near SELECT i, CASE WHEN i % 50 = 0 THEN NULL WHEN i % 50 = 1 THEN '[0,0,0]' ELSE ARRAY[sin(i), cos(3 * i), sin(7 * i)]::vector END FROM generate_series(1, 2000) i;
CREATE FUNCTION in_order(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
	SET LOCAL enable_seqscan = off;
	IF plan_of(statement) !~ 'KnnOrder' THEN RETURN plan_of(statement); END IF;
	EXECUTE 'SELECT concat_ws('' '', count(*), ''rows,'', count(DISTINCT id), ''ids,'', count(*) FILTER (WHERE s IS NULL AND number <= 45), ''NULLs,'', count(*) FILTER (WHERE s = ''NaN'' AND number BETWEEN 41 AND 86), ''NaNs, in order:'',
		bool_and(before IS NULL OR before >= s)) FROM (SELECT id, s, lag(s) OVER (ORDER BY number) AS before, number FROM (SELECT id, s, row_number() OVER () AS number FROM (' || statement || ') r) n) o' INTO answer;
	RETURN answer;
END $$;
DO $$
DECLARE method text;
BEGIN
	FOREACH method IN ARRAY ARRAY['exact', 'graph', 'ivfadc', 'ivfadc (refine)', 'pqtree', 'matchcount'] LOOP
		EXECUTE CASE method WHEN 'ivfadc (refine)' THEN 'CREATE INDEX near_v ON near USING ivfadc (v vector_cosine_ops) WITH (refine = none)'
			ELSE format('CREATE INDEX near_v ON near USING %s (v vector_cosine_ops)', method) END;
		RAISE WARNING '%: %', method, in_order('SELECT id, 1 - (v <=> ''[1,2,3]'') AS s FROM near ORDER BY s DESC LIMIT 300');
		INSERT INTO near VALUES (2001, NULL), (2002, '[0,0,0]'), (2003, '[1,2,3.5]'), (2004, '[0,0,0]'), (2005, NULL);
		RAISE WARNING '%: %', method, in_order('SELECT id, 1 - (v <=> ''[1,2,3]'') AS s FROM near ORDER BY s DESC LIMIT 300');
		RAISE WARNING '%: %', method, in_order('SELECT id, 1 - (v <=> ''[1,2,3]'') AS s FROM near ORDER BY s DESC');
		DELETE FROM near WHERE id > 2000;
		DROP INDEX near_v;
	END LOOP;
END $$;
DROP TABLE near;

-- after the first key others, and after those of a join
SELECT compared('SELECT id, v <-> ''[1,2,3]'' FROM items ORDER BY v <-> ''[1,2,3]'', id LIMIT ' || n, 'Incremental Sort') FROM unnest('{5,40,2000}'::int[]) n;
SELECT compared('SELECT id, kind, v <-> ''[1,2,3]'' FROM items ORDER BY v <-> ''[1,2,3]'', kind DESC, id LIMIT 40', 'Incremental Sort');
SELECT compared('SELECT id, v <-> ''[1,2,3]'' FROM items ORDER BY v <-> ''[1,2,3]'', id DESC', 'Incremental Sort');
SELECT compared('SELECT id, v <-> ''[1,2,3]'' FROM items ORDER BY v <-> ''[1,2,3]'' NULLS FIRST, id DESC LIMIT 40', 'Incremental Sort');
SELECT compared('SELECT id, 1 - (v <=> ''[1,2,3]'') AS s FROM items ORDER BY s DESC, id LIMIT 60', 'Incremental Sort');
SELECT compared('SELECT id, round((1 - (v <=> ''[1,2,3]''))::numeric, 1) AS s FROM items ORDER BY s DESC, id LIMIT 60', 'Incremental Sort');
SELECT compared('SELECT id FROM items WHERE id % 3 = 1 ORDER BY v <-> ''[1,2,3]'', id LIMIT 40', 'Incremental Sort');
SELECT compared('SELECT id FROM items WHERE kind = 3 ORDER BY 1 - (n <=> ''[1,2,3]'') DESC, id LIMIT 40', 'Incremental Sort');
SELECT compared('SELECT id FROM items WHERE v <-> ''[1,2,3]'' < 4 ORDER BY v <-> ''[1,2,3]'', id LIMIT 40 OFFSET 3', 'Incremental Sort');
SELECT compared('SELECT i.id FROM items i JOIN asked a ON a.id = i.kind ORDER BY i.v <-> ''[1,2,3]'', i.id LIMIT 40', 'Incremental Sort');
SELECT compared('SELECT a.id, n.* FROM asked a LEFT JOIN LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> a.v, i.id LIMIT 20) n ON true', 'KnnBatch.*Incremental Sort');
SELECT compared('SELECT id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> a.v, i.id LIMIT 20) FROM asked a', 'KnnBatch.*Incremental Sort');
SELECT compared('SELECT id FROM items ORDER BY v <-> ''[1,2,3]'', id LIMIT 10 FOR UPDATE', 'Incremental Sort');

-- from the other side of a join
SELECT compared('SELECT a.id, n.s FROM asked a LEFT JOIN LATERAL (SELECT 1 - (i.v <=> a.v) AS s FROM items i ORDER BY s DESC LIMIT 45) n ON true', 'KnnBatch.*KnnOrder.*First: NULL, NaN');
SELECT compared('SELECT a.id, n.s FROM asked a LEFT JOIN LATERAL (SELECT 1 - (i.v <=> a.v) AS s FROM items i WHERE i.id % 2 = 0 ORDER BY s DESC LIMIT 45) n ON true', 'KnnBatch.*KnnFilter.*First: NULL, NaN');
SELECT compared('SELECT id, ARRAY(SELECT 1 - (i.h <=> a.h) FROM items i ORDER BY 1 DESC LIMIT 45) FROM asked a', 'First: NULL, NaN');

-- index-only scans
CREATE TABLE wide (id integer, kind integer, v vector(3));
INSERT INTO wide SELECT id, kind, v FROM items ORDER BY id;
CREATE INDEX wide_v ON wide USING exact (v vector_cosine_ops) INCLUDE (id, kind);
VACUUM (ANALYZE, FREEZE) wide;
SELECT compared('SELECT kind IS NOT NULL FROM wide ORDER BY 1 - (v <=> ''[1,2,3]'') DESC LIMIT 40', 'KnnOrder.*Index Only Scan');
SELECT compared('SELECT kind > 3 FROM wide WHERE kind > 3 ORDER BY 1 - (v <=> ''[1,2,3]'') DESC LIMIT 40', 'KnnFilter.*Index Only Scan');
SELECT array_agg(id ORDER BY id) = (SELECT array_agg(id ORDER BY id) FROM wide WHERE v IS NULL OR v = '[0,0,0]') AS first_rows
	FROM (SELECT id FROM wide ORDER BY 1 - (v <=> '[1,2,3]') DESC LIMIT (SELECT count(*) FROM wide WHERE v IS NULL OR v = '[0,0,0]')) s;
DROP INDEX wide_v;
CREATE INDEX wide_v ON wide USING exact (v) INCLUDE (id, kind);
SELECT compared('SELECT 10 - (v <-> ''[1,2,3]'') AS s FROM wide ORDER BY s DESC LIMIT 40', 'Index Only Scan');
SELECT compared('SELECT 10 - (v <-> ''[1,2,3]'') AS s FROM wide WHERE kind > 3 ORDER BY s DESC', 'Index Only Scan');
SELECT compared('SELECT id, l2_distance(v, ''[1,2,3]'') AS s FROM wide ORDER BY s NULLS FIRST, id LIMIT 40', 'Incremental Sort.*Index');
DROP TABLE wide;

-- partitions
CREATE TABLE parts (id integer, kind integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (200);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (200) TO (400);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (400) TO (700);
INSERT INTO parts SELECT id, kind, v FROM items;
CREATE INDEX ON parts_1 USING exact (v vector_cosine_ops);
CREATE INDEX ON parts_2 USING exact (v vector_cosine_ops);
CREATE INDEX ON parts_1 USING exact (v);
CREATE INDEX ON parts_2 USING exact (v);
ANALYZE parts;
CREATE FUNCTION parts_compared() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT compared(statement, 'KnnPartitions') FROM unnest(ARRAY[
		'SELECT 1 - (v <=> ''[1,2,3]'') AS s FROM parts ORDER BY s DESC LIMIT 60',
		'SELECT 1 - (v <=> ''[1,2,3]'') AS s FROM parts WHERE kind > 2 ORDER BY s DESC LIMIT 60',
		'SELECT 1 - (v <=> ''[1,2,3]'') AS s FROM parts ORDER BY s DESC',
		'SELECT v <-> ''[1,2,3]'' AS s FROM parts ORDER BY s NULLS FIRST LIMIT 60',
		'SELECT 2 * (v <-> ''[1,2,3]'') AS s FROM parts ORDER BY s LIMIT 60',
		'SELECT v <-> ''[1,2,3]'' AS s FROM parts ORDER BY s LIMIT 60']) statement
$$;
CREATE INDEX ON parts_3 USING exact (v vector_cosine_ops);
CREATE INDEX ON parts_3 USING exact (v);
SELECT parts_compared();
SELECT compared('SELECT id, v <-> ''[1,2,3]'' FROM parts ORDER BY v <-> ''[1,2,3]'', id LIMIT 40', 'Incremental Sort');
SELECT compared('SELECT id, 1 - (v <=> ''[1,2,3]'') AS s FROM parts ORDER BY s DESC, id LIMIT 60', 'Incremental Sort');
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM parts ORDER BY v <-> '[1,2,3]', id LIMIT 5;
RESET enable_seqscan;
DROP TABLE parts;

-- a bound of such an expression ends the scan, but for rows that are not a number, which are greater than all
INSERT INTO forms VALUES
	(11, 'SELECT SIM AS s FROM items WHERE COND ORDER BY DIST'),
	(12, 'SELECT SIM AS s FROM items WHERE COND ORDER BY DIST LIMIT 20'),
	(13, 'SELECT SIM AS s FROM items WHERE COND ORDER BY SIM DESC LIMIT 30'),
	(14, 'SELECT SIM AS s FROM items WHERE COND ORDER BY SIM DESC NULLS LAST'),
	(15, 'SELECT SIM AS s FROM items WHERE id % 2 = 0 AND COND AND kind < 5 ORDER BY SIM DESC NULLS LAST LIMIT 200'),
	(16, 'SELECT SIM AS s FROM items WHERE COND AND DIST < 0.2 ORDER BY DIST LIMIT 200');
CREATE FUNCTION all_bounds(similarity text, distance text, VARIADIC bounds text[]) RETURNS SETOF text LANGUAGE sql AS $$
	WITH asked AS MATERIALIZED (SELECT form, b, compared(replace(replace(replace(form, 'COND', b), 'SIM', similarity), 'DIST', distance), 'KnnFilter.*While') AS answer
		FROM forms, unnest(bounds) b WHERE number > 10)
	SELECT similarity || ': ' || count(*) || ' forms, ' || sum(substring(answer FROM '^(\d+) rows$')::int) || ' rows' FROM asked
	UNION ALL SELECT form || ' ' || b || ': ' || answer FROM asked WHERE answer !~ '^\d+ rows$'
$$;
SELECT all_bounds('1 - (v <=> ''[1,2,3]'')', 'v <=> ''[1,2,3]''', 'SIM > 0.9', '0.8 <= SIM', 'SIM >= 0.97', 'SIM > (SELECT 0.9::float8)', 'SIM > 2', 'SIM > -2', 'SIM > (SELECT NULL::float8)', 'SIM >= ''NaN''', 'SIM > ''NaN''');
SELECT all_bounds('1 - cosine_distance(''[1,2,3]'', v)', 'v <=> ''[1,2,3]''', 'SIM > 0.9', 'SIM < 2 AND SIM > 0.5');
SELECT all_bounds('1 - (v <=> ''[0,0,0]'')', 'v <=> ''[0,0,0]''', 'SIM > 0.9');
SELECT all_bounds('1 - (h <=> ''[1,2,3]'')', 'h <=> ''[1,2,3]''', 'SIM > 0.9');
SELECT all_bounds('(v <#> ''[1,2,3]'') * -1', 'v <#> ''[1,2,3]''', 'SIM > 30', 'SIM >= 30', '50 < SIM');
SELECT all_bounds('inner_product(v, ''[1,2,3]'')', 'v <#> ''[1,2,3]''', 'SIM > 30', 'SIM >= 30', '50 < SIM', '-SIM < -30');
SELECT all_bounds('1 - 2 * (v <-> ''[1,2,3]'')', 'v <-> ''[1,2,3]''', 'SIM > -7', '2 * (DIST) < 7', '2 * (DIST) <= 0');
SELECT compared('SELECT a.id, n.s FROM asked a LEFT JOIN LATERAL (SELECT 1 - (i.v <=> a.v) AS s FROM items i WHERE 1 - (i.v <=> a.v) > 0.95 ORDER BY s DESC LIMIT 45) n ON true', 'KnnBatch.*KnnFilter.*While');
SELECT compared('SELECT a.id, n.s FROM asked a LEFT JOIN LATERAL (SELECT i.v <=> a.v AS s FROM items i WHERE 1 - (i.v <=> a.v) > a.id / 5.0 ORDER BY s LIMIT 500) n ON true', 'KnnBatch.*KnnFilter.*While');
CREATE FUNCTION rows_read(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	SET LOCAL enable_seqscan = off;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
		IF line ~ 'Index Scan' THEN RETURN substring(line FROM 'rows=(\d+)'); END IF;
	END LOOP;
	RETURN 'no index scan';
END $$;
SELECT count(*) AS near FROM items WHERE v <=> '[1,2,3]' < 0.1;
SELECT rows_read('SELECT id FROM items WHERE 1 - (v <=> ''[1,2,3]'') > 0.9 ORDER BY v <=> ''[1,2,3]'' LIMIT 500') AS read;
SELECT rows_read('SELECT id FROM items WHERE id < 0 AND 1 - (v <=> ''[1,2,3]'') > 0.9 ORDER BY 1 - (v <=> ''[1,2,3]'') DESC LIMIT 500') AS read;
SELECT rows_read('SELECT id FROM items WHERE v IS NOT NULL AND inner_product(v, ''[1,2,3]'') > 45 ORDER BY v <#> ''[1,2,3]'' LIMIT 500') AS read;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id, 1 - (v <=> '[1,2,3]') AS similarity FROM items WHERE 1 - (v <=> '[1,2,3]') > 0.8 ORDER BY similarity DESC LIMIT 5;
RESET enable_seqscan;
-- behind a security barrier the bound comes after the view's own condition, and ends no scan
CREATE VIEW some_items WITH (security_barrier) AS SELECT * FROM items WHERE id % 3 = 0;
SELECT plan_of('SELECT id FROM some_items WHERE 1 - (v <=> ''[1,2,3]'') > 0.9 ORDER BY v <=> ''[1,2,3]'' LIMIT 5') ~ 'While' AS ends;
DROP VIEW some_items;

-- plans
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id, 1 - (v <=> '[1,2,3]') AS similarity FROM items ORDER BY similarity DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id, 1 - (n <=> '[1,2,3]') AS similarity FROM items WHERE kind = 3 ORDER BY similarity DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE v IS NOT NULL ORDER BY (v <#> '[1,2,3]') * -1 DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY l2_distance(v, '[1,2,3]') LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY inner_product(v, '[1,2,3]') DESC NULLS LAST LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY l2_distance(v, '[1,2,3]') NULLS FIRST, id LIMIT 5;
-- not served: the other direction, no constant or no distance, a step that may turn the order, and what is written to keep an index out
SELECT count(*) FROM unnest(ARRAY['1 - (v <=> ''[1,2,3]'')', '(v <-> ''[1,2,3]'') DESC', '(v <-> ''[1,2,3]'') + 0', '(v <-> ''[1,2,3]'') - 0', '0 + (v <-> ''[1,2,3]'')', '(v <-> ''[1,2,3]'') * 0', '(v <-> ''[1,2,3]'') + id',
	'(v <-> ''[1,2,3]'') * (v <-> ''[1,2,3]'')', '1 / (v <-> ''[1,2,3]'') DESC', '(v <-> ''[1,2,3]'') * ''inf''', '(v <-> ''[1,2,3]'') * -1', 'inner_product(v, ''[1,2,3]'')', 'abs(v <#> ''[1,2,3]'')',
	'(v <-> ''[1,2,3]'') + random()', 'l2_distance(v, n)', 'vector_l2_squared_distance(v, ''[1,2,3]'')', '-(-(v <-> ''[1,2,3]'')) DESC']) o
	WHERE plan_of('SELECT id FROM items ORDER BY ' || o || ' LIMIT 5') ~ 'Index Scan';

-- prepared statements, with generic plans; cursors, also backwards
SET plan_cache_mode = force_generic_plan;
PREPARE alike (vector, int) AS SELECT 1 - (v <=> $1) AS s, id FROM items ORDER BY s DESC, id LIMIT $2;
EXPLAIN (COSTS OFF) EXECUTE alike ('[1,2,3]', 3);
EXECUTE alike ('[1,2,3]', 3);
EXECUTE alike ('[0,0,0]', 3);
EXECUTE alike (NULL, 2);
PREPARE nearest (vector, int) AS SELECT l2_distance(v, $1) AS s FROM items ORDER BY s LIMIT $2;
EXECUTE nearest ('[1,2,3]', 3);
EXECUTE nearest (NULL, 2);
RESET plan_cache_mode;
BEGIN;
DECLARE alike SCROLL CURSOR FOR SELECT 1 - (v <=> '[1,2,3]') AS s FROM items ORDER BY s DESC;
MOVE 22 IN alike;
FETCH 5 FROM alike;
FETCH BACKWARD 6 FROM alike;
MOVE ABSOLUTE 598 IN alike;
FETCH ALL FROM alike;
ROLLBACK;
BEGIN;
DECLARE alike CURSOR FOR SELECT id FROM items ORDER BY 1 - (v <=> '[1,2,3]') DESC FOR UPDATE;
FETCH 1 FROM alike;
UPDATE items SET kind = 100 WHERE CURRENT OF alike RETURNING id, kind;
ROLLBACK;

-- what ORMs and pgvector's documentation write
CREATE FUNCTION written() RETURNS TABLE (answer text) LANGUAGE sql AS $$
	SELECT compared(s, used) FROM (VALUES
		('SELECT v <-> ''[1,2,3]'' AS distance FROM items WHERE v <-> ''[1,2,3]'' < 3 ORDER BY distance LIMIT 10', 'items_l2'),
		('SELECT distance FROM (SELECT items.id AS id, items.v <=> ''[1,2,3]'' AS distance FROM items) AS anon ORDER BY anon.distance ASC LIMIT 10', 'items_cosine'),
		('SELECT v <-> ''[1,2,3]'' FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 3) LIMIT 1', 'items_l2'),
		('WITH near AS MATERIALIZED (SELECT id, v <-> ''[1,2,3]'' AS distance FROM items ORDER BY distance LIMIT 10) SELECT distance FROM near WHERE distance < 5', 'items_l2'),
		('SELECT max(distance + 0) FROM (SELECT v <-> ''[1,2,3]'' AS distance FROM items ORDER BY distance LIMIT 10) near', 'items_l2'),
		('SELECT 1 - (v <=> ''[1,2,3]'') AS similarity FROM items WHERE 1 - (v <=> ''[1,2,3]'') > 0.9 ORDER BY similarity DESC LIMIT 30', 'items_cosine'),
		('SELECT avg(d) FROM (SELECT v <-> ''[1,2,3]'' AS d FROM items ORDER BY d LIMIT 10) s', 'items_l2')) f(s, used)
$$;
SELECT * FROM written();
-- an array needs a cast, as with pgvector
SELECT id FROM items ORDER BY v <-> ARRAY[1,2,3] LIMIT 5;
SELECT id FROM items ORDER BY v <-> '{1,2,3}'::real[] LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> ARRAY[1,2,3]::vector LIMIT 5;
RESET enable_seqscan;
DROP TABLE items, asked, forms;
DROP FUNCTION plan_of, rows_of, compared, all_forms, all_bounds, rows_read, in_order, parts_compared, written;
