-- odd and bad input of text: empty, of one character, of many, of one character many times, too long, NULL
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE texts (id serial, t text);
INSERT INTO texts (t) VALUES (''), ('a'), ('漢'), (NULL), (repeat('a', 500)), (repeat('ab', 250)), (repeat('a', 501)), (repeat('😀', 300)), ('aaa'), ('aaaa'), (' '), (E'\n'), (E'\t\\');
INSERT INTO texts (t) SELECT left(md5(i::text), i % 30) FROM generate_series(1, 1500) i;
INSERT INTO texts (t) SELECT repeat(md5(i::text), 312) || 'x' FROM generate_series(1, 20) i;
INSERT INTO texts (t) VALUES (repeat('x', 65535)), (repeat('😀', 65535)), (repeat('ab', 32767));
CREATE INDEX texts_edits ON texts USING matchcount (t);
CREATE INDEX texts_swaps ON texts USING matchcount (t text_transpositions_ops);
CREATE INDEX texts_words ON texts USING matchcount (t text_substring_ops);
CREATE INDEX texts_grams ON texts USING matchcount (t text_gram_ops);
ANALYZE texts;
CREATE TABLE asked (i serial, q text);
INSERT INTO asked (q) VALUES (''), ('a'), ('漢'), (NULL), ('aa'), (repeat('a', 499)), (repeat('ba', 250)), (' '), (repeat('md5', 3)), (repeat('😀', 299));
-- the ten nearest, the rows within a bound, and joins, by the indexes and without
CREATE FUNCTION answers(by_index boolean, operator text) RETURNS text AS $$
DECLARE
	found text;
BEGIN
	PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true) FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort']) name;
	EXECUTE format('SELECT string_agg(array_to_string(ARRAY(SELECT t %1$s q FROM texts ORDER BY t %1$s q LIMIT 10), '' '', ''null'') || '': '' ||
		(SELECT count(*) FROM texts WHERE t %1$s q <= 1)::text, E''\n'' ORDER BY i) FROM asked', operator) INTO found;
	RETURN found;
END
$$ LANGUAGE plpgsql;
SELECT operator, length(answers(true, operator)) > 100 AS any, answers(true, operator) = answers(false, operator) AS same FROM unnest(ARRAY['<~~>', '<~^~>', '>>~~<<', '<%%>']) operator;
SELECT answers(true, '<~~>');

-- queries of 10,000 characters, and several of the longest in one join, whose requests are split
SET enable_seqscan = off;
SELECT id, t <~~> (repeat(md5('3'), 312) || 'y') AS distance FROM (SELECT id, t FROM texts ORDER BY t <~~> (repeat(md5('3'), 312) || 'y') LIMIT 1) n;
SELECT count(*) FROM texts WHERE t <~~> (repeat(md5('3'), 312) || 'y') <= 1;
RESET enable_seqscan;
CREATE TABLE long_asked AS SELECT i, overlay(repeat(CASE WHEN i % 2 = 0 THEN '😀' ELSE 'x' END, 65535) PLACING 'z' FROM i * 100) AS q FROM generate_series(1, 12) i;
ANALYZE long_asked;
SELECT a.i, t.id, edit_distance(t.t, a.q, 10) AS distance FROM long_asked a JOIN texts t ON t.t <~~> a.q <= 3 ORDER BY 1;
SELECT a.i, n.distance FROM long_asked a CROSS JOIN LATERAL (SELECT t <~~> a.q AS distance FROM texts ORDER BY t <~~> a.q LIMIT 1) n WHERE a.i < 5;

