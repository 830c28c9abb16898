SET client_min_messages = warning;
SET jit = off;
SET seq_page_cost = 1000;
SET enable_memoize = off;

CREATE TABLE items (id integer, kind integer, v vector(3), part integer);
INSERT INTO items SELECT i, i % 5, ARRAY[i % 17, i % 101, i]::vector, i % 40 FROM generate_series(1, 1000) i;
CREATE INDEX items_v ON items USING exact (v);
CREATE TABLE asked (id integer, v vector(3));
INSERT INTO asked VALUES (1, '[1,2,3]'), (2, '[5,5,500]'), (3, NULL), (4, '[0,0,1000]');
CREATE VIEW numbered AS SELECT g, ARRAY[g, g, g]::vector AS v FROM generate_series(1, 2000) g OFFSET 0;
CREATE TABLE listed AS SELECT g, v FROM numbered;
ANALYZE;

-- plans
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q LEFT JOIN LATERAL (SELECT id, kind FROM items i WHERE kind < 3 ORDER BY i.v <-> q.v LIMIT 3) n ON n.kind = 1;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT * FROM (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) s) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id, m.id FROM asked q
	CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n
	CROSS JOIN LATERAL (SELECT id FROM items i WHERE i.id <> n.id ORDER BY i.v <-> q.v LIMIT 3) m;
-- not batched: nothing lateral about the query, one that is volatile or may raise an error, no index, switched off
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (q.v + q.v) LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT i.id, q.id AS asked FROM items i ORDER BY i.v <-> '[1,2,3]' LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (q.v * ARRAY[random(), 1, 1]::vector) LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <=> q.v LIMIT 3) n;
SET pgwarp.knn_batch = off;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
RESET pgwarp.knn_batch;

-- sub-selects of a target list
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q;
EXPLAIN (COSTS OFF) SELECT q.id, (SELECT array_agg(s.id) FROM (SELECT id FROM items i WHERE kind < 3 ORDER BY i.v <-> q.v LIMIT 3) s) FROM asked q ORDER BY q.id LIMIT 2;
SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) AS ids, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q ORDER BY q.id;
CREATE TABLE found AS SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) AS ids FROM asked q;
INSERT INTO found SELECT q.id + 10, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q;
SELECT * FROM found ORDER BY id;
DROP TABLE found;
-- not batched: a locked row, a query that is volatile or may raise an error, a cursor
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> (q.v + q.v) LIMIT 3) FROM asked q;
EXPLAIN (COSTS OFF) DECLARE rows_found CURSOR FOR SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q;
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q FOR UPDATE;
EXPLAIN (COSTS OFF) SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> (q.v * ARRAY[random(), 1, 1]::vector) LIMIT 3) FROM asked q;
BEGIN;
DECLARE rows_found SCROLL CURSOR FOR SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) FROM asked q WHERE q.v IS NOT NULL;
FETCH 2 FROM rows_found;
FETCH BACKWARD 1 FROM rows_found;
UPDATE asked SET id = id WHERE CURRENT OF rows_found;
ROLLBACK;
-- an aggregate over the rows of each search
EXPLAIN (COSTS OFF) SELECT q.id, n.ids FROM asked q CROSS JOIN LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) s) n;
SELECT q.id, n.ids FROM asked q CROSS JOIN LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) s) n ORDER BY q.id;
-- few different queries are remembered, many are batched
CREATE TABLE alike AS SELECT g AS id, ARRAY[g % 3, 1, 2]::vector(3) AS v FROM generate_series(1, 2000) g;
CREATE TABLE unlike AS SELECT g AS id, ARRAY[g, 1, 2]::vector(3) AS v FROM generate_series(1, 2000) g;
ANALYZE alike, unlike;
SET enable_memoize = on;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM alike q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM unlike q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
EXPLAIN (COSTS OFF) SELECT n.id FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
SET enable_memoize = off;
DROP TABLE alike, unlike;

-- rows
SELECT q.id, n.id, round(n.d::numeric, 4) AS d FROM asked q CROSS JOIN LATERAL (SELECT id, i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT 3) n
	WHERE q.v IS NOT NULL ORDER BY q.id, n.d;
