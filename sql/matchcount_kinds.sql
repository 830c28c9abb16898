-- other distances of text by an index: with transpositions, a word in a longer text, grams
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

SELECT 'abcd' <~^~> 'abdc' AS swap, 'abcd' <~~> 'abdc' AS edits, 'ca' <~^~> 'abc' AS restricted, NULL <~^~> 'a' AS null;
SELECT 'neighbor' <<~~>> 'in the neighbourhood' AS word, 'in the neighbourhood' >>~~<< 'neighbor' AS other_way, 'abc' >>~~<< '' AS empty_word, '' >>~~<< 'abc' AS empty_text;
SELECT round(('abcd' <%%> 'abce')::numeric, 4) AS one, 'abc' <%%> 'abc' AS same, '' <%%> '' AS empty, '' <%%> 'a' AS all_others, 'aaaa' <%%> 'aaa' AS repeated,
	'漢字' <%%> '漢字😀' = '😀漢字' <%%> '漢字' AS wide, NULL <%%> 'a' AS null;
SELECT oprname, oprcom::regoperator, oprcode FROM pg_operator WHERE oprname IN ('<~^~>', '>>~~<<', '<<~~>>', '<%%>') ORDER BY oprname COLLATE "C";
SELECT opcname, opcdefault, amvalidate(oid) FROM pg_opclass WHERE opcname IN ('text_transpositions_ops', 'text_substring_ops', 'text_gram_ops') ORDER BY 1;

CREATE FUNCTION made_text(seed integer) RETURNS text AS $$
	SELECT translate(left(md5((seed % 1500)::text), seed % 30), '0123456789abcdef', 'aabbccdd eéжжΩ漢😀')
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE titles (id integer PRIMARY KEY, kind integer, title text);
INSERT INTO titles SELECT i, i % 10, CASE WHEN i % 97 <> 0 THEN made_text(i) END FROM generate_series(1, 2000) i;
ANALYZE titles;
CREATE TABLE queries (q text);
INSERT INTO queries SELECT made_text(i * 131) FROM generate_series(1, 10) i;
INSERT INTO queries SELECT overlay(title PLACING 'xy' FROM 3) FROM titles WHERE id % 200 = 7;
INSERT INTO queries SELECT substr(title, 3, 6) FROM titles WHERE id % 200 = 28;
INSERT INTO queries SELECT left(title, 4) || substr(title, 6, 1) || substr(title, 5, 1) || substr(title, 7) FROM titles WHERE id % 250 = 29;
INSERT INTO queries VALUES (''), ('a'), ('漢😀'), (repeat('no row is like it ', 40)), (NULL);
ANALYZE queries;

CREATE FUNCTION set_plan(by_index boolean) RETURNS void AS $$
	SELECT set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name
$$ LANGUAGE sql;
CREATE FUNCTION distances(operator text, query text, k integer, by_index boolean, condition text) RETURNS double precision[] AS $$
DECLARE
	found double precision[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT title %1$s $1 AS d FROM titles WHERE %2$s ORDER BY title %1$s $1 LIMIT %3$s) n',
		operator, format(condition, operator), k) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION compared(operator text, k integer, condition text DEFAULT 'true', OUT queries bigint, OUT wrong bigint) AS $$
	SELECT count(*), count(*) FILTER (WHERE distances(operator, q, k, true, condition) IS DISTINCT FROM distances(operator, q, k, false, condition))
	FROM queries
$$ LANGUAGE sql;
CREATE FUNCTION rows_within(condition text, query text, by_index boolean) RETURNS integer[] AS $$
DECLARE
	found integer[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM titles WHERE %s OFFSET 0) n', condition) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql SET enable_sort = on;
CREATE FUNCTION bounded(condition text, OUT queries bigint, OUT found bigint, OUT wrong bigint) AS $$
	SELECT count(*), sum(cardinality(rows_within(condition, q, true))),
		count(*) FILTER (WHERE rows_within(condition, q, true) IS DISTINCT FROM rows_within(condition, q, false))
	FROM queries
$$ LANGUAGE sql;