-- too long, everywhere
SELECT count(*) FROM texts WHERE t <~~> repeat('x', 1000000) <= 2;
SET enable_seqscan = off;
SELECT id FROM texts ORDER BY t <~~> repeat('x', 1000000) LIMIT 1;
SELECT id FROM texts ORDER BY t <%%> repeat('x', 1000000) LIMIT 1;
SELECT id FROM texts WHERE repeat('x', 1000000) <<~~>> t <= 2;
RESET enable_seqscan;
SELECT gram_distance('a', repeat('x', 1000000));
INSERT INTO texts (t) VALUES (repeat('x', 1000000));
UPDATE texts SET t = repeat('漢', 1000000) WHERE id = 1;
CREATE TABLE longer AS SELECT repeat('x', 1000000) AS t;
CREATE INDEX ON longer USING matchcount (t text_substring_ops);
CREATE INDEX ON longer USING matchcount (left(t, 65535));
-- the session and the index go on
SELECT count(*) FROM texts WHERE t <~~> 'aaa' <= 1;
SELECT live_rows = (SELECT count(*) FROM texts) AS whole FROM pgwarp_check('texts_words', true);

-- an index that is read while it is built: the planner leaves it out, and a function that names it gets an error
CREATE TABLE reads (id integer, t text);
INSERT INTO reads SELECT i, 'text ' || i FROM generate_series(1, 30) i;
CREATE FUNCTION has_neighbour(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	found text;
BEGIN
	IF current_setting('tests.inside', true) = 'on' THEN RETURN true; END IF;
	PERFORM set_config('tests.inside', 'on', true);
	EXECUTE 'SELECT t FROM public.reads WHERE public.has_neighbour(t) ORDER BY t OPERATOR(public.<~~>) $1 LIMIT 1' INTO found USING $1;
	PERFORM set_config('tests.inside', 'off', true);
	RETURN found = $1;
END
$$;
SET enable_seqscan = off;
CREATE INDEX reads_t ON reads USING matchcount (t) WHERE has_neighbour(t);
SELECT id FROM reads WHERE has_neighbour(t) ORDER BY t <~~> 'text 27' LIMIT 1;
RESET enable_seqscan;
CREATE FUNCTION rows_of_index(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN $1 || (SELECT rows FROM public.pgwarp_index_info('public.reads_rows'));
END
$$;
CREATE INDEX reads_rows ON reads USING matchcount (rows_of_index(t));
DROP TABLE reads;
DROP FUNCTION has_neighbour, rows_of_index;
-- arrays of other types
CREATE TYPE letters;
CREATE FUNCTION letters_in(cstring) RETURNS letters LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION letters_out(letters) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE letters (INPUT = letters_in, OUTPUT = letters_out, LIKE = text);
CREATE CAST (letters AS text) WITHOUT FUNCTION;
CREATE TABLE tagged (c letters[]);
CREATE INDEX ON tagged USING matchcount (c);
SELECT '{a}'::letters[] <&> '{A}';
CREATE FUNCTION small_letters(letters[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS 'SELECT array_agg(lower(c::text)) FROM unnest($1) c';
CREATE INDEX tagged_lower ON tagged USING matchcount (small_letters(c));
INSERT INTO tagged VALUES ('{Red,Green}'), ('{blue}');
SET enable_seqscan = off;
SELECT c FROM tagged ORDER BY small_letters(c) <&> '{green,red}' LIMIT 1;
RESET enable_seqscan;
DROP TABLE tagged;
DROP FUNCTION small_letters;
DROP TYPE letters CASCADE;

-- options of every operator class
CREATE INDEX ON texts USING matchcount (t text_transpositions_ops) WITH (gram = 0);
CREATE INDEX ON texts USING matchcount (t text_substring_ops) WITH (gram = 1000000);
CREATE INDEX ON texts USING matchcount (t text_gram_ops) WITH (gram = 6);
CREATE INDEX ON texts USING matchcount (t text_edit_ops) WITH (gram = 'three');
CREATE INDEX ON texts USING matchcount (t text_edit_ops) WITH (grams = 3);
CREATE INDEX ON texts USING exact (t text_substring_ops);
-- operators of other types
SELECT 1 <~~> 2;
SELECT 'a'::bytea <%%> 'b'::bytea;
SELECT 'a' <~^~> ARRAY['b'];

DROP TABLE texts, asked, long_asked, longer;
DROP FUNCTION answers;
