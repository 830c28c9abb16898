-- rows with ranges, by an index: answers are those of the sort
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
SET max_parallel_workers_per_gather = 0;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

CREATE FUNCTION pick(seed integer, most integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT abs(hashint4(seed)) % most';
CREATE TYPE sex AS ENUM ('Female', 'Male');
CREATE TABLE people (id integer PRIMARY KEY, age integer, education text, sex sex, hours numeric, income float8, born date, married boolean);
CREATE FUNCTION made_person(i integer) RETURNS people LANGUAGE sql IMMUTABLE AS $$
	SELECT row(i, CASE WHEN pick(i, 20) > 0 THEN 17 + pick(i + 1000, 70) END, (ARRAY['Bachelors', 'Masters', 'HS-grad', 'Some college', NULL])[1 + pick(i * 3, 5)],
		(ARRAY['Female', 'Male']::sex[])[1 + pick(i * 5, 2)], pick(i * 7, 400) / 4.0, CASE pick(i * 11, 30) WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' ELSE exp(pick(i * 11, 1200) / 100.0) END,
		'1930-01-01'::date + pick(i * 13, 28000), pick(i * 17, 3) = 1)::people
$$;
INSERT INTO people SELECT p.* FROM generate_series(1, 1000) i, made_person(i) p;
CREATE TABLE queries (n serial, q attribute_query);
INSERT INTO queries (q) SELECT format('age:[%s,%s] education:%s sex:%s hours:(,%s) income:(%s,) born:[%s,%s] married:{true}', p.age - i, p.age + i, '"' || coalesce(p.education, 'none') || '"', p.sex, p.hours, nullif(p.income, 'NaN'), to_char(p.born, 'YYYY-MM-DD'), to_char(p.born + 3000, 'YYYY-MM-DD'))::attribute_query
	FROM generate_series(1, 6) i, made_person(i * 37) p WHERE p.age IS NOT NULL;
INSERT INTO queries (q) VALUES (''), ('age:39'), ('other:1 Age:39'), ('age:{20,[30,35],(50,60]} education:{Masters,"Some college"} hours:{10,20.25,30}'), ('age:(,)'), ('income:Infinity sex:Female'), ('sex:{}'), (NULL),
	('age:[30,40] age:[35,45] age:[40,50] age:40'), ((SELECT string_agg('age:[' || i % 90 || ',' || i % 90 + 5 || ']', ' ') FROM generate_series(1, 200) i)::attribute_query);

CREATE FUNCTION distances(query attribute_query, k integer, by_index boolean, a text, condition text) RETURNS double precision[] AS $$
DECLARE
	found double precision[];
BEGIN
	PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name;
	EXECUTE format('SELECT array_agg(d) FROM (SELECT %1$s <&> $1 AS d FROM people WHERE %2$s ORDER BY %1$s <&> $1 LIMIT %3$s) n',
		a, condition, k) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql;
-- the number of queries, and of those whose k nearest rows by the index have other distances than by the sort
CREATE FUNCTION compared(k integer, a text, condition text DEFAULT 'true', OUT all_queries bigint, OUT wrong bigint) AS $$
	SELECT count(*), count(*) FILTER (WHERE distances(q, k, true, a, condition) IS DISTINCT FROM distances(q, k, false, a, condition)) FROM queries
$$ LANGUAGE sql;

SELECT opcname, opcdefault, format_type(opcintype, NULL), amopopr::regoperator FROM pg_opclass JOIN pg_amop ON amopfamily = opcfamily WHERE opcname = 'attributes_overlap_ops';
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'attributes_overlap_ops';

-- of columns
\set of_columns attributes('''age''', age, '''education''', education, '''sex''', sex, '''hours''', hours, '''income''', income, '''born''', born, '''married''', married)
\set quoted '$a$':of_columns'$a$'
SELECT :quoted AS expression \gset
CREATE INDEX people_columns ON people USING matchcount (:of_columns);
SELECT pg_get_indexdef('people_columns'::regclass);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM people ORDER BY :of_columns <&> 'age:[30,40] sex:Female' LIMIT 10;
RESET enable_seqscan;
SELECT * FROM compared(1, :'expression');
SELECT * FROM compared(10, :'expression');
SELECT * FROM compared(300, :'expression');
SELECT * FROM compared(3000, :'expression');
-- filters beside the order, and bounds of the distance
SELECT * FROM compared(10, :'expression', 'id % 3 = 1');
SELECT * FROM compared(3000, :'expression', format('%s <&> $1 <= -3', :'expression'));
SELECT * FROM compared(5, :'expression', format('%s <&> $1 < -2.5', :'expression'));
SELECT * FROM compared(3000, :'expression', format('%s <&> $1 <= -1 AND age < 30', :'expression'));
SELECT * FROM compared(3000, :'expression', format('%s <&> $1 <= 0', :'expression'));
SELECT * FROM compared(3000, :'expression', format('%s <&> $1 < ''NaN''', :'expression'));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM people WHERE :of_columns <&> 'age:[30,40] sex:Female education:Masters' <= -3;
SELECT count(*) = (SELECT count(*) FROM people WHERE age BETWEEN 30 AND 40 AND sex = 'Female' AND education = 'Masters') AS same FROM people WHERE :of_columns <&> 'age:[30,40] sex:Female education:Masters' <= -3;
RESET enable_seqscan;

-- inserts and deletes, before and after a merge
INSERT INTO people SELECT p.* FROM generate_series(1001, 1150) i, made_person(i) p;
INSERT INTO people (id) VALUES (3001), (3002);
INSERT INTO people VALUES (3004, NULL, repeat('x', 1000000), NULL, 'NaN', 'NaN', NULL, NULL), (3003, 2147483647, '', 'Male', 1e100, '-Infinity', 'infinity', NULL);
SELECT * FROM compared(10, :'expression');
SELECT * FROM compared(3000, :'expression');
DELETE FROM people WHERE id % 7 = 3;
UPDATE people SET age = age + 1, education = 'Masters' WHERE id % 11 = 5;
SELECT * FROM compared(10, :'expression');
VACUUM people;
SELECT * FROM compared(3000, :'expression');
CALL pgwarp_merge('people_columns');
SELECT * FROM compared(10, :'expression');
SELECT * FROM compared(3000, :'expression');
SELECT live_rows, dead_rows FROM pgwarp_check('people_columns', true);
REINDEX INDEX CONCURRENTLY people_columns;
SELECT * FROM compared(10, :'expression');
SELECT method, rows, delta_rows, dead_rows, attainable_recall FROM pgwarp_index_info('people_columns');

-- a page is the beginning of every larger page
CREATE FUNCTION page(query attribute_query, k integer) RETURNS integer[] LANGUAGE plpgsql SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
	found integer[];
BEGIN
	EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM people ORDER BY %s <&> $1 LIMIT %s) n', current_setting('regress.expression'), k) INTO found USING query;
	RETURN found;
