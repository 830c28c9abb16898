-- Random conditions on columns of all types, with NULLs, in rows of builds, delta rows and deleted rows: `exact` gives what a
-- sequential scan gives; other methods give as many rows as pass, in order, and nearly all of the nearest ones
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TYPE level AS ENUM ('none', 'low', 'middle', 'high');
CREATE TABLE items (id integer, v vector(8), i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric, b boolean,
	d date, ts timestamp, tz timestamptz, o oid, e level, u uuid, t text, vc varchar(20), bc char(10), ip inet);
CREATE FUNCTION add_items(first integer, last integer) RETURNS void LANGUAGE sql AS $$
	-- the first part of the vector tells the row's group, with which i4 and t are correlated
	INSERT INTO items SELECT i, CASE WHEN i % 97 > 0 THEN ARRAY[i % 6, random(), random(), random(), random(), random(), random(), random()]::vector END,
		i % 5, i % 6 * 100 + i % 3, i * 10000000000, (random() * 10)::real, CASE i % 40 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE random() - .5 END,
		CASE i % 40 WHEN 2 THEN 'NaN' ELSE (i % 100)::numeric + CASE WHEN i % 2 = 0 THEN 1e-25 ELSE 0 END END, i % 7 = 0,
		DATE '2020-01-01' + i % 50, TIMESTAMP '2020-01-01' + i % 9 * INTERVAL '1 hour', TIMESTAMPTZ '2020-01-01 00:00+00' + i * INTERVAL '1 day',
		4000000000 + i % 3, (ARRAY['none', 'low', 'middle', 'high'])[i % 4 + 1]::level, ('00000000-0000-0000-0000-' || lpad((i % 20)::text, 12, '0'))::uuid,
		'text ' || i % 6, 'varchar ' || i % 30, 'char ' || i % 4, ('10.0.' || i % 8 || '.1')::inet
		FROM generate_series(first, last) i;
$$;
SELECT setseed(0.5);
SELECT add_items(1, 1200);
UPDATE items SET i2 = NULL, e = NULL, n = NULL WHERE id % 10 = 0;
UPDATE items SET i4 = NULL, t = NULL, b = NULL WHERE id % 13 = 0;
UPDATE items SET f8 = NULL, ip = NULL, d = NULL, u = NULL WHERE id % 9 = 0;
ANALYZE items;

-- a condition on a column: with a value of some row, or with NULL
CREATE FUNCTION condition(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'items'::regclass AND attname = name);
	ordered boolean := kind NOT IN ('text', 'character varying', 'character', 'inet');
	choice integer := floor(random() * 10);
	samples text[];
BEGIN
	IF kind = 'character' THEN kind := 'bpchar'; END IF;
	EXECUTE format('SELECT array_agg(format(''%%L'', x) || ''::%s'') FROM (SELECT %I AS x FROM items WHERE %2$I IS NOT NULL ORDER BY random() LIMIT 3) s', kind, name) INTO samples;
	IF kind = 'boolean' AND choice < 3 THEN RETURN (ARRAY['b', 'NOT b', 'b IS TRUE'])[choice + 1]; END IF;
	CASE
		WHEN choice = 0 THEN RETURN name || ' IS NULL';
		WHEN choice = 1 THEN RETURN name || ' IS NOT NULL';
		WHEN choice = 2 THEN RETURN name || ' IN (' || array_to_string(samples, ', ') || ')';
		WHEN choice = 3 AND kind <> 'boolean' THEN RETURN '(' || name || ' = ' || samples[1] || ' OR ' || name || ' = ' || samples[2] || ')';
		WHEN ordered AND choice < 9 THEN RETURN name || ' ' || (ARRAY['<', '<=', '>=', '>', '<='])[greatest(choice - 3, 1)] || ' ' || samples[1];
		ELSE RETURN name || ' = ' || samples[1];
	END CASE;
END $$;
CREATE FUNCTION conditions(names text[]) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(condition(c), ' AND ') FROM (SELECT c FROM unnest(names) c ORDER BY random() LIMIT 1 + floor(random() * 4)::integer) s
$$;

