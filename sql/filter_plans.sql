-- Plans of conditions on columns of an index: what becomes a key of the scan, what stays above it, and that unordered scans are
-- never chosen
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_memoize = off;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET timezone = 'UTC';
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE items (id integer, v vector(3), tenant integer, price numeric, name text, code varchar, flag boolean, made timestamptz, day date, rate real, m mood, ip inet);
INSERT INTO items SELECT i, ARRAY[i % 10, i % 100, i]::vector, i % 10, i / 7.0, 'n' || i % 5, 'c' || i % 5, i % 2 = 0, '2020-01-01'::timestamptz + i * interval '1 hour', '2020-01-01'::date + i % 30,
	i / 4.0, (ARRAY['sad', 'ok', 'happy'])[i % 3 + 1]::mood, ('10.0.0.' || i % 9)::inet FROM generate_series(1, 2000) i;
CREATE TABLE queries (id integer, q vector(3), tenant integer);
INSERT INTO queries SELECT i, ARRAY[i, i, i]::vector, i % 10 FROM generate_series(1, 50) i;
CREATE INDEX items_v ON items USING graph (v, tenant, price, name, code, flag, made, day, rate, m, ip);
ANALYZE items, queries;

-- the conditions of the nodes of a plan
CREATE FUNCTION plan(condition text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT id FROM items WHERE ' || condition || ' ORDER BY v <-> ''[1,2,3]'' LIMIT 3' LOOP
		IF line ~ 'Index Cond|Filter:|Seq Scan|Sort' THEN RETURN NEXT regexp_replace(ltrim(line, ' '), '\$0|\(InitPlan 1\).col1', 'result'); END IF;
	END LOOP;
END $$;
SELECT plan('tenant = 3');
SELECT plan('3 < tenant AND tenant <= 5::smallint');
SELECT plan('price BETWEEN 10 AND 20.5');
SELECT plan('tenant = 3 AND price > 10');
SELECT plan('tenant IN (1, 2, 7)');
SELECT plan('tenant = ANY (ARRAY[1, NULL]) AND price < 30 AND name IN (''n1'', ''n2'')');
SELECT plan('tenant = 1 OR tenant = 2 OR 7 = tenant');
SELECT plan('(tenant = 1 OR tenant = 2) AND (name = ''n1'' OR name = ''n3'')');
SELECT plan('flag');
SELECT plan('NOT flag AND tenant = 1');
SELECT plan('flag IS TRUE');
SELECT plan('flag = false AND price IS NULL');
SELECT plan('price IS NOT NULL AND tenant IS NULL');
SELECT plan('name = ''n1'' AND code = ''c1''');
SELECT plan('m > ''sad''');
SELECT plan('made >= ''2020-02-01'' AND day < ''2020-01-20''');
SELECT plan('rate < 17.5 AND ip = ''10.0.0.3''');
SELECT plan('tenant = (SELECT 3)');
-- partly, or not at all
SELECT plan('tenant = 3 AND id > 7');
SELECT plan('tenant = 3 OR price < 10');
SELECT plan('tenant <> 3');
SELECT plan('tenant NOT IN (1, 2)');
SELECT plan('flag IS NOT TRUE');
SELECT plan('name > ''n1''');
SELECT plan('name = ''n1'' COLLATE "POSIX"');
SELECT plan('tenant = random()::integer');
SELECT plan('tenant = 3.5');
SELECT plan('day > timestamptz ''2020-01-01''');
SELECT plan('(tenant, price) > (3, 10)');
SELECT plan('tenant = id');
SELECT plan('ip << ''10.0.0.0/8''');
-- the column as another type that it is binary coercible to: the key's own operator decides
SELECT plan('tenant::oid = 3::oid');
SELECT id FROM items WHERE tenant::oid = 3::oid ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE code::char(5) = 'c1'::char(5) ORDER BY v <-> '[1,2,3]' LIMIT 3;

-- NULLs and contradictions: no row, and no search
SET client_min_messages = debug1;
SELECT id FROM items WHERE tenant = 3 AND tenant = 4 ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE tenant = (SELECT NULL::integer) ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE tenant = ANY ((SELECT ARRAY[NULL::integer])::integer[]) ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE price < 10 AND price > (SELECT 20) ORDER BY v <-> '[1,2,3]' LIMIT 3;
SET client_min_messages = warning;

-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE nearest(integer, numeric, integer[]) AS SELECT id FROM items WHERE tenant = $1 AND price < $2 AND tenant = ANY ($3) ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) EXECUTE nearest(3, 50, '{3,4}');
EXECUTE nearest(3, 50, '{3,4}');
EXECUTE nearest(4, 50, '{3,4}');
EXECUTE nearest(4, NULL, '{3,4}');
EXECUTE nearest(5, 50, '{3,4}');
EXECUTE nearest(3, 50, NULL);
RESET plan_cache_mode;

-- values of an outer row
EXPLAIN (COSTS OFF) SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND price < 100 ORDER BY v <-> q.q LIMIT 2) i;
SELECT q.id, i.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items WHERE tenant = q.tenant AND price < 100 ORDER BY v <-> q.q LIMIT 2) i WHERE q.id < 4;
EXPLAIN (COSTS OFF) SELECT id, (SELECT id FROM items WHERE tenant = q.tenant ORDER BY v <-> q.q LIMIT 1) FROM queries q;

-- unordered scans and joins
EXPLAIN (COSTS OFF) SELECT count(*) FROM items WHERE tenant = 3;
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN items i USING (tenant) WHERE q.id = 3;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM queries q JOIN items i USING (tenant) WHERE i.price < 5;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(*) FROM items WHERE tenant = 3 AND price < 100;

-- a cursor goes on past the first search
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items WHERE tenant = 3 ORDER BY v <-> '[1,2,3]';
FETCH 2 FROM c;
MOVE 190 IN c;
FETCH ALL FROM c;
COMMIT;

-- partitions, some without the columns
CREATE TABLE parts (id integer, v vector(3), tenant integer, price numeric) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (2000) TO (3000);
INSERT INTO parts SELECT i, ARRAY[i % 10, i % 100, i]::vector, i % 10, i / 7.0 FROM generate_series(1, 2999) i;
CREATE INDEX ON parts_1 USING exact (v, tenant);
CREATE INDEX ON parts_2 USING exact (tenant, v);
CREATE INDEX ON parts_3 USING exact (v);
ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE tenant = 3 AND price < 400 ORDER BY v <-> '[1,2,1000]' LIMIT 4;
SELECT id FROM parts WHERE tenant = 3 AND price < 400 ORDER BY v <-> '[1,2,1000]' LIMIT 4;
DROP TABLE items, queries, parts;
DROP FUNCTION plan;
DROP TYPE mood;
