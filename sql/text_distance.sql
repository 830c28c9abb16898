-- Edit distances and similarities of text.
SELECT edit_distance('kitten', 'sitting'), edit_distance('same', 'same'), edit_distance('', ''), edit_distance('', 'abc'), edit_distance('abc', ''), edit_distance('a', 'b'), edit_distance('a', 'a');
SELECT edit_distance('abcd', 'abdc') AS edits, edit_distance_transpositions('abcd', 'abdc') AS swap, edit_distance_transpositions('ca', 'abc') AS restricted, edit_distance_transpositions('', 'ab') AS empty;
SELECT 'kitten' <~~> 'sitting' AS op, pg_typeof('a' <~~> 'b') AS type, 'a' <~~> '' AS empty;

-- a word in a longer text: the left argument is the word
SELECT 'neighbor' <<~~>> 'in the neighbourhood' AS word, 'in the neighbourhood' <<~~>> 'neighbor' AS other_way, 'abc' <<~~>> 'xyz' AS none, '' <<~~>> 'abc' AS empty_word, 'abc' <<~~>> '' AS empty_text;

-- NULL
SELECT edit_distance(NULL, 'a'), edit_distance('a', NULL), edit_distance('a', 'b', NULL), edit_distance_transpositions('a', NULL), NULL <~~> 'a', 'a' <<~~>> NULL, jaro_winkler(NULL, 'a');

-- characters are code points, whatever their bytes and their combining
SELECT edit_distance(U&'\00e9', 'e') AS accent, edit_distance(U&'e\0301', 'e') AS mark, edit_distance(U&'e\0301', U&'\00e9') AS both, edit_distance(U&'\65e5\672c\8a9e', U&'\65e5\672c') AS wide, edit_distance(U&'\+01F600x', U&'x\+01F601') AS wider;
SELECT edit_distance(U&'stra\00dfe', 'strasse'), U&'stra\00dfe' <~~> U&'STRA\1e9eE' AS upper, U&'\00dfe' <<~~>> U&'stra\00dfe' AS word, edit_distance_transpositions(U&'\00e9\0301a', U&'\0301\00e9a') AS swap;

-- char(n) loses its padding by the cast to text, varchar keeps its blanks
SELECT edit_distance('abc'::char(10), 'abc') AS padded, 'abc'::char(10) <~~> 'abcd'::char(20) AS both, edit_distance('abc  '::varchar, 'abc') AS blanks, edit_distance('ABC'::name, 'abc') AS name;
-- collations change no distance, nor do those in which different strings are equal
SELECT edit_distance('abc' COLLATE "C", 'abd') AS c, edit_distance('a' COLLATE "POSIX", 'A') AS posix;
DO $$ BEGIN
	CREATE COLLATION regress_no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	IF NOT ('a' COLLATE regress_no_case = 'A' AND edit_distance('a' COLLATE regress_no_case, 'A') = 1) THEN
		RAISE 'a collation changes distances';
	END IF;
	DROP COLLATION regress_no_case;
EXCEPTION WHEN feature_not_supported THEN NULL;  -- a server without ICU
END $$;

-- at_most: greater distances are at_most + 1
SELECT at_most, edit_distance('kitten', 'sitting', at_most), edit_distance('', '', at_most) AS none, edit_distance('abc', '', at_most) AS empty FROM unnest(ARRAY[0, 1, 2, 3, 4, 2147483646, 2147483647]) at_most;
SELECT edit_distance('a', 'b', at_most => 0);
SELECT edit_distance('a', 'b', -1);
SELECT edit_distance('a', 'b', -2147483648);
\set VERBOSITY sqlstate
SELECT edit_distance('a', 'b', -1);
\set VERBOSITY default

-- too long; the longest
SELECT edit_distance(repeat('a', 65536), 'a');
SELECT 'a' <~~> repeat('a', 65536);
SELECT 'a' <<~~>> repeat(U&'\00e9', 1000000);
SELECT jaro_winkler(repeat('a', 1000000), 'a');
\set VERBOSITY sqlstate
SELECT edit_distance_transpositions('a', repeat('a', 65536));
\set VERBOSITY default
SELECT edit_distance(repeat('a', 65535), repeat(U&'\00e9', 65534)) AS all_others, edit_distance(repeat('ab', 32767), repeat('ba', 32767)) AS shifted, edit_distance(repeat('ab', 32767), repeat('ba', 32767), 1) AS at_most, edit_distance(left(repeat(U&'\00e9', 65536), 65535), 'a') AS wide;
SELECT 'needle' <<~~>> (repeat('hay', 20000) || 'neeedle') AS word, round(jaro_winkler(repeat('ab', 32767), repeat('ba', 32767))::numeric, 4) AS similarity;

-- a comparison of the longest texts can be cancelled in the middle
SELECT clock_timestamp() AS began \gset
SELECT edit_distance(repeat('ab', 32767), repeat('cd', 32767)) AS all_others;
SELECT clock_timestamp() - :'began' AS whole, clock_timestamp() AS began \gset
SET statement_timeout = '5ms';
SELECT edit_distance(repeat('ab', 32767), repeat('cd', 32767)) AS all_others;
RESET statement_timeout;
SELECT clock_timestamp() - :'began' < :'whole'::interval / 2 AS soon;