SELECT q.id, count(n.id) FROM asked q LEFT JOIN LATERAL (SELECT id FROM items i WHERE kind = 9 ORDER BY i.v <-> q.v LIMIT 3) n ON true GROUP BY q.id ORDER BY q.id;
-- what the batch did: rows, hits, and scans that went on alone
CREATE FUNCTION counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *(Batches|Rows Read|Requests|Searches|Cache Hits|Deepened)' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END $$;
SELECT counts('SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n');
-- a bound that ends the scan, of a search that takes none
SELECT counts('SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i WHERE i.v <-> q.v <= 1000 ORDER BY i.v <-> q.v LIMIT 3) n');
SET pgwarp.batch_size = 2;
SELECT counts('SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n');
RESET pgwarp.batch_size;
SELECT counts('SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q');
SELECT counts('SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) FROM asked q JOIN items j ON j.id = q.id WHERE j.kind < 4');
-- while rows are joined the engine searches for those that follow; scans that need more than was fetched come between
SET pgwarp.batch_size = 4;
SELECT counts('SELECT g FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 5) n WHERE g <= 40');
SELECT count(*), sum(n.id) FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> q.v LIMIT 5) n WHERE g <= 40;
SET pgwarp.knn_batch = off;
SELECT count(*), sum(n.id) FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> q.v LIMIT 5) n WHERE g <= 40;
RESET pgwarp.knn_batch;
RESET pgwarp.batch_size;
-- a query that is stopped early reads little ahead
SELECT counts('SELECT g FROM listed q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n LIMIT 5');
-- a row that comes alone is searched for by its scan, the first time and every time
SELECT counts('SELECT n.id FROM (SELECT * FROM asked WHERE id = 2) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n');
SELECT counts('SELECT o.id, (SELECT sum(n.id) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n WHERE q.id = o.id) FROM asked o');
-- an outer side that ends in a batch of one
SELECT counts('SELECT n.id FROM (SELECT * FROM asked WHERE id < 3) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n');
-- a filter that takes most rows away
SELECT counts('SELECT g FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> q.v LIMIT 5) n WHERE g <= 200');

-- what has effects is not done ahead, nor are rows locked that the join never comes to
CREATE TABLE told (id integer);
CREATE FUNCTION tell(id integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	INSERT INTO told VALUES (id);
	RETURN id;
END $$;
CREATE FUNCTION told() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM told';
SELECT o.g, o.told, n.id FROM (SELECT g, v, told() FROM listed WHERE g > 3 OFFSET 0) o CROSS JOIN LATERAL (SELECT tell(id) AS id FROM items i ORDER BY i.v <-> o.v LIMIT 1) n LIMIT 4;
SELECT o.g, n.id FROM (SELECT g, v FROM listed WHERE (SELECT max(told()) FROM asked WHERE g > 3) < 7) o CROSS JOIN LATERAL (SELECT tell(id) AS id FROM items i ORDER BY i.v <-> o.v LIMIT 1) n;
DROP FUNCTION tell(integer), told();
DROP TABLE told;
CREATE SEQUENCE reached;
SELECT o.g, o.number, n.id FROM (SELECT g, v, nextval('reached') AS number FROM listed OFFSET 0) o CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> o.v LIMIT 2) n LIMIT 3;
SELECT last_value FROM reached;
DROP SEQUENCE reached;
BEGIN;
SELECT o.g, n.id FROM (SELECT g, v FROM listed WHERE g > 3 FOR UPDATE SKIP LOCKED) o CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> o.v LIMIT 2) n LIMIT 4;
SELECT count(*) FROM listed WHERE xmax::text <> '0';
ROLLBACK;
-- below a sort, in a hash table or in a function's result everything has happened before the first row
CREATE FUNCTION is_batched(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan ~ 'KnnBatch';
END $$;
CREATE FUNCTION join_of(outer_side text, rest text = '') RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT o.g, n.id FROM (%s) o CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> o.v LIMIT 2) n %s', outer_side, rest)
$$;
SELECT outer_side, is_batched(join_of(outer_side)) AS batched FROM (VALUES
	('SELECT g, v, random() FROM listed OFFSET 0'),
	('SELECT g, v FROM listed WHERE random() < 2'),
	('SELECT g, v FROM listed ORDER BY random() LIMIT 10'),
	('SELECT g, v FROM listed ORDER BY random()'),
	('SELECT g, v, random() FROM listed ORDER BY g OFFSET 0'),
	('SELECT g, v FROM listed FOR UPDATE'),
	('SELECT g, (array_agg(v))[1] AS v FROM (SELECT g, v FROM listed WHERE random() < 2) l GROUP BY g'),
	('SELECT l.g, l.v FROM listed l JOIN (SELECT g FROM listed WHERE random() < 2 OFFSET 0) a ON a.g = l.g'),
	('SELECT g, ARRAY[g, g, g]::vector AS v FROM generate_series(1, (9 * random())::integer) g OFFSET 0'),
	('SELECT l.g, l.v FROM listed l CROSS JOIN LATERAL generate_series(l.g, l.g + (9 * random())::integer) OFFSET 0'),
	('SELECT g, v FROM listed UNION ALL SELECT g, v FROM (SELECT g, v FROM listed ORDER BY random() LIMIT 3) l')) o(outer_side);
