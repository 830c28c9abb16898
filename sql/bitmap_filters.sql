-- Conditions that other indexes answer by bitmaps: the search goes over the rows of the bitmap. Random conditions: `exact` gives
-- what a sequential scan gives; other methods give as many rows as pass, in order, and nearly all of the nearest ones
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, v vector(8), n integer, m integer, words tsvector, tags integer[], span int4range, place point, day date, kind text);
CREATE FUNCTION add_items(first integer, last integer) RETURNS void LANGUAGE sql AS $$
	-- the first part of the vector tells the row's group, with which m is correlated
	INSERT INTO items SELECT i, CASE WHEN i % 97 > 0 THEN ARRAY[i % 6, random(), random(), random(), random(), random(), random(), random()]::vector END,
		(random() * 1000)::integer, i % 6 * 100 + i % 3, to_tsvector('simple', format('a%s b%s c%s', i % 3, i % 40, (random() * 300)::integer)),
		ARRAY[i % 7, 10 + i % 50, 100 + (random() * 200)::integer], int4range(i % 500, i % 500 + 20), point(i % 100, i / 100), DATE '2020-01-01' + i / 50, 'kind ' || i % 30
		FROM generate_series(first, last) i;
$$;
SELECT setseed(0.5);
SELECT add_items(1, 3000);
UPDATE items SET n = NULL, words = NULL WHERE id % 50 = 0;
CREATE INDEX items_n ON items (n);
CREATE INDEX items_m ON items (m);
CREATE INDEX items_words ON items USING gin (words);
CREATE INDEX items_tags ON items USING gin (tags);
CREATE INDEX items_span ON items USING gist (span);
CREATE INDEX items_place ON items USING gist (place);
CREATE INDEX items_day ON items USING brin (day) WITH (pages_per_range = 2);
CREATE INDEX items_kind ON items USING hash (kind);
CREATE INDEX items_part ON items (id) WHERE n < 100;
VACUUM ANALYZE items;

-- The nodes of a plan, and what they tell. Sorts are left to other tests.
CREATE FUNCTION plan(conditions text, options text DEFAULT 'COSTS OFF', k integer DEFAULT 3) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off;
	FOR line IN EXECUTE format('EXPLAIN (%s) SELECT id FROM items WHERE %s ORDER BY v <-> ''[1,.5,.5,.5,.5,.5,.5,.5]'' LIMIT %s', options, conditions, k) LOOP
		IF line !~ 'Limit|Order By|Index Searches' THEN RETURN NEXT regexp_replace(line, '\s+\(actual.*\)', ''); END IF;
	END LOOP;
END $$;
CREATE INDEX items_v ON items USING exact (v);
SELECT plan('n < 30');
SELECT plan('words @@ ''b7''');
SELECT plan('tags @> ''{3,17}''');
SELECT plan('span && ''[40,60)''');
SELECT plan('place <@ box ''(10,5),(20,9)''');
SELECT plan('day BETWEEN ''2020-01-10'' AND ''2020-01-12''');
SELECT plan('kind = ''kind 7''');
SELECT plan('n < 100 AND id BETWEEN 30 AND 300');
SELECT plan('m = 102 AND words @@ ''b8''');
SELECT plan('words @@ ''b8'' OR tags @> ''{3,17}''');
SELECT plan('n IN (1, 7, 80) AND day > ''2020-01-10'' AND id % 2 = 0');
-- of no use, or not there
SELECT plan('id % 2 = 0');
SELECT plan('n >= 0');
SET enable_bitmapscan = off;
SELECT plan('n < 30');
RESET enable_bitmapscan;

-- A random condition.
CREATE FUNCTION condition() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r integer := (random() * 1000)::integer;
BEGIN
	RETURN CASE floor(random() * 16)::integer
		WHEN 0 THEN format('n < %s', r / 5) WHEN 1 THEN format('n = %s', r) WHEN 2 THEN format('n BETWEEN %s AND %s', r, r + 50)
		WHEN 3 THEN format('m IN (%s, %s)', r % 6 * 100 + 1, r % 5 * 100) WHEN 4 THEN format('words @@ ''b%s''', r % 41) WHEN 5 THEN format('words @@ ''c%s | b%s''', r % 300, r % 30)
		WHEN 6 THEN format('words @@ ''a%s & !b%s''', r % 3, r % 30) WHEN 7 THEN format('tags && ''{%s,%s}''', 10 + r % 50, 100 + r % 200)
		WHEN 8 THEN format('tags @> ''{%s,%s}''', r % 7, 10 + r % 50) WHEN 9 THEN format('span @> %s', r % 510) WHEN 10 THEN format('span && ''[%s,%s)''', r % 400, r % 400 + r / 9 + 1)
		WHEN 11 THEN format('place <@ box ''(%s,3),(%s,20)''', r % 90, r % 90 + 8) WHEN 12 THEN format('day = date ''2020-01-01'' + %s', r % 60)
		WHEN 13 THEN format('kind = ''kind %s''', r % 31) WHEN 14 THEN format('(n < %s OR kind = ''kind %s'')', r / 10, r % 30) ELSE format('n IS NULL AND m > %s', r / 3) END;
