SET client_min_messages = warning;
SET jit = off;

CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || statement;
END $$;
CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(3));
INSERT INTO items SELECT i, i % 100, ARRAY[i % 17, i % 101, i % 1009]::vector FROM generate_series(1, 20000) i;
CREATE INDEX items_exact ON items USING exact (v);
VACUUM ANALYZE items;

-- nearest rows of a big table: the index
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- an unselective filter: still
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind < 50 ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- a selective primary key: that one
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE id = 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE id BETWEEN 5 AND 20 ORDER BY v <-> '[1,2,3]' LIMIT 10;
-- no LIMIT: a sort
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]';
-- no order that the index gives
EXPLAIN (COSTS OFF) SELECT count(*) FROM items;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <=> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]' DESC LIMIT 10;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM items WHERE v IS NOT NULL;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE nearest(vector, bigint) AS SELECT id FROM items ORDER BY v <-> $1 LIMIT $2;
EXPLAIN (COSTS OFF) EXECUTE nearest('[1,2,3]', 10);
EXECUTE nearest('[1,2,3]', 0);
SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 10 OFFSET 5) s;
RESET plan_cache_mode;
-- a lateral join
EXPLAIN (COSTS OFF) SELECT q.id, n.id FROM (SELECT * FROM items WHERE id < 5) q
	CROSS JOIN LATERAL (SELECT id FROM items ORDER BY items.v <-> q.v LIMIT 3) n;
DROP INDEX items_exact;

CREATE INDEX items_ivfadc ON items USING ivfadc (v);
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE id = 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]';
DROP INDEX items_ivfadc;

CREATE INDEX items_pqtree ON items USING pqtree (v);
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE id = 5 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]';
DROP INDEX items_pqtree;

-- a partial index
CREATE INDEX items_partial ON items USING exact (v) WHERE kind < 50;
ANALYZE items;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind < 50 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 10;
DROP TABLE items;

-- a tiny table
CREATE TABLE tiny (id integer, v vector(3));
INSERT INTO tiny SELECT i, ARRAY[i, i, i]::vector FROM generate_series(1, 20) i;
CREATE INDEX ON tiny USING exact (v);
ANALYZE tiny;
EXPLAIN (COSTS OFF) SELECT id FROM tiny ORDER BY v <-> '[1,2,3]' LIMIT 3;
DROP TABLE tiny;