-- where not all rows are wanted, nothing is evaluated ahead that may raise an error
SELECT o.g, n.id FROM (SELECT g, v FROM listed WHERE g > 3 AND 100 / (g - 8) IS NOT NULL) o CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> o.v LIMIT 2) n LIMIT 4;
SELECT o.g, n.id FROM (SELECT g, v FROM listed WHERE g > 3 AND 100 / (g - 8) IS NOT NULL) o CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> o.v LIMIT 2) n;
SELECT outer_side, rest, is_batched(join_of(outer_side, rest)) AS batched FROM (VALUES
	('SELECT g, v FROM listed WHERE g > 3'),
	('SELECT g, v FROM listed WHERE 100 / g > 3'),
	('SELECT g, v FROM listed WHERE 100 / g > 3 ORDER BY g OFFSET 0'),
	('SELECT g, (v + v)::vector(3) AS v FROM listed OFFSET 0')) o(outer_side),
	(VALUES ('LIMIT 4'), ('ORDER BY n.id LIMIT 4'), ('LIMIT NULL'), ('OFFSET 4')) r(rest);
-- a query may stop early because of one that it is a part of
SELECT outer_side, is_batched(format('SELECT * FROM (%s) j LIMIT 4', join_of(outer_side, 'OFFSET 0'))) AS within,
	is_batched(format('SELECT count(*) FROM (%s) j LIMIT 4', join_of(outer_side, 'OFFSET 0'))) AS counted,
	is_batched(format('SELECT EXISTS (%s)', join_of(outer_side, 'WHERE n.id > 5'))) AS found,
	is_batched(format('WITH j AS MATERIALIZED (%s) SELECT * FROM j LIMIT 4', join_of(outer_side))) AS stored,
	is_batched(format('WITH j AS MATERIALIZED (%s) SELECT count(*) FROM j', join_of(outer_side))) AS read,
	is_batched(format('DECLARE c CURSOR FOR %s', join_of(outer_side))) AS cursor
FROM (VALUES ('SELECT g, v FROM listed WHERE g > 3'), ('SELECT g, v FROM listed WHERE 100 / g > 3')) o(outer_side);
DROP FUNCTION is_batched(text), join_of(text, text);