END
$$;
SELECT set_config('regress.expression', :'expression', false) <> '' AS set;
SELECT count(*) AS pages, bool_and((page(q, large))[:small] = page(q, small)) AS prefixes
	FROM queries, (VALUES (1, 10), (10, 11), (10, 200), (200, 1500)) AS v (small, large) WHERE q IS NOT NULL;

-- a cursor
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
DECLARE nearest CURSOR FOR SELECT :of_columns <&> 'age:[30,40] sex:Female hours:[20,30] married:true' AS distance FROM people ORDER BY :of_columns <&> 'age:[30,40] sex:Female hours:[20,30] married:true';
FETCH 3 nearest;
MOVE 900 nearest;
FETCH 1 nearest;
CLOSE nearest;
COMMIT;

-- joins search in batches, by order and by bound
SET enable_seqscan = off;
SELECT plan_of(format('SELECT n, found.id FROM queries CROSS JOIN LATERAL (SELECT id FROM people ORDER BY %s <&> q LIMIT 3) found', :'expression')) AS plan;
SELECT count(*), count(*) FILTER (WHERE found <> distances(q, 3, false, :'expression', 'true')) AS wrong
	FROM (SELECT n, array_agg(d ORDER BY d) AS found FROM queries CROSS JOIN LATERAL (SELECT :of_columns <&> q AS d FROM people ORDER BY :of_columns <&> q LIMIT 3) f WHERE q IS NOT NULL GROUP BY n) j JOIN queries USING (n);