END $$;
-- Searches with random conditions. wrong: lists with rows that don't pass, too few rows, or in another order; missed: those of an
-- exact index that are not the nearest; recall: of the nearest rows; bitmaps: whether most searches went over a bitmap
CREATE FUNCTION searches(most integer, exact boolean, OUT done integer, OUT wrong integer, OUT missed integer, OUT recall boolean, OUT bitmaps boolean) LANGUAGE plpgsql AS $$
DECLARE
	statement text;
	query text;
	k integer;
	found float8[];
	ids integer[];
	truth float8[];
	true_ids integer[];
	line text;
	by_bitmap integer := 0;
	hits bigint := 0;
	hoped bigint := 0;
BEGIN
	done := 0; wrong := 0; missed := 0;
	WHILE done < most LOOP
		done := done + 1;
		k := (ARRAY[1, 10, 10, 100, 2000])[1 + done % 5];
		query := format('[%s,.5,.5,.5,.5,.5,.5,%s]', done % 6, round(random()::numeric, 3));
		statement := format('SELECT array_agg(d), array_agg(id) FROM (SELECT id, v <-> %L AS d FROM items WHERE %s ORDER BY v <-> %1$L LIMIT %3$s) s', query,
			(SELECT string_agg(condition(), ' AND ') FROM generate_series(1, 1 + (random() * 1.2)::integer)), k);
		SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off;
		FOR line IN EXECUTE 'EXPLAIN ' || statement LOOP
			IF line ~ '-> +Bitmap (Index|Heap)' THEN by_bitmap := by_bitmap + CASE WHEN line ~ 'Index' THEN 1 ELSE 0 END; EXIT; END IF;
		END LOOP;
		EXECUTE statement INTO found, ids;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on;
		SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
		EXECUTE statement INTO truth, true_ids;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on;
		hits := hits + (SELECT count(*) FROM unnest(ids) i WHERE i = ANY (true_ids));
		hoped := hoped + coalesce(cardinality(true_ids), 0);
		IF cardinality(found) IS DISTINCT FROM cardinality(truth)
			OR found IS DISTINCT FROM (SELECT array_agg(f ORDER BY f) FROM unnest(found) f)
			OR cardinality(ids) <> (SELECT count(DISTINCT i) FROM unnest(ids) i)
		THEN wrong := wrong + 1; RAISE NOTICE '% found % of %', statement, cardinality(found), cardinality(truth); END IF;
		IF exact AND found IS DISTINCT FROM truth THEN missed := missed + 1; RAISE NOTICE 'missed: %', statement; END IF;
	END LOOP;
	recall := hits >= hoped * .95;
	bitmaps := by_bitmap > done * .5;
END $$;
SET client_min_messages = notice;
SELECT * FROM searches(150, true);
SELECT add_items(3001, 3300);
DELETE FROM items WHERE id % 6 = 5 OR id BETWEEN 300 AND 350;
UPDATE items SET m = m + 1 WHERE id % 11 = 0;
SELECT * FROM searches(100, true);
VACUUM items;
SELECT * FROM searches(50, true);
CALL pgwarp_merge('items_v');
SELECT add_items(3301, 3500);
SELECT * FROM searches(50, true);
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact (v, n, kind);
SELECT * FROM searches(50, true);
SELECT plan('n < 300 AND words @@ ''b7''');
SELECT plan('n < 30 AND words @@ ''b7 & c7''', 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
DROP INDEX items_v;

CREATE INDEX items_v ON items USING graph (v);
SELECT add_items(3501, 3600);
DELETE FROM items WHERE id % 17 = 0;
SELECT * FROM searches(100, false);
DROP INDEX items_v;
CREATE INDEX items_v ON items USING ivfadc (v) WITH (lists = 12);
SELECT add_items(3601, 3700);
DELETE FROM items WHERE id % 23 = 0;
SELECT * FROM searches(100, false);
DROP INDEX items_v;
CREATE INDEX items_v ON items USING pqtree (v);
SELECT add_items(3701, 3800);
DELETE FROM items WHERE id % 29 = 0;
SELECT * FROM searches(100, false);
DROP INDEX items_v;
CREATE INDEX items_v ON items USING matchcount (v);
SELECT add_items(3801, 3900);
DELETE FROM items WHERE id % 31 = 0;
SELECT * FROM searches(100, false);
DROP INDEX items_v;
DROP TABLE items;
DROP FUNCTION searches, condition, add_items, plan;
