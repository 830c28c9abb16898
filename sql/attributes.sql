-- The types attributes and attribute_query: forms, conversion and match counts.

-- numbers and categories
SELECT 'age:39 education:Bachelors sex:Female "native country":"United States" balance:-1.50e3 note:"39"'::attributes;
SELECT ''::attributes AS none, '  a : 1	b:x
c:"" '::attributes AS blanks, 'A:1 a:2 é:漢'::attributes AS names, '"":1 "1":a 1b:"a\"b\\c" d:"\e"'::attributes AS quotes;
SELECT 'a:+1 b:1. c:.5 d:1e3 e:-0 f:00012 g:1e-320 h:inf i:-Infinity j:12345678901234567890'::attributes AS numbers;
SELECT 'a:1x b:0x10 c:e5 d:- e:+-1 f:1e g:i h:in i:10% j:<=50K k:a-b l:2020-1-01 m:12020-01-01'::attributes AS categories;
SELECT 'a:1970-01-01 b:1969-12-31 c:2000-02-29 d:"2000-02-29" e:9999-12-31'::attributes AS dates;
SELECT pg_typeof('a:1'::attributes::text), 'a:1'::text::attributes;

-- input that is none
SELECT 'age'::attributes;
SELECT 'age:'::attributes;
SELECT 'age: 39 :x'::attributes;
SELECT ':39'::attributes;
SELECT 'age:39,sex:Male'::attributes;
SELECT 'age:[30,40]'::attributes;
SELECT 'a:"x'::attributes;
SELECT 'a:"x\'::attributes;
SELECT 'a\b:1'::attributes;
SELECT 'a:1 b:2 a:3'::attributes;
SELECT 'a:1 a:x'::attributes;
SELECT 'a:1e400'::attributes;
SELECT 'a:1e-400'::attributes;
SELECT 'a:nan'::attributes;
SELECT 'a:2001-02-29'::attributes;
SELECT 'a:0000-01-01'::attributes;
SELECT 'ééé:漢漢漢 漢:é ü'::attributes;
\set VERBOSITY sqlstate
SELECT 'age'::attributes;
SELECT 'a:1 a:2'::attributes;
SELECT 'a:1e400'::attributes;
SELECT 'a:[40,30]'::attribute_query;
SELECT 'a:[40'::attribute_query;
SELECT (SELECT string_agg('a' || i || ':1', ' ') FROM generate_series(1, 16385) i)::attributes;
SELECT (SELECT string_agg('a:' || i, ' ') FROM generate_series(1, 20000) i)::attribute_query;
\set VERBOSITY default

-- queries
SELECT 'age:[30,40] education:{Bachelors,Masters} sex:{Female} income:(,50000]'::attribute_query;
SELECT ' a : [ 1 , 2 ] b:{ x , "y z" }c:1 '::attribute_query AS blanks, ''::attribute_query AS none, 'a:{} b:{1} c:{x} d:"1"'::attribute_query AS sets;
SELECT 'a:(1,2) b:[1,2) c:(1,2] d:(,2) e:[1,] f:(,) g:[,] h:[1,1]'::attribute_query AS ends;
SELECT 'a:[-Infinity,Infinity] b:(-inf,inf) c:[,-inf] d:(inf,) e:[2,inf)'::attribute_query AS infinite;
SELECT 'a:(1,1] b:[1,1) c:(1,1) d:{(1,1),2}'::attribute_query AS without_numbers;
SELECT 'a:{5,[1,2],(2,3],[2.5,4],7,7,[9,],(8,9)}'::attribute_query AS united, 'a:{[1,2),(2,3]}'::attribute_query AS apart, 'a:{x,y,x}'::attribute_query AS categories, 'a:{[0,1),[-1,-0)}'::attribute_query AS zero;
SELECT 'born:[1980-01-01,1981-01-01) on:{2020-02-29,"2020-02-29"}'::attribute_query;
SELECT 'born:[1980-01-01,1981-01-01) on:2020-02-29'::attribute_query;
SELECT 'age'::attribute_query;
SELECT 'age:'::attribute_query;
SELECT 'age:[30 40]'::attribute_query;
SELECT 'age:[30,40'::attribute_query;
SELECT 'age:[30'::attribute_query;
SELECT 'age:[]'::attribute_query;
SELECT 'age:[30,40}'::attribute_query;
SELECT 'age:[a,b]'::attribute_query;
SELECT 'age:["30",40]'::attribute_query;
SELECT 'age:[40,30] sex:Male'::attribute_query;
SELECT 'age:{(1,0)}'::attribute_query;
SELECT 'age:[nan,1]'::attribute_query;
SELECT 'sex:{Male'::attribute_query;
SELECT 'sex:{Male,}'::attribute_query;
SELECT 'sex:{Male Female}'::attribute_query;
SELECT 'sex:{{Male}}'::attribute_query;
SELECT 'sex:Male,Female'::attribute_query;
SELECT 'sex:{1,Male}'::attribute_query;
SELECT 'sex:{Male,[1,2]}'::attribute_query;
SELECT (SELECT string_agg('a:' || i, ' ') FROM generate_series(1, 20000) i)::attribute_query;
SELECT ('a:{' || (SELECT string_agg((2 * i)::text, ',') FROM generate_series(1, 40000) i) || '}')::attribute_query;
SELECT ('a:{' || (SELECT string_agg(i::text, ',') FROM generate_series(1, 70000) i) || '}')::attribute_query;
SELECT length((SELECT string_agg('a' || i || ':{x,y}', ' ') FROM generate_series(1, 9000) i)::attribute_query::text) AS many_items, length((SELECT string_agg('a' || i || ':1', ' ') FROM generate_series(1, 16384) i)::attributes::text) AS many_attributes;
SELECT (SELECT string_agg('a' || i || ':1', ' ') FROM generate_series(1, 16385) i)::attributes;