-- Jaro-Winkler
SELECT a, b, round(jaro_winkler(a, b)::numeric, 4) AS similarity FROM (VALUES ('MARTHA', 'MARHTA'), ('DIXON', 'DICKSONX'), ('DWAYNE', 'DUANE'), ('ABROMS', 'ABRAMS'), ('abc', 'xyz'), ('', ''), ('', 'a'), ('a', 'a'), ('same', 'same'), (U&'b\00e9b\00e9', U&'b\00e9b\00e8')) s(a, b);

-- against dynamic programming in SQL, both ways round
CREATE FUNCTION plain_distance(a text, b text, swaps boolean, within boolean) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	before integer[];
	above integer[] := ARRAY(SELECT CASE WHEN within THEN 0 ELSE j END FROM generate_series(0, length(b)) j);
	here integer[];
	best integer;
BEGIN
	FOR i IN 1 .. length(a) LOOP
		here := ARRAY[i];
		FOR j IN 1 .. length(b) LOOP
			best := least(above[j + 1] + 1, here[j] + 1, above[j] + CASE WHEN substr(a, i, 1) = substr(b, j, 1) THEN 0 ELSE 1 END);
			IF swaps AND i > 1 AND j > 1 AND substr(a, i, 1) = substr(b, j - 1, 1) AND substr(a, i - 1, 1) = substr(b, j, 1) THEN
				best := least(best, before[j - 1] + 1);
			END IF;
			here := here || best;
		END LOOP;
		before := above;
		above := here;
	END LOOP;
	RETURN CASE WHEN within THEN (SELECT min(d) FROM unnest(above) d) ELSE above[length(b) + 1] END;
END $$;
CREATE TABLE pairs AS SELECT i, coalesce(a, '') AS a, coalesce(b, '') AS b FROM (SELECT i,
	(SELECT string_agg(substr(U&'abcd\00e9\65e5\+01F600', 1 + abs(hashint4(i * 1000 + j)) % (3 + i % 5), 1), '') FROM generate_series(1, abs(hashint4(i * 7)) % (CASE WHEN i % 20 = 0 THEN 90 ELSE 12 END)) j) AS a,
	(SELECT string_agg(substr(U&'abcd\00e9\65e5\+01F600', 1 + abs(hashint4(-i * 1000 - j)) % (3 + i % 5), 1), '') FROM generate_series(1, abs(hashint4(i * 11)) % (CASE WHEN i % 20 = 0 THEN 90 ELSE 12 END)) j) AS b
	FROM generate_series(1, 500) i) s;
SELECT count(*), count(*) FILTER (WHERE edit_distance(a, b) = plain_distance(a, b, false, false)) AS levenshtein,
	count(*) FILTER (WHERE edit_distance_transpositions(a, b) = plain_distance(a, b, true, false)) AS transpositions,
	count(*) FILTER (WHERE a <<~~>> b = plain_distance(a, b, false, true)) AS substring,
	count(*) FILTER (WHERE edit_distance(b, a) = edit_distance(a, b) AND a <~~> b = edit_distance(a, b) AND b <~~> a = a <~~> b
		AND edit_distance_transpositions(a, b) = edit_distance_transpositions(b, a) AND abs(jaro_winkler(a, b) - jaro_winkler(b, a)) < 1e-15) AS symmetric
	FROM pairs;
SELECT bool_and(edit_distance(a, b, n) = least(edit_distance(a, b), n + 1)) AS at_most
	FROM pairs, generate_series(greatest(edit_distance(a, b) - 2, 0), edit_distance(a, b) + 2) n;

-- without an index: a sort
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT a FROM pairs ORDER BY a <~~> 'abca' LIMIT 5;
SELECT a, a <~~> 'abca' AS distance FROM pairs ORDER BY a <~~> 'abca', a COLLATE "C" LIMIT 5;
SELECT count(*) FROM pairs WHERE a <~~> 'abca' <= 2;
RESET max_parallel_workers_per_gather;
-- stored out of line and compressed
CREATE TABLE long_texts (t text);
ALTER TABLE long_texts ALTER t SET STORAGE external;
INSERT INTO long_texts VALUES (repeat('abc', 5000)), (repeat('abd', 5000));
ALTER TABLE long_texts ALTER t SET STORAGE extended;
INSERT INTO long_texts VALUES (repeat('abc', 5000)), (repeat(U&'ab\00e9', 5000));
SELECT t <~~> repeat('abc', 5000) AS distance, edit_distance(t, repeat('abc', 5000), 100) AS at_most FROM long_texts;

-- what a planner knows of them
SELECT oprname, oprcom::regoperator, oprcode, oprresult::regtype FROM pg_operator WHERE oprname IN ('<~~>', '<<~~>>') ORDER BY 1;
SELECT oid::regprocedure, provolatile, proisstrict, proparallel, procost FROM pg_proc WHERE proname IN ('edit_distance', 'edit_distance_transpositions', 'text_edit_distance', 'substring_edit_distance', 'jaro_winkler') ORDER BY oid::regprocedure::text COLLATE "C";
DROP TABLE pairs, long_texts;
DROP FUNCTION plain_distance;
