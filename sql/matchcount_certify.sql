-- pgwarp.matchcount_certify = off: answers after one round of candidates
SET client_min_messages = warning;
SET pgwarp.verify_results = on;

CREATE FUNCTION made_text(seed integer) RETURNS text AS $$
	SELECT translate(left(md5(seed::text) || md5((seed * 7)::text), 30 + seed % 20), '0123456789abcdef', 'aabbccdd efghijk')
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE titles (id integer PRIMARY KEY, kind integer, title text);
INSERT INTO titles SELECT i, i % 10, CASE WHEN i % 97 <> 0 THEN made_text(i) END FROM generate_series(1, 4000) i;
CREATE INDEX titles_title ON titles USING matchcount (title);
ANALYZE titles;
CREATE TABLE queries (q text);
INSERT INTO queries SELECT overlay(overlay(title PLACING 'xy' FROM 3) PLACING 'z' FROM 20) FROM titles WHERE id % 200 = 7;
INSERT INTO queries VALUES (''), ('a'), (repeat('no row is like it ', 20));
ANALYZE queries;
CREATE FUNCTION distances(query text, k integer, certify boolean, by_index boolean DEFAULT true, condition text DEFAULT 'true') RETURNS double precision[] AS $$
DECLARE
	found double precision[];
BEGIN
	PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name;
	PERFORM set_config('pgwarp.matchcount_certify', certify::text, true);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT title <~~> $1 AS d FROM titles WHERE %s ORDER BY title <~~> $1 LIMIT %s) n', condition, k) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION is_sorted(d double precision[]) RETURNS boolean AS $$
	SELECT d IS NOT DISTINCT FROM (SELECT array_agg(x ORDER BY x) FROM unnest(d) x)
$$ LANGUAGE sql;
SHOW pgwarp.matchcount_certify;
-- the nearest is found; of the tenth some are missed, but none is wrong, none is out of order, and the number is right
SELECT count(*) AS queries, count(*) FILTER (WHERE distances(q, 1, false) = distances(q, 1, true, false)) AS first_right,
	bool_and(cardinality(distances(q, 10, false)) = 10) AS ten, bool_and(is_sorted(distances(q, 10, false))) AS sorted,
	bool_and((distances(q, 10, false))[10] >= (distances(q, 10, true, false))[10]) AS not_nearer
	FROM queries;
-- (a GPU compares more texts)
SELECT count(*) FILTER (WHERE (distances(q, 10, false))[10] > (distances(q, 10, true, false))[10]) > 0 OR current_setting('pgwarp.device') = 'cuda' AS some_missed,
	count(*) FILTER (WHERE distances(q, 10, true) <> distances(q, 10, true, false)) AS missed_when_certified FROM queries;
-- with filters and many rows too; every row comes once
SELECT bool_and(cardinality(distances(q, 100, false)) = 100) AS hundred, bool_and(cardinality(distances(q, 20, false, true, 'kind = 3')) = 20) AS filtered,
	bool_and(cardinality(distances(q, 5000, false)) = 4000) AS all_rows, bool_and(is_sorted(distances(q, 5000, false))) AS sorted,
	bool_and(distances(q, 5000, false) = distances(q, 5000, true, false)) AS same
	FROM queries WHERE length(q) > 1;
-- bounds are complete
SELECT bool_and(distances(q, 5000, false, true, 'title <~~> $1 <= 12') IS NOT DISTINCT FROM distances(q, 5000, true, false, 'title <~~> $1 <= 12')) AS within,
	bool_and(distances(q, 5, false, true, 'title <~~> $1 <= 30') IS NOT DISTINCT FROM distances(q, 5, true, false, 'title <~~> $1 <= 30')) AS first_within FROM queries;
-- inserted rows, a merge
INSERT INTO titles SELECT i, i % 10, made_text(i) FROM generate_series(4001, 4300) i;
SELECT count(*) FILTER (WHERE distances(q, 1, false) = distances(q, 1, true, false)) AS first_right, bool_and(cardinality(distances(q, 5000, false)) = 4300) AS all_rows FROM queries;
CALL pgwarp_merge('titles_title');
SELECT count(*) FILTER (WHERE distances(q, 1, false) = distances(q, 1, true, false)) AS first_right, bool_and(cardinality(distances(q, 5000, false)) = 4300) AS all_rows FROM queries;

SET pgwarp.matchcount_certify = off;
SET enable_seqscan = off;
SET enable_sort = off;
-- a page is the beginning of every larger page
CREATE FUNCTION page(query text, k integer) RETURNS integer[] AS $$
	SELECT array_agg(id) FROM (SELECT id FROM titles ORDER BY title <~~> query LIMIT k) n
$$ LANGUAGE sql;
SELECT count(*) AS pages, bool_and((page(q, large))[:small] = page(q, small)) AS prefixes
	FROM queries, (VALUES (1, 10), (10, 11), (10, 200)) AS v (small, large);
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM titles ORDER BY title <~~> 'abcd efgh' OFFSET 0) n;
-- a cursor across a change of the setting
BEGIN;
DECLARE nearest CURSOR FOR SELECT id FROM titles ORDER BY title <~~> 'abcd efgh';
MOVE 10 nearest;
SET LOCAL pgwarp.matchcount_certify = on;
MOVE 5000 nearest;
ROLLBACK;
-- joins in batches, and what they tell; the index's recall is not known
CREATE FUNCTION effort() RETURNS SETOF text AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
		SELECT q, n.id FROM queries CROSS JOIN LATERAL (SELECT id FROM titles ORDER BY title <~~> q LIMIT 3) n
	LOOP
		IF line ~ 'Effort' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END
$$ LANGUAGE plpgsql;
SELECT count(*) = 1 AS shown FROM effort() line WHERE line LIKE '%one_round=1';
SELECT count(*), bool_and(n.d = (distances(q, 1, true, false))[1]) FROM queries CROSS JOIN LATERAL (SELECT title <~~> q AS d FROM titles ORDER BY title <~~> q LIMIT 1) n WHERE length(q) BETWEEN 2 AND 100;
SELECT attainable_recall FROM pgwarp_index_info('titles_title');
SET pgwarp.matchcount_certify = on;
SELECT * FROM effort();
SELECT attainable_recall FROM pgwarp_index_info('titles_title');
SET pgwarp.matchcount_certify = maybe;

-- grams
DROP INDEX titles_title;
CREATE INDEX titles_grams ON titles USING matchcount (title text_gram_ops);
SET pgwarp.matchcount_certify = off;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM titles ORDER BY title <%%> 'abcd efgh' OFFSET 0) n;
SELECT count(*) FROM (SELECT id FROM titles ORDER BY title <%%> 'abcd efgh' LIMIT 10) n;

-- sets have a proof in every case, and LSH has none: the setting is nothing to them
CREATE INDEX titles_words ON titles USING matchcount (string_to_array(title, ' '));
SELECT attainable_recall->>'10' AS recall FROM pgwarp_index_info('titles_words');

DROP TABLE titles, queries;
DROP FUNCTION made_text, distances, is_sorted, page, effort;