SELECT plan_of(format('SELECT n, id FROM queries JOIN people ON %s <&> q <= -4', :'expression')) AS plan;
SELECT count(*), sum(id) FROM queries JOIN people ON :of_columns <&> q <= -4;
RESET enable_seqscan;
SET enable_indexscan = off;
SELECT count(*), sum(id) FROM queries JOIN people ON :of_columns <&> q <= -4;
RESET enable_indexscan;

-- generic and custom plans
SET enable_seqscan = off;
PREPARE nearest (attribute_query) AS SELECT :of_columns <&> $1 AS distance FROM people ORDER BY :of_columns <&> $1 LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE nearest ('age:39');
EXECUTE nearest ('age:39');
EXECUTE nearest (NULL);
EXECUTE nearest ('age:[40,30]');
RESET plan_cache_mode;
EXECUTE nearest ('age:[30,40] sex:Male');
DEALLOCATE nearest;
RESET enable_seqscan;
-- what serves vectors alone
SELECT knn_search('people_columns', ARRAY['[1]'::vector], 1);
SELECT pgwarp_recall('people_columns');
-- columns on which the index depends
ALTER TABLE people RENAME age TO years;
SELECT count(*) FROM people WHERE attributes('age', years) <&> 'age:(,)' = -1;
ALTER TABLE people RENAME years TO age;
BEGIN;
ALTER TABLE people DROP COLUMN married;
SELECT to_regclass('people_columns') IS NULL AS dropped;
ROLLBACK;
DROP INDEX people_columns;

-- of whole rows
CREATE INDEX people_rows ON people USING matchcount (attributes(people.*));
SELECT pg_get_indexdef('people_rows'::regclass);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM people p ORDER BY attributes(p.*) <&> 'age:[30,40] sex:Female' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM people ORDER BY attributes(people) <&> 'age:[30,40] sex:Female' LIMIT 10;
RESET enable_seqscan;
SELECT * FROM compared(10, 'attributes(people.*)');
SELECT * FROM compared(3000, 'attributes(people)');
SELECT * FROM compared(3000, 'attributes(people.*)', 'attributes(people.*) <&> $1 <= -3');
UPDATE people SET hours = hours + 1 WHERE id % 13 = 1;
INSERT INTO people SELECT p.* FROM generate_series(4001, 4100) i, made_person(i) p;
SELECT * FROM compared(10, 'attributes(people.*)');
CALL pgwarp_merge('people_rows');
SELECT * FROM compared(3000, 'attributes(people.*)');
SELECT pgwarp_check('people_rows', true) IS NOT NULL AS checked;
DROP INDEX people_rows;

-- a column of the type, with included columns and a condition
ALTER TABLE people ADD COLUMN a attributes GENERATED ALWAYS AS (attributes('age', age, 'sex', sex, 'income', income)) STORED;
CREATE INDEX people_a ON people USING matchcount (a) INCLUDE (id, age) WHERE married;
SELECT * FROM compared(10, 'a', 'married');
SELECT * FROM compared(3000, 'a', 'married AND a <&> $1 <= -2');
SET enable_seqscan = off;
SET enable_sort = off;
VACUUM people;
EXPLAIN (COSTS OFF) SELECT id FROM people WHERE married ORDER BY a <&> 'age:[30,40] sex:Female' LIMIT 3;
SELECT count(*), bool_and(age BETWEEN 30 AND 40) FROM (SELECT id, age FROM people WHERE married ORDER BY a <&> 'age:[30,40] sex:Female' LIMIT 3) s;
RESET enable_seqscan;
RESET enable_sort;
DROP INDEX people_a;
-- options and other uses that such an index refuses
CREATE INDEX ON people USING matchcount (a) WITH (gram = 2);
CREATE INDEX ON people USING matchcount (a) WITH (hashes = 10);
-- some versions of PostgreSQL tell the schema of the type
\set VERBOSITY sqlstate
CREATE INDEX ON people USING matchcount (a) WITH (recall = 0.5);
\set VERBOSITY default
CREATE INDEX ON people USING exact (a);
CREATE INDEX ON people USING matchcount (attributes('sex', sex, 'at', now()));
CREATE INDEX ON people USING matchcount (attributes('span', age * interval '1 day'));

