-- Columns to filter by: their types, their place, what CREATE INDEX refuses, and their values through inserts, updates,
-- VACUUM and merges
SET client_min_messages = warning;
SET enable_seqscan = off;
SET jit = off;
SET pgwarp.verify_results = on;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN small AS integer CHECK (VALUE < 1000);
CREATE TABLE items (id integer, v vector(4), tenant integer, price numeric, name text, flag boolean, m mood, s small, h halfvec(4), box box);
SELECT setseed(0.25);
INSERT INTO items SELECT i, CASE WHEN i % 50 > 0 THEN ARRAY[random(), random(), random(), i % 7]::vector END, i % 10, i / 7.0,
	'name ' || i % 13, CASE WHEN i % 11 > 0 THEN i % 3 = 0 END, (ARRAY['sad', 'ok', 'happy'])[i % 3 + 1]::mood, i % 5, ARRAY[i, 1, 2, 3]::halfvec
	FROM generate_series(1, 500) i;
-- the operator classes are valid
SELECT a.amname, amvalidate(o.oid) FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod WHERE o.opcname = 'filter_ops' ORDER BY a.oid;
SELECT count(*), count(DISTINCT (amoplefttype, amoprighttype)) FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod
	WHERE f.opfname = 'filter_ops' AND a.amname = 'graph';

-- The nearest ids under a condition, from the index, with its keys; `t` if a sequential scan gives the same distances
CREATE FUNCTION nearest(condition text, k integer DEFAULT 4) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	statement text := 'SELECT array_agg(id), array_agg(d) FROM (SELECT id, v <-> ''[.5,.5,.5,3]'' AS d FROM items WHERE ' || condition || ' ORDER BY d LIMIT ' || k || ') s';
	ids integer[];
	found float8[];
	true_ids integer[];
	truth float8[];
	line text;
	key text := 'no key';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		IF line ~ 'Index Cond' THEN key := regexp_replace(line, '^ *Index Cond: ', ''); END IF;
	END LOOP;
	EXECUTE statement INTO ids, found;
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'on', true);
	EXECUTE statement INTO true_ids, truth;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_seqscan', 'off', true);
	RETURN concat_ws(' ', key, ids, found IS NOT DISTINCT FROM truth AND (SELECT bool_and(i = ANY (true_ids)) FROM unnest(ids) i) IS NOT FALSE);
END $$;

-- the vector at any position
CREATE INDEX items_index ON items USING exact (v, tenant, price);
SELECT nearest('tenant = 3 AND price < 50');
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact (tenant, v, price);
SELECT nearest('tenant = 3 AND price < 50');
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact (tenant, price, v) INCLUDE (name);
SELECT nearest('tenant = 3 AND price < 50');
SELECT id, name FROM items WHERE tenant = 3 AND price < 50 ORDER BY v <-> '[.5,.5,.5,3]' LIMIT 2;
SELECT live_rows FROM pgwarp_check('items_index', true);
SELECT pg_get_indexdef('items_index'::regclass);
SELECT count(*) FROM pgwarp_recall('items_index', 3, 5);
SELECT count(*) FROM knn_search('items_index', ARRAY['[.5,.5,.5,3]'::vector], 3);
DROP INDEX items_index;

-- expressions, domains, partial indexes
CREATE INDEX items_index ON items USING exact ((tenant + 1), (lower(name)), s, (v::vector(4))) WHERE flag;
SELECT nearest('flag AND tenant + 1 = 4 AND lower(name) = ''name 4''');
SELECT nearest('flag AND s = 3');
SELECT live_rows FROM pgwarp_check('items_index', true);
DROP INDEX items_index;