-- partitions
CREATE TABLE parts (id integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (20000);
INSERT INTO parts SELECT i, ARRAY[i % 17, i % 101, i % 1009]::vector FROM generate_series(0, 19999) i;
CREATE INDEX ON parts USING exact (v);
VACUUM ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT id FROM parts ORDER BY v <-> '[1,2,3]' LIMIT 10;
SET pgwarp.verify_results = on;
CREATE TABLE got AS SELECT id, v <-> '[1,2,3]' AS d FROM parts ORDER BY v <-> '[1,2,3]' LIMIT 25;
SET enable_indexscan = off;
CREATE TABLE truth AS SELECT id, v <-> '[1,2,3]' AS d FROM parts ORDER BY v <-> '[1,2,3]' LIMIT 25;
RESET enable_indexscan;
SELECT (SELECT array_agg(d ORDER BY d) FROM got) = (SELECT array_agg(d ORDER BY d) FROM truth) AS same;
DROP TABLE got, truth, parts;

-- filters: the index, the table or the filter's own index, whichever is read faster
CREATE TABLE small (id integer, kind integer, v vector(3));
INSERT INTO small SELECT i, i % 50, ARRAY[i % 17, i % 101, i % 1009]::vector FROM generate_series(1, 10000) i;
CREATE INDEX ON small USING exact (v);
VACUUM ANALYZE small;
EXPLAIN (COSTS OFF) SELECT id FROM small WHERE kind = 3 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM small WHERE kind < 25 ORDER BY v <-> '[1,2,3]' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM small WHERE kind < 25 ORDER BY v <-> '[1,2,3]' LIMIT 100;
EXPLAIN (COSTS OFF) SELECT id FROM small ORDER BY v <-> '[1,2,3]' LIMIT 100;
DROP TABLE small;
CREATE TABLE wide (id integer, kind integer, v vector(384));
INSERT INTO wide SELECT i, i % 400, array_fill(i::real, ARRAY[384])::vector FROM generate_series(1, 4000) i;
CREATE INDEX wide_v ON wide USING exact (v);
VACUUM ANALYZE wide;
SELECT array_fill(7::real, ARRAY[384])::vector AS query \gset
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM wide WHERE kind < 4 ORDER BY v <-> %L LIMIT 10', :'query')) line;
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM wide WHERE kind < 200 ORDER BY v <-> %L LIMIT 10', :'query')) line;
CREATE INDEX wide_kind ON wide (kind);
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM wide WHERE kind = 3 ORDER BY v <-> %L LIMIT 10', :'query')) line;
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM wide WHERE kind < 200 ORDER BY v <-> %L LIMIT 10', :'query')) line;
DROP INDEX wide_v;
CREATE INDEX wide_v ON wide USING graph (v);
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM wide WHERE kind = 3 ORDER BY v <-> %L LIMIT 10', :'query')) line;
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM wide WHERE kind < 200 ORDER BY v <-> %L LIMIT 10', :'query')) line;
-- vectors beside the table, whose pages the planner doesn't count: still the index
CREATE TABLE toasted (id integer, v vector(1536));
INSERT INTO toasted SELECT i, array_fill(i::real, ARRAY[1536])::vector FROM generate_series(1, 2000) i;
CREATE INDEX ON toasted USING exact (v);
VACUUM ANALYZE toasted;
SELECT regexp_replace(line, '\[.*\]', '...') AS plan FROM plan_of(format('SELECT id FROM toasted ORDER BY v <-> %L LIMIT 10', array_fill(7::real, ARRAY[1536])::vector)) line;
DROP TABLE wide, toasted;

-- many indexes: a plan takes no longer than among as many of PostgreSQL's own, on any machine
CREATE TABLE many (id integer, v vector(3));
INSERT INTO many SELECT i, ARRAY[i, i, i]::vector FROM generate_series(1, 2000) i;
CREATE TABLE many_btree AS SELECT * FROM many;
DO $$ BEGIN
	FOR i IN 1..500 LOOP
		EXECUTE format('CREATE INDEX ON many USING exact (v) WHERE id > %s', 2000 + i);
		EXECUTE format('CREATE INDEX ON many_btree USING btree (v) WHERE id > %s', 2000 + i);
	END LOOP;
END $$;
CREATE FUNCTION planning_time(statement text) RETURNS double precision AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (SUMMARY ON, FORMAT JSON) ' || statement INTO plan;
	RETURN (plan->0->>'Planning Time')::double precision;
END
$$ LANGUAGE plpgsql;
-- The shortest of several times, taken in turn, is one without other work between.
SELECT min(own) > 0 AS planned, min(own) < 5 * min(btree) AS planned_fast FROM generate_series(1, 7) i, LATERAL (SELECT
	planning_time(format($$SELECT id FROM many WHERE id > %s ORDER BY v <-> '[1,2,3]' LIMIT 10$$, 3000 + i)) AS own,
	planning_time(format($$SELECT id FROM many_btree WHERE id > %s ORDER BY v LIMIT 10$$, 3000 + i)) AS btree OFFSET 0) s;
DROP FUNCTION planning_time, plan_of;
DROP TABLE many, many_btree;

-- of two indexes the one that keeps vectors: the results of the other are ranked by rows of the table
CREATE TABLE twice_indexed AS SELECT i AS id, ARRAY[i % 61, i % 53, i % 47, i % 43, i % 41, i % 37, i % 31, i % 29]::vector(8) AS v FROM generate_series(1, 3000) i;
CREATE INDEX twice_full ON twice_indexed USING graph (v);
CREATE INDEX twice_bits ON twice_indexed USING graph (v) WITH (vectors = bits);
VACUUM ANALYZE twice_indexed;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM twice_indexed ORDER BY v <-> '[1,2,3,4,5,6,7,8]' LIMIT 10;
RESET enable_seqscan;
DROP TABLE twice_indexed;