-- a filter that takes most rows away is evaluated ahead: for each row once
CREATE FUNCTION filtered_ahead(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *Rows (Filtered|Dropped) Ahead' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END $$;
CREATE FUNCTION joined_rows(filter text, rows integer = 200) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT g, n.id FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE %s ORDER BY i.v <-> q.v LIMIT 5) n WHERE g <= %s', filter, rows)
$$;
-- rows with and without it; true when they are the same
CREATE FUNCTION same_rows(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE with_batches text; without text;
BEGIN
	SET LOCAL pgwarp.knn_batch = on;
	EXECUTE format('SELECT string_agg(t::text, '' '' ORDER BY t::text) FROM (%s) t', query) INTO with_batches;
	SET LOCAL pgwarp.knn_batch = off;
	EXECUTE format('SELECT string_agg(t::text, '' '' ORDER BY t::text) FROM (%s) t', query) INTO without;
	RESET pgwarp.knn_batch;
	RETURN with_batches = without;
END $$;
SELECT filtered_ahead(joined_rows('part = 0'));
SELECT same_rows(joined_rows('part = 0'));
SELECT filtered_ahead(joined_rows('part IN (0, 1) AND (kind = 0 OR kind IS NULL)'));
SELECT same_rows(joined_rows('part IN (0, 1) AND (kind = 0 OR kind IS NULL)'));
-- one that lets most through isn't
SELECT filtered_ahead(joined_rows('part <> 0'));
-- nor one that depends on the outer row, on a subquery or on when it is evaluated
SELECT filtered_ahead(joined_rows('part = g % 40'));
SELECT filtered_ahead(joined_rows('part = (SELECT 3)'));
SELECT filtered_ahead(joined_rows('part = 0 AND random() >= 0'));
SELECT same_rows(joined_rows('part = g % 40'));
-- two scans of one index with different filters
SELECT same_rows('SELECT g, n.id AS a, m.id AS b FROM numbered q
	CROSS JOIN LATERAL (SELECT id FROM items i WHERE part = 0 ORDER BY i.v <-> q.v LIMIT 5) n
	CROSS JOIN LATERAL (SELECT id FROM items i WHERE part = 7 ORDER BY i.v <-> q.v LIMIT 2) m WHERE g <= 60');
-- versions of rows, in this transaction and before
BEGIN;
UPDATE items SET kind = kind + 1 WHERE id % 80 = 0;
DELETE FROM items WHERE id % 120 = 0;
SELECT same_rows(joined_rows('part = 0'));
SELECT same_rows(joined_rows('kind = 1 AND part = 0'));
SELECT filtered_ahead(joined_rows('part = 0'));
ROLLBACK;
SELECT same_rows(joined_rows('part = 0'));
-- one that may raise an error is the scan's, for the rows that it comes to
SELECT filtered_ahead(joined_rows('part = 0 AND 1000 / (240 - id) > -1000', 100));
SELECT same_rows(joined_rows('part = 0 AND 1000 / (240 - id) > -1000', 100));
SELECT count(*) FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 20 = 0 AND 1000 / (100 - id) > -5000 ORDER BY i.v <-> q.v LIMIT 5) n WHERE g <= 300;
-- too much to remember
SET work_mem = '64kB';
SELECT same_rows(joined_rows('part = 0'));
RESET work_mem;

-- errors belong to their row
SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (ARRAY[1 / (q.id - 4), 2, 3]::vector) LIMIT 3) n;
SELECT q.id, n.id FROM (SELECT * FROM asked ORDER BY id) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (ARRAY[1 / (q.id - 4), 2, 3]::vector) LIMIT 3) n LIMIT 4;
SELECT count(*) FROM (VALUES ('[1,2,3]'::vector), ('[1,2]')) q(v) CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 3) n;
SELECT n.id FROM (VALUES ('[1,2,3]'::vector), ('[1,2,3]'), ('[1,2,3]'), ('[1,2]')) q(v) CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n LIMIT 3;
-- of a LIMIT that may raise an error too
SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 6 / (4 - q.id)) n WHERE q.id < 3 ORDER BY 1, 2;
SELECT count(*) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 6 / (4 - q.id)) n WHERE q.id <> 3;
-- indexes of several dimensions under one join
CREATE TABLE long_items AS SELECT id, ARRAY[id, id, id, id, id]::vector(5) AS v FROM generate_series(1, 50) id;
CREATE INDEX ON long_items USING exact (v);
SELECT count(*) FROM (VALUES ('[1,2,3]'::vector), ('[4,5,6]'), ('[7,8,9]')) q(v)
	CROSS JOIN LATERAL (SELECT id FROM (SELECT id, v FROM items UNION ALL SELECT id, v FROM long_items) i ORDER BY i.v <-> q.v LIMIT 3) n;
DROP TABLE long_items;

-- an error ends the statement, whatever it is, where its row is joined: also one that would not come a second time
CREATE SEQUENCE calls;
CREATE FUNCTION fails_once(v vector, state text) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF nextval('calls') = 1 THEN RAISE EXCEPTION 'failed once' USING ERRCODE = state; END IF;
	RETURN v;