-- refused
CREATE INDEX items_index ON items USING exact (tenant);
CREATE INDEX items_index ON items USING exact (tenant, price);
CREATE INDEX items_index ON items USING exact (v filter_ops);
CREATE INDEX items_index ON items USING exact (tenant, v filter_ops);
CREATE INDEX items_index ON items USING exact (v, tenant, h);
CREATE INDEX items_index ON items USING exact (v, box);
CREATE INDEX items_index ON items USING exact (v, (ARRAY[tenant]));
CREATE INDEX items_index ON items USING exact (v, tenant) WITH (vectors = half, tenant = 1);
CREATE INDEX items_index ON items USING matchcount (name, (name || 'x'));
CREATE INDEX items_index ON items USING exact (v, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant, tenant);
-- the most there can be
CREATE INDEX items_index ON items USING exact (v, tenant, price, name, flag, m, s, id, (id + 1), (id + 2), (id + 3), (id + 4), (id + 5), (id + 6), (id + 7));
SELECT nearest('id + 7 < 100 AND m = ''happy'' AND s >= 3');
DROP INDEX items_index;
-- a text to filter by needs its class where texts have an order of their own
CREATE INDEX items_index ON items USING matchcount (name, name filter_ops, tenant);
SELECT count(*), min(name <~~> 'name 7') FROM (SELECT name FROM items WHERE tenant = 4 ORDER BY name <~~> 'name 7' LIMIT 3) s;
DROP INDEX items_index;

-- values through all changes, with rows whose vector is NULL
CREATE INDEX items_index ON items USING exact (v, tenant, price, name, flag, m);
SELECT nearest('tenant = 0 AND id > 300', 60);
INSERT INTO items SELECT i, CASE WHEN i % 5 > 0 THEN ARRAY[random(), random(), random(), i % 7]::vector END, i % 10, NULL, 'late', true, 'sad' FROM generate_series(501, 540) i;
SELECT nearest('price IS NULL');
SELECT nearest('price IS NULL AND tenant = 0', 20);
SELECT nearest('name = ''late'' AND price IS NOT NULL');
SELECT nearest('tenant = 0 AND m = ''sad''', 100);
UPDATE items SET price = id, flag = NULL WHERE tenant = 3;
DELETE FROM items WHERE id % 4 = 0;
SELECT nearest('tenant = 3 AND price > 100 AND flag IS NULL');
SELECT live_rows FROM pgwarp_check('items_index', true);
VACUUM items;
SELECT nearest('tenant = 3 AND price > 100 AND flag IS NULL');
SELECT nearest('tenant = 5 AND price < 40', 100);
INSERT INTO items SELECT i, ARRAY[random(), random(), random(), i % 7]::vector, i % 10, i, 'later', NULL, 'ok' FROM generate_series(541, 560) i;
CALL pgwarp_merge('items_index');
SELECT nearest('name = ''later''', 30);
SELECT nearest('flag IS NULL AND m > ''sad''', 30);
SELECT live_rows, dead_rows FROM pgwarp_check('items_index', true);
REINDEX INDEX items_index;
SELECT nearest('name = ''later''', 30);
REINDEX INDEX CONCURRENTLY items_index;
SELECT nearest('name = ''later'' AND tenant < 3', 30);
SELECT live_rows, dead_rows FROM pgwarp_check('items_index', true);
SELECT options FROM pgwarp_index_info('items_index');
-- labels of an enum are compared in the order that they have now
ALTER TYPE mood ADD VALUE 'gloomy' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'content' BEFORE 'happy';
UPDATE items SET m = 'gloomy' WHERE id % 9 = 0;
UPDATE items SET m = 'content' WHERE id % 9 = 1;
SELECT nearest('m < ''sad''');
SELECT nearest('m >= ''content''');
SELECT nearest('m > ''happy''');
-- unlogged and temporary
CREATE TEMP TABLE t AS SELECT * FROM items;
CREATE INDEX t_index ON t USING graph (v, tenant);
SELECT count(*) FROM (SELECT id FROM t WHERE tenant = 3 ORDER BY v <-> '[.5,.5,.5,3]' LIMIT 10) s;
-- an empty table
TRUNCATE items;
SELECT nearest('tenant = 3');
INSERT INTO items VALUES (1, '[1,2,3,4]', 3, 1);
SELECT nearest('tenant = 3');
SELECT nearest('tenant = 4');
DROP TABLE items, t;
DROP FUNCTION nearest;
DROP TYPE mood;
DROP DOMAIN small;