-- rows without attributes and NULLs, by a domain; no rows at all
CREATE DOMAIN traits AS attributes;
CREATE TABLE few (id integer, a traits);
CREATE INDEX few_a ON few USING matchcount (a);
SET enable_seqscan = off;
SET enable_sort = off;
SELECT * FROM few ORDER BY a <&> 'x:1' LIMIT 1;
INSERT INTO few VALUES (1, NULL), (2, ''), (3, 'x:2 y:1'), (4, 'x:1'), (5, NULL), (6, 'x:1 y:1');
SELECT *, a <&> 'x:1 y:1' AS distance FROM few ORDER BY a <&> 'x:1 y:1';
REINDEX TABLE few;
EXPLAIN (COSTS OFF) SELECT * FROM few ORDER BY a <&> 'x:1 y:1';
SELECT *, a <&> 'x:1 y:1' AS distance FROM few ORDER BY a <&> 'x:1 y:1';
SELECT *, a <&> 'x:{}' AS distance FROM few WHERE a IS NOT NULL ORDER BY a <&> 'x:{}';
SELECT count(*) FROM few WHERE a <&> NULL <= -1;
-- the most attributes and the longest query
INSERT INTO few SELECT 7, string_agg('n' || i || ':' || i % 7, ' ')::attributes FROM generate_series(1, 16384) i;
INSERT INTO few SELECT 8, string_agg('n' || i || ':' || i % 7, ' ')::attributes FROM generate_series(1, 16385) i;
SELECT id, a <&> q AS distance FROM few, (SELECT string_agg('n' || i || ':[0,3]', ' ')::attribute_query AS q FROM generate_series(1, 9000) i) s ORDER BY a <&> q LIMIT 2;
REINDEX TABLE few;
SELECT id, a <&> q AS distance FROM few, (SELECT string_agg('n' || i || ':[0,3]', ' ')::attribute_query AS q FROM generate_series(1, 9000) i) s ORDER BY a <&> q LIMIT 2;
SELECT id, a <&> q AS distance FROM few, (SELECT ('n1:{' || (SELECT string_agg((i * 2)::text, ',') FROM generate_series(-15000, 15000) i) || '} x:1')::attribute_query AS q) s ORDER BY a <&> q LIMIT 3;
RESET enable_seqscan;
RESET enable_sort;
DROP TABLE few;
DROP DOMAIN traits;

-- partitions
CREATE TABLE parts (id integer, age integer, sex text) PARTITION BY LIST (sex);
CREATE TABLE parts_female PARTITION OF parts FOR VALUES IN ('Female');
CREATE TABLE parts_male (sex text, id integer, age integer);
ALTER TABLE parts ATTACH PARTITION parts_male FOR VALUES IN ('Male');
INSERT INTO parts SELECT id, age, sex::text FROM people WHERE sex IS NOT NULL;
CREATE INDEX ON parts USING matchcount (attributes('age', age, 'sex', sex));
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id FROM parts ORDER BY attributes('age', age, 'sex', sex) <&> 'age:[30,31] sex:Male' LIMIT 5;
SELECT age BETWEEN 30 AND 31 AS near, sex FROM parts ORDER BY attributes('age', age, 'sex', sex) <&> 'age:[30,31] sex:Male' LIMIT 5;
DROP TABLE people, parts, queries CASCADE;
DROP FUNCTION pick, distances, compared, page, plan_of;
DROP TYPE sex;