-- match counts
SELECT q, a <&> q AS distance, match_count(a, q), pg_typeof(a <&> q), pg_typeof(match_count(a, q))
	FROM (VALUES ('age:39 sex:Female edu:Bachelors n:"39"'::attributes)) r(a),
		unnest(ARRAY['', 'age:[30,40]', 'age:39 sex:Female', 'age:"39" n:39', 'n:"39"', 'age:(39,40] sex:{Male,Other}', 'Age:39 other:(,) sex:female', 'age:(,) age:(,) age:40', 'sex:(,) age:{}', 'edu:{Masters,Bachelors,HS} sex:{Female,Male} age:{1,[38,39],50}']::attribute_query[]) q;
SELECT NULL::attributes <&> 'a:1' AS null_row, 'a:1'::attributes <&> NULL AS null_query, ''::attributes <&> 'a:1' AS empty_row, ''::attributes <&> '' AS both;
SELECT 'a:0'::attributes <&> 'a:-0 a:[-0,0] a:[0,0] a:(-1,0) a:(0,1)' AS zeros, 'a:inf'::attributes <&> 'a:(,) a:[1,] a:[1,inf) a:inf a:(,inf]' AS infinite;
SELECT q, match_count(a, q) FROM (SELECT a, a::attribute_query AS q FROM (VALUES ('age:39 sex:Female "a b":"39" x:-inf y:""'::attributes)) r(a)) s;
-- against multiranges
CREATE FUNCTION pick(seed integer, most integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT abs(hashint4(seed)) % most';
CREATE TABLE ranges AS SELECT i, ('{' || string_agg(r, ',') || '}') AS members FROM (SELECT i, (ARRAY['[', '('])[1 + pick(i * 50 + j, 2)]
		|| CASE pick(i * 70 + j, 9) WHEN 0 THEN '' ELSE low::text END || ',' || CASE pick(i * 90 + j, 9) WHEN 0 THEN '' ELSE (low + pick(i * 3 + j, 4) / 2.0)::text END
		|| (ARRAY[']', ')'])[1 + pick(i * 110 + j, 2)] AS r
	FROM generate_series(1, 400) i, generate_series(1, 6) j, LATERAL (SELECT pick(i * 130 + j, 40) / 2.0 - 10 AS low) l WHERE j <= 1 + i % 6) s GROUP BY i;
SELECT count(*), sum(m::int) AS matches, count(*) FILTER (WHERE m <> (members::nummultirange @> v)) AS wrong,
		count(*) FILTER (WHERE m <> (match_count(a, q::text::attribute_query) = 1)) AS wrong_again
	FROM ranges, generate_series(-11, 13, 0.25) v, LATERAL (SELECT ('x:' || v)::attributes AS a, ('x:' || members)::attribute_query AS q OFFSET 0) p,
		LATERAL (SELECT match_count(a, q) = 1 AS m) c;

-- of rows
CREATE DOMAIN percent AS numeric CHECK (value <= 100);
CREATE TYPE mood AS ENUM ('sad', 'so so');
CREATE TABLE people (a smallint, b int, c bigint, d real, e float8, f numeric, g boolean, h text, i varchar, j char(5), "K k" "char", l name, m mood, n date, o timestamp, p timestamptz, q time, r percent, s uuid, t oid, u inet);
INSERT INTO people VALUES (1, -2, 9007199254740993, 0.1, 0.1, 1.50, true, 'x y', 'v', 'w', 'c', 'n', 'so so', '2020-02-29', '2020-02-29 12:00:00.25', '2020-02-29 12:00:00+02', '01:00:00.5', 50, '123e4567-e89b-12d3-a456-426614174000', 4294967295, '10.0.0.1'),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(0, 0, 0, 'NaN', '-Infinity', 'NaN', false, '', '39', '39', '"', '', 'sad', 'infinity', '-infinity', 'infinity', '00:00', -0.0, NULL, 0, NULL),
	(0, 0, 0, 'Infinity', 'NaN', 'Infinity', false, '2020-02-29', 'NaN', ' ', NULL, NULL, NULL, '0044-03-15 BC', '1900-01-01', '1900-01-01+00', NULL, 0.1, NULL, NULL, NULL);
SELECT attributes(whole.*) FROM people whole;
SELECT bool_and(attributes(whole)::text = attributes(whole.*)::text) AS same, bool_and(attributes(whole)::text = whole.attributes::text) AS as_column,
	bool_and(attributes(whole)::text = attributes('a', a, 'b', b, 'c', c, 'd', d, 'e', e, 'f', f, 'g', g, 'h', h, 'i', i, 'j', j, 'K k', "K k", 'l', l, 'm', m, 'n', n, 'o', o, 'p', p, 'q', q, 'r', r, 's', s, 't', t, 'u', u)::text) AS of_pairs,
	bool_and(attributes(whole)::text = attributes(whole)::text::attributes::text) AS again FROM people whole;
SELECT attributes(s) FROM (SELECT b, h AS "H h" FROM people LIMIT 1) s;
SELECT attributes(row(1, 'a')), attributes(row()), attributes(NULL::people) IS NULL AS null_row;
SELECT bool_and(attributes('n', n, 'o', o, 'p', p)::text IS NOT DISTINCT FROM attributes('n', extract(epoch FROM n), 'o', extract(epoch FROM o), 'p', extract(epoch FROM p))::text) AS epochs FROM people WHERE isfinite(n) AND isfinite(o) AND isfinite(p);
SELECT count(*) FROM people WHERE attributes('n', n, 'o', o) <&> 'n:2020-02-29 o:[2020-02-29,2020-03-01)' = -2;
SELECT attributes('f', 1e400::numeric, 'g', -1e400::numeric, 'h', 1e-400::numeric, 'i', 9223372036854775807) AS out_of_range;
SET DateStyle = 'German';
SET TimeZone = 'Asia/Tokyo';
SET extra_float_digits = -15;
SELECT attributes('n', n, 'o', o, 'p', p, 'e', e) FROM people LIMIT 1;
RESET DateStyle;
RESET TimeZone;
RESET extra_float_digits;
ALTER TABLE people DROP COLUMN c, ALTER b TYPE text, ADD COLUMN v int DEFAULT 7;
SELECT attributes(people) FROM people LIMIT 1;
ALTER TABLE people ADD COLUMN w int[];
SELECT attributes(people) FROM people LIMIT 1;
SELECT attributes('a', ARRAY[1, 2]);
SELECT attributes('a', interval '1 day');
SELECT attributes('a', NULL::bytea);
SELECT attributes('a', point '(1,2)');
SELECT attributes('a', row(1, 2));

-- of names and values
SELECT attributes('a', 1, 'b', 'x', 'c', NULL, 'd'::varchar, NULL::int, 'e', 1.5::percent);
SELECT attributes('a', VARIADIC ARRAY['x', 'b', 'y']), attributes('a', VARIADIC NULL::text[]) IS NULL AS null_array;
SELECT attributes('a', VARIADIC '{}'::text[]);
SELECT attributes('a');
SELECT attributes(1);
SELECT attributes('a', 1, 'b');
SELECT attributes('a', 1, 2, 3);
SELECT attributes(NULL, 1);
SELECT attributes('a', 1, NULL, 1);
SELECT attributes('a', 1, NULL::text, 1);
SELECT attributes('a', 1, 'a', 'x');
SELECT count(*), count(DISTINCT a) FROM (SELECT attributes('i', i, 'x', repeat('y', i % 3))::text AS a FROM generate_series(1, 1000) i) s;
-- a value of another type in the same place of the same call
SELECT attributes(r) FROM (VALUES (1, row(1, 'a')), (2, row('a', 1)), (3, row(1, 2, 3)), (4, row(now() > 'epoch')), (5, row(1, 'b'))) s(i, r) ORDER BY i;

-- stored, out of line, and in binary form
CREATE TABLE stored (id int, a attributes, q attribute_query);
INSERT INTO stored SELECT i, ('id:' || i || ' ' || (SELECT string_agg('n' || j || ':' || md5(j::text), ' ') FROM generate_series(1, CASE WHEN i % 10 = 0 THEN 2000 ELSE 5 END) j))::attributes,
	('id:[' || i || ',' || i + 5 || '] ' || (SELECT string_agg('n' || j || ':{a,' || md5(j::text) || '}', ' ') FROM generate_series(1, CASE WHEN i % 10 = 0 THEN 2000 ELSE 5 END) j))::attribute_query FROM generate_series(1, 40) i;
SELECT match_count(a.a, q.q), count(*) FROM stored a, stored q GROUP BY 1 ORDER BY 1;
\copy stored TO 'results/attributes.bin' WITH (FORMAT binary)
CREATE TABLE copied (LIKE stored);
\copy copied FROM 'results/attributes.bin' WITH (FORMAT binary)
SELECT count(*), bool_and(s.a::text = c.a::text AND s.q::text = c.q::text) AS same, bool_and(match_count(s.a, c.q) = match_count(c.a, s.q)) AS same_counts FROM stored s JOIN copied c USING (id);
SELECT attributes_send('a:1'), attribute_query_send('a:1');
-- binary input that is none: no version, another version, half a form, a zero byte, a byte of no character
CREATE TABLE received (a attributes);
CREATE TABLE received_query (q attribute_query);
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\377\377"' WITH (FORMAT binary)
\copy received_query FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\2a:1\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\3\1a:\377\377"' WITH (FORMAT binary)
\copy received_query FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\6\1a:\0001x\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\1a:\377\377\377"' WITH (FORMAT binary)
-- no attributes at all
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\1\377\377"' WITH (FORMAT binary)
TABLE received;
DROP TABLE received, received_query;
DROP TABLE copied;

-- any text is read as what it says or refused
CREATE FUNCTION fuzz(type text, alphabet text[], seeds integer, most integer, OUT read integer, OUT refused integer, OUT wrong text) LANGUAGE plpgsql AS $$
DECLARE
	literal text;
	written text;
	again text;
BEGIN
	read := 0;
	refused := 0;
	FOR seed IN 1 .. seeds LOOP
		SELECT string_agg(alphabet[1 + abs(hashint4(seed * 100 + i)) % cardinality(alphabet)], '') INTO literal FROM generate_series(1, 1 + abs(hashint4(seed)) % most) i;
		BEGIN
			EXECUTE format('SELECT %L::%s::text', literal, type) INTO written;
			EXECUTE format('SELECT %L::%s::text', written, type) INTO again;
			IF written <> again THEN wrong := literal || ' -> ' || written || ' -> ' || again; END IF;
			read := read + 1;
		EXCEPTION WHEN invalid_text_representation OR numeric_value_out_of_range OR data_exception THEN
			IF written IS NOT NULL THEN wrong := literal || ' -> ' || written; END IF;
			refused := refused + 1;
		END;
		written := NULL;
	END LOOP;
END
$$;
SELECT type, f.* FROM unnest(ARRAY['attributes', 'attribute_query']) type,
	fuzz(type, ARRAY['a', 'b', ':', ':', ':', ' ', ' ', '1', '2', '"', '\', ',', '[', ']', '(', ')', '{', '}', '-', '.', 'e', 'inf', 'nan', '漢', '"x"', '2020-01-01'], 2000, 12) f;
SELECT type, f.* FROM unnest(ARRAY['attributes', 'attribute_query']) type,
	fuzz(type, ARRAY[' a:1 ', ' b:"\"\\" ', ' "d e":"y z" ', 'é:x ', ' f:-1e5 ', ' g:2020-01-01 ', ' h:[1,2] ', 'i:{', 'x,', '3,', '[4,5),', '6}', '"y z"}', ' j:(,1)'], 2000, 5) f;
SELECT length(repeat('x', 1000000) || ':1') = length((repeat('x', 1000000) || ':1')::attributes::text) AS long_name, length(('a:"' || repeat('\"', 500000) || '"')::attributes::text) AS long_value;
SELECT repeat('[', 1000000)::attributes;
SELECT ('a:' || repeat('{', 1000000))::attribute_query;
SELECT ('a:"' || repeat('\\', 1000000))::attribute_query;
SELECT ('a:' || repeat('9', 1000000))::attributes::text = 'x' AS too_long;

SELECT oid::regprocedure, provolatile, proisstrict, proparallel, procost FROM pg_proc WHERE proname IN ('attributes', 'match_count') OR oid = 'overlap_distance(attributes, attribute_query)'::regprocedure ORDER BY oid::regprocedure::text COLLATE "C";
SELECT typname, typlen, typalign, typstorage, typcategory FROM pg_type WHERE oid IN ('attributes'::regtype, 'attribute_query'::regtype) ORDER BY 1;
DROP TABLE people, stored, ranges;
DROP TYPE mood;
DROP DOMAIN percent;
DROP FUNCTION pick, fuzz;