END $$;
CREATE FUNCTION passes_once(id integer, state text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF nextval('calls') = 300 THEN RAISE EXCEPTION 'failed once' USING ERRCODE = state; END IF;
	RETURN id % 40 = 0;
END $$;
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('calls', 1, false);
	EXECUTE query;
	RETURN 'done';
EXCEPTION WHEN OTHERS OR query_canceled THEN
	RETURN SQLSTATE;
END $$;
SELECT state, outcome(format('SELECT count(n.id) FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> fails_once(q.v, %L) LIMIT 3) n', state)) AS joined,
	outcome(format('SELECT (SELECT id FROM items i ORDER BY i.v <-> fails_once(q.v, %L) LIMIT 1) FROM asked q', state)) AS listed,
	outcome(format('SELECT id FROM asked q WHERE q.id < (SELECT id FROM items i ORDER BY i.v <-> fails_once(q.v, %L) LIMIT 1)', state)) AS compared,
	outcome(joined_rows(format('passes_once(id, %L)', state))) AS filtered
FROM unnest(ARRAY['57014', '57P01', '40001', '40P01', '53200', 'XX000', '22012']) state;
-- a time limit holds
CREATE FUNCTION slow(v vector) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM pg_sleep(0.1);
	RETURN v;
END $$;
CREATE FUNCTION is_slow(id integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM pg_sleep(0.02);
	RETURN id % 40 = 0;
END $$;
\set VERBOSITY terse
SET statement_timeout = '250ms';
SELECT count(n.id) FROM asked q, generate_series(1, 5), LATERAL (SELECT id FROM items i ORDER BY i.v <-> slow(q.v) LIMIT 3) n;
SELECT q.id, ARRAY(SELECT id FROM items i ORDER BY i.v <-> slow(q.v) LIMIT 3) FROM asked q, generate_series(1, 5);
SELECT count(*) FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE is_slow(id) ORDER BY i.v <-> q.v LIMIT 1) n WHERE g <= 20;
RESET statement_timeout;
\set VERBOSITY default
DROP FUNCTION slow(vector), is_slow(integer), fails_once(vector, text), passes_once(integer, text);
DROP SEQUENCE calls;

-- an outer side that parallel workers read
CREATE TABLE many (id integer, v vector(3)) WITH (parallel_workers = 2);
INSERT INTO many SELECT g, ARRAY[g, g, g]::vector FROM generate_series(1, 5000) g;
ANALYZE many;
SET seq_page_cost = 1;
SET enable_sort = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM (SELECT * FROM many WHERE id % 500 = 0) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> q.v LIMIT 3) n;
SELECT q.id, n.id FROM (SELECT * FROM many WHERE id % 500 = 0) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> q.v LIMIT 3) n ORDER BY 1, 2;
SET pgwarp.knn_batch = off;
SELECT q.id, n.id FROM (SELECT * FROM many WHERE id % 500 = 0) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE id % 40 = 0 ORDER BY i.v <-> q.v LIMIT 3) n ORDER BY 1, 2;
RESET pgwarp.knn_batch;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET enable_sort;
SET seq_page_cost = 1000;
DROP TABLE many;

-- prepared, with LIMIT as a parameter
SET plan_cache_mode = force_generic_plan;
PREPARE joined(bigint, real) AS SELECT count(*), min(n.d) >= 0 FROM asked q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT $1) n WHERE q.v <-> '[0,0,0]' > $2;
EXPLAIN (COSTS OFF) EXECUTE joined(3, 1);
EXECUTE joined(3, 1);
EXECUTE joined(200, 1);
EXECUTE joined(0, 1);
EXECUTE joined(NULL, 1);
-- the setting is older than the plan, or younger
SET pgwarp.knn_batch = off;
EXPLAIN (COSTS OFF) EXECUTE joined(3, 1);
EXECUTE joined(3, 1);
SELECT counts('EXECUTE joined(3, 1)');
RESET pgwarp.knn_batch;
SELECT counts('EXECUTE joined(3, 1)');
-- an index that goes, and comes back
DROP INDEX items_v;
EXPLAIN (COSTS OFF) EXECUTE joined(3, 1);
EXECUTE joined(3, 1);
CREATE INDEX items_v ON items USING exact (v);
EXPLAIN (COSTS OFF) EXECUTE joined(3, 1);
EXECUTE joined(3, 1);
RESET plan_cache_mode;