-- transpositions
CREATE INDEX titles_swaps ON titles USING matchcount (title text_transpositions_ops);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY title <~^~> 'a word' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE edit_distance_transpositions(title, 'abcd') <= 2;
SELECT plan_of($$SELECT id FROM titles ORDER BY title <~~> 'a word' LIMIT 10$$) AS plan;
SELECT plan_of($$SELECT a.q, t.id FROM queries a JOIN titles t ON a.q <~^~> t.title <= 1$$) AS plan;
RESET enable_seqscan;
SELECT * FROM compared('<~^~>', 1);
SELECT * FROM compared('<~^~>', 10);
SELECT * FROM compared('<~^~>', 3000);
SELECT * FROM compared('<~^~>', 10, 'kind = 3 AND title %s $1 <= 8');
SELECT * FROM bounded('title <~^~> $1 <= 2');
SELECT * FROM bounded('edit_distance_transpositions($1, title) < 5');
INSERT INTO titles SELECT i, i % 10, made_text(i) FROM generate_series(2001, 2300) i;
DELETE FROM titles WHERE id % 7 = 3;
SELECT * FROM compared('<~^~>', 10);
CALL pgwarp_merge('titles_swaps');
SELECT * FROM compared('<~^~>', 10);
SELECT * FROM bounded('title <~^~> $1 <= 2');
DROP INDEX titles_swaps;

-- a word in a longer text: the word is on the side of the arrows' tails
CREATE INDEX titles_words ON titles USING matchcount (title text_substring_ops) WITH (gram = 2);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY 'a word' <<~~>> title LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY title >>~~<< 'a word' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE 'a word' <<~~>> title <= 1;
SELECT plan_of($$SELECT id FROM titles WHERE title <<~~>> 'a word' <= 1$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE substring_edit_distance('a word', title) <= 1$$) AS plan;
SELECT plan_of($$SELECT id FROM titles WHERE substring_edit_distance(title, 'a word') <= 1$$) AS plan;
SELECT plan_of($$SELECT a.q, t.id FROM queries a JOIN titles t ON a.q <<~~>> t.title <= 1$$) AS plan;
RESET enable_seqscan;
SELECT * FROM compared('>>~~<<', 1);
SELECT * FROM compared('>>~~<<', 10);
SELECT * FROM compared('>>~~<<', 3000);
SELECT * FROM bounded('$1 <<~~>> title <= 1');
SELECT * FROM bounded('2 > title >>~~<< $1');
SELECT * FROM bounded('substring_edit_distance($1, title) <= 1');
SELECT * FROM bounded('contained_edit_distance(title, $1) < 2');
INSERT INTO titles SELECT i, i % 10, made_text(i) || ' and more' FROM generate_series(2301, 2500) i;
SELECT * FROM compared('>>~~<<', 10);
SELECT * FROM bounded('$1 <<~~>> title <= 1');
CALL pgwarp_merge('titles_words');
SELECT * FROM compared('>>~~<<', 10);
SELECT * FROM bounded('$1 <<~~>> title <= 1');
DROP INDEX titles_words;

-- the Jaccard distance of grams
CREATE INDEX titles_grams ON titles USING matchcount (title text_gram_ops);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY title <%%> 'a word' LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM titles WHERE gram_distance('a word', title) < 0.5;
SELECT plan_of($$SELECT a.q, t.id FROM queries a JOIN titles t ON a.q <%%> t.title <= 0.3$$) AS plan;
RESET enable_seqscan;
SELECT * FROM compared('<%%>', 1);
SELECT * FROM compared('<%%>', 10);
SELECT * FROM compared('<%%>', 3000);
SELECT * FROM bounded('title <%%> $1 <= 0.7');
SELECT * FROM bounded('title <%%> $1 < 1');
SELECT * FROM bounded('title <%%> $1 <= 0');
INSERT INTO titles SELECT i, i % 10, made_text(i) FROM generate_series(2501, 2600) i;
SELECT * FROM compared('<%%>', 10);
CALL pgwarp_merge('titles_grams');
SELECT * FROM compared('<%%>', 10);
SELECT * FROM bounded('title <%%> $1 <= 0.7');
DROP INDEX titles_grams;
CREATE INDEX ON titles USING matchcount (title text_gram_ops) WITH (gram = 2);
CREATE INDEX ON titles USING matchcount (title text_gram_ops) WITH (gram = 3);
ALTER INDEX titles_title_idx SET (gram = 4);
REINDEX INDEX titles_title_idx;

-- the nearest by one index, two of different distances on one column
CREATE INDEX titles_edits ON titles USING matchcount (title);
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY title <%%> 'a word' LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY title <~~> 'a word' LIMIT 1;
SELECT plan_of($$SELECT id FROM titles ORDER BY title <~^~> 'a word' LIMIT 1$$) AS plan;

DROP TABLE titles, queries;
DROP FUNCTION made_text, set_plan, distances, compared, rows_within, bounded, plan_of;