-- Searches with random conditions. wrong: lists with rows that don't pass, too few rows, or in another order; missed: those of an
-- exact index that are not the nearest; recall: of the nearest rows; filters: plans that filter above the index
CREATE FUNCTION searches(names text[], most integer, exact boolean, OUT done integer, OUT wrong integer, OUT missed integer, OUT recall boolean, OUT filters integer) LANGUAGE plpgsql AS $$
DECLARE
	statement text;
	query text;
	k integer;
	found float8[];
	ids integer[];
	truth float8[];
	true_ids integer[];
	line text;
	hits bigint := 0;
	hoped bigint := 0;
BEGIN
	done := 0; wrong := 0; missed := 0; filters := 0;
	WHILE done < most LOOP
		done := done + 1;
		k := (ARRAY[1, 10, 10, 100, 2000])[1 + done % 5];
		query := format('[%s,.5,.5,.5,.5,.5,.5,%s]', done % 6, round(random()::numeric, 3));
		statement := format('SELECT array_agg(d), array_agg(id) FROM (SELECT id, v <-> %L AS d FROM items WHERE %s ORDER BY v <-> %1$L LIMIT %3$s) s', query, conditions(names), k);
		SET LOCAL enable_seqscan = off;
		FOR line IN EXECUTE 'EXPLAIN ' || statement LOOP
			IF line ~ 'Filter|Seq Scan' THEN filters := filters + 1; RAISE NOTICE '%', statement; EXIT; END IF;
		END LOOP;
		EXECUTE statement INTO found, ids;
		SET LOCAL enable_seqscan = on;
		SET LOCAL enable_indexscan = off;
		EXECUTE statement INTO truth, true_ids;
		SET LOCAL enable_indexscan = on;
		hits := hits + (SELECT count(*) FROM unnest(ids) i WHERE i = ANY (true_ids));
		hoped := hoped + coalesce(cardinality(true_ids), 0);
		IF cardinality(found) IS DISTINCT FROM cardinality(truth)
			OR found IS DISTINCT FROM (SELECT array_agg(f ORDER BY f) FROM unnest(found) f)
			OR cardinality(ids) <> (SELECT count(DISTINCT i) FROM unnest(ids) i)
		THEN wrong := wrong + 1; RAISE NOTICE '% found % of %', statement, cardinality(found), cardinality(truth); END IF;
		IF exact AND found IS DISTINCT FROM truth THEN missed := missed + 1; RAISE NOTICE 'missed: %', statement; END IF;
	END LOOP;
	recall := hits >= hoped * .95;
END $$;
SET client_min_messages = notice;

CREATE INDEX items_index ON items USING exact (v, i2, i4, i8, f4, f8, n, b, d, ts, tz, o, e, u, t, vc);
SELECT * FROM searches('{i2,i4,i8,f4,f8,n,b,d,ts,tz,o,e,u,t,vc}', 100, true);
SELECT add_items(1201, 1400);
DELETE FROM items WHERE id % 6 = 5 OR id BETWEEN 300 AND 350;
SELECT * FROM searches('{i2,i4,i8,f4,f8,n,b,d,ts,tz,o,e,u,t,vc}', 100, true);
VACUUM items;
SELECT * FROM searches('{i2,i4,i8,f4,f8,n,b,d,ts,tz,o,e,u,t,vc}', 50, true);
SELECT live_rows FROM pgwarp_check('items_index', true);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING exact (bc, ip, t, v, n) WITH (vectors = half);
SELECT * FROM searches('{bc,ip,t,n}', 50, true);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (i4, v, t, b, f8, e, ip);
SELECT add_items(1401, 1500);
DELETE FROM items WHERE id % 17 = 0;
SELECT * FROM searches('{i4,t,b,f8,e,ip}', 100, false);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v, i4, t, b, n, u) WITH (lists = 12);
SELECT add_items(1501, 1600);
DELETE FROM items WHERE id % 23 = 0;
SELECT * FROM searches('{i4,t,b,n,u}', 100, false);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v, i4, t, i8, d);
SELECT add_items(1601, 1700);
DELETE FROM items WHERE id % 29 = 0;
SELECT * FROM searches('{i4,t,i8,d}', 100, false);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING matchcount (v, i4, t filter_ops, f4, bc);
SELECT add_items(1701, 1800);
DELETE FROM items WHERE id % 31 = 0;
SELECT * FROM searches('{i4,t,f4,bc}', 100, false);
DROP INDEX items_index;
DROP TABLE items;
DROP FUNCTION searches, conditions, condition, add_items;
DROP TYPE level;