-- a cursor, read in pieces
BEGIN;
DECLARE joined_rows CURSOR FOR SELECT q.id, n.id FROM (SELECT * FROM asked WHERE v IS NOT NULL ORDER BY id) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 2) n;
FETCH 3 FROM joined_rows;
DELETE FROM items WHERE id = 998;
FETCH ALL FROM joined_rows;
ROLLBACK;
-- subtransactions that end below it, in which it was read, or in which others searched
BEGIN;
DECLARE joined_rows CURSOR FOR SELECT q.g, n.id FROM listed q CROSS JOIN LATERAL (SELECT id FROM items i WHERE part = 0 ORDER BY i.v <-> q.v LIMIT 1) n;
FETCH 1 FROM joined_rows;
SAVEPOINT s;
FETCH 2 FROM joined_rows;
ROLLBACK TO s;
FETCH 2 FROM joined_rows;
SAVEPOINT t;
DELETE FROM items WHERE part = 0;
SELECT count(n.id) FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE part = 0 ORDER BY i.v <-> q.v LIMIT 1) n;
SELECT 1 / 0;
ROLLBACK TO t;
FETCH 2 FROM joined_rows;
MOVE 1000 FROM joined_rows;
SAVEPOINT u;
SELECT count(n.id) FROM numbered q CROSS JOIN LATERAL (SELECT 1 / (id - 2) AS id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n;
ROLLBACK TO u;
FETCH 2 FROM joined_rows;
SELECT count(n.id) FROM numbered q CROSS JOIN LATERAL (SELECT id FROM items i WHERE part = 0 ORDER BY i.v <-> q.v LIMIT 1) n;
FETCH 2 FROM joined_rows;
COMMIT;
-- settings that change between rows
CREATE TABLE clustered AS SELECT i AS id, ARRAY[i % 40, i % 40, i]::vector(3) AS v FROM generate_series(1, 2000) i;
CREATE INDEX ON clustered USING ivfadc (v) WITH (lists = 40);
ANALYZE clustered;
CREATE FUNCTION nearest(place vector) RETURNS integer[] LANGUAGE sql AS 'SELECT array_agg(id ORDER BY d, id) FROM (SELECT id, v <-> place AS d FROM clustered ORDER BY 2, id LIMIT 8) n';
BEGIN;
SET LOCAL pgwarp.ivfadc_probes = 1;
DECLARE joined_rows CURSOR FOR SELECT q.g, n.ids = nearest(q.v) AS all_found FROM listed q
	CROSS JOIN LATERAL (SELECT array_agg(id ORDER BY d, id) AS ids FROM (SELECT id, c.v <-> q.v AS d FROM clustered c ORDER BY c.v <-> q.v LIMIT 8) s) n;
MOVE 100 FROM joined_rows;
SET LOCAL pgwarp.ivfadc_probes = 40;
CREATE TEMPORARY TABLE found (g integer, all_found boolean);
DO $$
DECLARE rows CURSOR FOR SELECT 1; found record;
BEGIN
	rows := 'joined_rows';
	FOR i IN 1 .. 300 LOOP
		FETCH rows INTO found;
		INSERT INTO found VALUES (found.g, found.all_found);
	END LOOP;
END $$;
SELECT count(*), count(*) FILTER (WHERE all_found) FROM found;
COMMIT;
DROP TABLE clustered, found;
DROP FUNCTION nearest(vector);

-- functions that search the same index, in the join, below it and above it, and fail there
CREATE FUNCTION searches(place vector, depth integer) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	IF depth = 0 THEN
		IF (place::real[])[1] > 3 THEN RAISE EXCEPTION 'enough'; END IF;
		RETURN 0;
	END IF;
	RETURN (SELECT sum(n.id + searches(q.v, depth - 1)) FROM (SELECT * FROM numbered WHERE g < 12) q CROSS JOIN LATERAL (SELECT id FROM items i WHERE part = 0 ORDER BY i.v <-> q.v LIMIT 2) n);
EXCEPTION WHEN raise_exception THEN
	RETURN (SELECT sum(id) FROM (SELECT id FROM items ORDER BY v <-> place LIMIT 3) n);
END $$;
SELECT same_rows('SELECT q.g, n.id, n.below, searches(q.v, 1) AS above FROM (SELECT g, v, searches(v, 1) AS at FROM numbered LIMIT 12) q
	CROSS JOIN LATERAL (SELECT id, searches(i.v, 1) AS below FROM items i WHERE searches(i.v, 1) > 0 ORDER BY i.v <-> q.v LIMIT 2) n');
SELECT same_rows('SELECT q.g, searches(q.v, 2) AS nested FROM numbered q WHERE g < 6');
DROP FUNCTION searches(vector, integer);

-- what serializable transactions are to know was read
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(n.id) FROM (SELECT * FROM numbered LIMIT 3) q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n;
SELECT relation::regclass, mode FROM pg_locks WHERE mode = 'SIReadLock' AND relation = 'items_v'::regclass;
COMMIT;

-- rows locked
BEGIN;
SELECT q.id, n.id FROM asked q CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 1) n WHERE q.v IS NOT NULL ORDER BY 1 FOR UPDATE OF q;
ROLLBACK;

-- row security
CREATE ROLE knn_batch_reader;
GRANT SELECT ON items, asked, numbered TO knn_batch_reader;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
-- rows that the policy hides never reach a function that would tell of them
CREATE FUNCTION tells(id integer) RETURNS boolean LANGUAGE plpgsql STABLE COST 0.1 AS $$
BEGIN
	IF id % 2 = 0 THEN RAISE WARNING 'row %', id; END IF;
	RETURN id % 20 = 1;
END $$;
CREATE POLICY odd ON items FOR SELECT TO knn_batch_reader USING (id % 2 = 1);
SET ROLE knn_batch_reader;
SELECT q.id, array_agg(n.id ORDER BY n.d, n.id) FROM asked q CROSS JOIN LATERAL (SELECT id, i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT 3) n WHERE q.v IS NOT NULL GROUP BY q.id ORDER BY q.id;
SELECT filtered_ahead(joined_rows('part < 10'));
SELECT same_rows(joined_rows('part < 10'));
SELECT filtered_ahead(joined_rows('tells(id)'));
SELECT same_rows(joined_rows('tells(id)'));
RESET ROLE;
-- a policy that may be evaluated ahead, beside conditions that may and may not
DROP POLICY odd ON items;
CREATE POLICY few ON items FOR SELECT TO knn_batch_reader USING (part IN (1, 21, 23));
SET ROLE knn_batch_reader;
SELECT filtered_ahead(joined_rows('kind < 4'));
SELECT same_rows(joined_rows('kind < 4'));
SELECT filtered_ahead(joined_rows('tells(id)'));
SELECT same_rows(joined_rows('tells(id)'));
RESET ROLE;
-- one generic plan for several roles
SET plan_cache_mode = force_generic_plan;
PREPARE found_by_role AS SELECT current_user = session_user AS owner, count(*), count(DISTINCT n.part) FROM asked q CROSS JOIN LATERAL (SELECT part FROM items i ORDER BY i.v <-> q.v LIMIT 50) n;
EXECUTE found_by_role;
SET ROLE knn_batch_reader;
EXECUTE found_by_role;
RESET ROLE;
EXECUTE found_by_role;
ALTER TABLE items FORCE ROW LEVEL SECURITY;
SET row_security = off;
EXECUTE found_by_role;
SET ROLE knn_batch_reader;
EXECUTE found_by_role;
RESET ROLE;
RESET row_security;
RESET plan_cache_mode;
DEALLOCATE found_by_role;
DROP FUNCTION tells(integer);
DROP FUNCTION filtered_ahead(text), joined_rows(text, integer), same_rows(text), outcome(text);
DROP FUNCTION counts(text);
DROP VIEW numbered;
DROP TABLE items, asked, listed;
DROP ROLE knn_batch_reader;
