-- text under edit distance, by an index: answers are those of the sort
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

-- texts of 0 to 29 characters, some of several bytes, with many equal distances
CREATE FUNCTION made_text(seed integer) RETURNS text AS $$
	SELECT translate(left(md5(seed::text), seed % 30), '0123456789abcdef', 'aabbccdd eéжжΩ漢😀')
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE titles (id integer PRIMARY KEY, kind integer, title text);
INSERT INTO titles SELECT i, i % 10, CASE WHEN i % 97 <> 0 THEN made_text(i) END FROM generate_series(1, 2000) i;
CREATE TABLE queries (q text);
INSERT INTO queries SELECT made_text(i * 131) FROM generate_series(1, 12) i;
INSERT INTO queries SELECT overlay(title PLACING 'xy' FROM 3) FROM titles WHERE id % 200 = 7;
INSERT INTO queries VALUES (''), ('a'), ('漢😀'), (repeat('no row is like it ', 40)), (NULL);

CREATE FUNCTION distances(query text, k integer, by_index boolean, condition text) RETURNS double precision[] AS $$
DECLARE
	found double precision[];
BEGIN
	PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name;
	EXECUTE format('SELECT array_agg(d) FROM (SELECT title <~~> $1 AS d FROM titles WHERE %s ORDER BY title <~~> $1 LIMIT %s) n',
		condition, k) INTO found USING query;
	RETURN found;
END
$$ LANGUAGE plpgsql;
-- the number of queries, and of those whose k nearest rows by the index have other distances than by the sort
CREATE FUNCTION compared(k integer, condition text DEFAULT 'true', OUT all_queries bigint, OUT wrong bigint) AS $$
	SELECT count(*), count(*) FILTER (WHERE distances(q, k, true, condition) IS DISTINCT FROM distances(q, k, false, condition))
	FROM queries
$$ LANGUAGE sql;

CREATE INDEX titles_title ON titles USING matchcount (title);
SELECT amname, opcname, opcdefault, format_type(opcintype, NULL) FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'text_edit_ops';
SELECT pg_get_indexdef('titles_title'::regclass);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'text_edit_ops';
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY title <~~> 'a word' LIMIT 10;
RESET enable_seqscan;
SELECT * FROM compared(1);
SELECT * FROM compared(10);
SELECT * FROM compared(300);
SELECT * FROM compared(3000);

-- inserts and deletes, before and after a merge
INSERT INTO titles SELECT i, i % 10, made_text(i) FROM generate_series(2001, 2300) i;
INSERT INTO titles VALUES (2301, 1, ''), (2302, 1, NULL), (2303, 1, repeat('漢', 5000)), (2304, 1, repeat('x', 65535)), (2305, 1, repeat('😀', 65535));
SELECT * FROM compared(10);
SELECT * FROM compared(3000);
SELECT id, title <~~> repeat('漢', 4990) AS distance FROM titles WHERE id > 2300 ORDER BY title <~~> repeat('漢', 4990) LIMIT 1;
DELETE FROM titles WHERE id % 7 = 3;
UPDATE titles SET title = title || '!' WHERE id % 11 = 5 AND id < 2300;
SELECT * FROM compared(10);
VACUUM titles;
SELECT * FROM compared(3000);
CALL pgwarp_merge('titles_title');
SELECT * FROM compared(10);
SELECT * FROM compared(3000);
SELECT live_rows, dead_rows FROM pgwarp_check('titles_title', true);
DELETE FROM titles WHERE id IN (2304, 2305);
VACUUM titles;
CALL pgwarp_merge('titles_title');
REINDEX INDEX titles_title;
SELECT * FROM compared(10);
REINDEX INDEX CONCURRENTLY titles_title;
SELECT * FROM compared(3000);
SELECT method, rows, delta_rows, dead_rows, options, calibration, attainable_recall, drift FROM pgwarp_index_info('titles_title');
SELECT pgwarp_release('titles_title'), pgwarp_prewarm('titles_title') > 0 AS prewarmed;

-- filters beside the order, and bounds of the distance
SELECT * FROM compared(10, 'kind = 3');
SELECT * FROM compared(3000, 'kind = 3');
SELECT * FROM compared(50, 'title <~~> $1 <= 6');
SELECT * FROM compared(10, 'title IS NOT NULL');

-- a page is the beginning of every larger page
CREATE FUNCTION page(query text, k integer) RETURNS integer[] AS $$
	SELECT array_agg(id) FROM (SELECT id FROM titles ORDER BY title <~~> query LIMIT k) n
$$ LANGUAGE sql SET enable_seqscan = off SET enable_sort = off;
SELECT count(*) AS pages, bool_and((page(q, large))[:small] = page(q, small)) AS prefixes
	FROM queries, (VALUES (1, 10), (10, 11), (10, 200), (200, 2500)) AS v (small, large) WHERE q IS NOT NULL;

-- a cursor
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
DECLARE nearest CURSOR FOR SELECT title <~~> 'abcd' AS distance FROM titles ORDER BY title <~~> 'abcd';
FETCH 3 nearest;
FETCH 3 nearest;
MOVE 2000 nearest;
CLOSE nearest;
COMMIT;

-- joins by edit distance search in batches
SET enable_seqscan = off;
SELECT plan_of($$SELECT q, n.id FROM queries CROSS JOIN LATERAL (SELECT id FROM titles ORDER BY title <~~> q LIMIT 3) n$$) AS plan;
SELECT count(*), count(*) FILTER (WHERE found <> distances(q, 3, false, 'true')) AS wrong
	FROM (SELECT q, array_agg(n.distance ORDER BY n.distance) AS found
		FROM queries CROSS JOIN LATERAL (SELECT title <~~> q AS distance FROM titles ORDER BY title <~~> q LIMIT 3) n
		WHERE q IS NOT NULL GROUP BY q) j;
-- small batches, of which the engine answers the next while one is joined
SET pgwarp.batch_size = 16;
SELECT count(*), sum(distance) = (SELECT sum(d) FROM unnest(ARRAY(SELECT min(a.title <~~> b.title) FROM titles a JOIN titles b ON b.id <> a.id AND b.title IS NOT NULL WHERE a.kind = 4 AND a.title IS NOT NULL GROUP BY a.id)) d) AS same
	FROM titles a CROSS JOIN LATERAL (SELECT a.title <~~> b.title AS distance FROM titles b WHERE b.id <> a.id ORDER BY b.title <~~> a.title LIMIT 1) n
	WHERE a.kind = 4 AND a.title IS NOT NULL;
-- filters that drop many of the nearest
SELECT count(*), bool_and(by_index = by_sort) AS same
	FROM (SELECT (SELECT array_agg(title <~~> q) FROM (SELECT title FROM titles WHERE kind = 3 ORDER BY title <~~> q LIMIT 4) t) AS by_index,
			(SELECT array_agg(d) FROM (SELECT d FROM (SELECT title <~~> q AS d FROM titles WHERE kind = 3 OFFSET 0) a ORDER BY d LIMIT 4) t) AS by_sort
		FROM queries WHERE q IS NOT NULL) j;
-- a query that is too long raises an error when its row is reached, not when it is read ahead
CREATE TABLE asked AS SELECT i, CASE WHEN i = 25 THEN repeat('x', 65536) ELSE made_text(i) END AS q FROM generate_series(1, 40) i;
SELECT count(*) FROM (SELECT FROM asked CROSS JOIN LATERAL (SELECT id FROM titles ORDER BY title <~~> q LIMIT 1) n LIMIT 15) j;
SELECT count(*) FROM asked CROSS JOIN LATERAL (SELECT id FROM titles ORDER BY title <~~> q LIMIT 1) n;
DROP TABLE asked;
RESET pgwarp.batch_size;
SELECT q, (SELECT title <~~> q FROM titles ORDER BY title <~~> q LIMIT 1) AS nearest FROM queries WHERE length(q) < 3 ORDER BY q COLLATE "C";
RESET enable_seqscan;

-- a generic plan
SET enable_seqscan = off;
PREPARE nearest (text) AS SELECT id FROM titles ORDER BY title <~~> $1 LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE nearest ('abc');
EXECUTE nearest (NULL);
RESET plan_cache_mode;
RESET enable_seqscan;
DEALLOCATE nearest;
DROP INDEX titles_title;

-- partial and expression indexes, included columns, other types that are text
CREATE INDEX titles_partial ON titles USING matchcount (title) WITH (gram = 2) WHERE kind = 3;
SELECT * FROM compared(10, 'kind = 3');
DROP INDEX titles_partial;
CREATE INDEX titles_lower ON titles USING matchcount (lower(title)) INCLUDE (id) WITH (gram = 4);
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id FROM titles ORDER BY lower(title) <~~> 'abcd' LIMIT 3;
SELECT lower(title) <~~> 'abcd' AS distance FROM titles ORDER BY lower(title) <~~> 'abcd' LIMIT 3;
DROP INDEX titles_lower;
CREATE INDEX titles_included ON titles USING matchcount (title) INCLUDE (id, kind);
VACUUM titles;
EXPLAIN (COSTS OFF) SELECT id, title <~~> 'abcd' FROM titles ORDER BY title <~~> 'abcd' LIMIT 5;
SELECT count(*), bool_and(d = t.title <~~> 'abcd') AS right_distances
	FROM (SELECT id, title <~~> 'abcd' AS d FROM titles ORDER BY title <~~> 'abcd' LIMIT 50) n JOIN titles t USING (id);
INSERT INTO titles VALUES (3000, 1, 'abcd'), (3001, 2, 'abce');
SELECT id, kind, title <~~> 'abcd' AS distance FROM titles ORDER BY title <~~> 'abcd' LIMIT 2;
CALL pgwarp_merge('titles_included');
SELECT id, kind, title <~~> 'abcd' AS distance FROM titles ORDER BY title <~~> 'abcd' LIMIT 2;
SELECT live_rows = (SELECT count(*) FROM titles) AS whole FROM pgwarp_check('titles_included', true);
DROP INDEX titles_included;
CREATE DOMAIN short_text AS text CHECK (length(VALUE) < 20);
CREATE TABLE others (id integer, v varchar(20), d short_text, c char(6));
INSERT INTO others VALUES (1, 'house', 'house', 'house'), (2, 'mouse', 'mouse', 'mouse'), (3, 'horse', 'horse', 'horse');
CREATE INDEX ON others USING matchcount (v);
CREATE INDEX ON others USING matchcount (d);
CREATE INDEX ON others USING matchcount (c);
CREATE INDEX ON others USING matchcount ((c::text));
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY v <~~> 'moose' LIMIT 1;
SELECT id FROM others ORDER BY v <~~> 'moose' LIMIT 1;
SELECT id FROM others ORDER BY d <~~> 'moose' LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM others ORDER BY c::text <~~> 'moose' LIMIT 1;
SELECT id, c::text <~~> 'moose' AS distance FROM others ORDER BY c::text <~~> 'moose' LIMIT 1;

-- partitions, unlogged and temporary tables, an empty one
CREATE TABLE parts (id integer, title text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (2000) TO (5000);
INSERT INTO parts SELECT id, title FROM titles WHERE id < 2000;
CREATE INDEX ON parts USING matchcount (title);
EXPLAIN (COSTS OFF) SELECT id FROM parts ORDER BY title <~~> 'abcd' LIMIT 3;
INSERT INTO parts VALUES (4000, 'abcdefgh'), (4001, 'abcdefg');
SELECT id, title <~~> 'abcdefgh' AS distance FROM parts ORDER BY title <~~> 'abcdefgh' LIMIT 2;
SELECT plan_of($$SELECT q, n.id FROM queries CROSS JOIN LATERAL (SELECT id FROM parts ORDER BY title <~~> q LIMIT 4) n$$) AS plan;
SELECT count(*), bool_and(by_index = by_sort) AS same
	FROM (SELECT q, array_agg(d ORDER BY d) AS by_index
		FROM queries CROSS JOIN LATERAL (SELECT title <~~> q AS d FROM parts ORDER BY title <~~> q LIMIT 4) n WHERE q IS NOT NULL GROUP BY q) a
	JOIN (SELECT q, (SELECT array_agg(d) FROM (SELECT d FROM (SELECT title <~~> q AS d FROM parts OFFSET 0) a ORDER BY d LIMIT 4) t) AS by_sort FROM queries) b USING (q);
CREATE TEMP TABLE own (title text);
CREATE INDEX ON own USING matchcount (title);
INSERT INTO own VALUES ('own'), ('won'), (NULL);
SELECT title FROM own ORDER BY title <~~> 'wonn' LIMIT 5;
CREATE UNLOGGED TABLE loose (title text);
CREATE INDEX ON loose USING matchcount (title);
SELECT title FROM loose ORDER BY title <~~> 'wonn' LIMIT 5;
INSERT INTO loose VALUES ('own'), ('won');
SELECT title FROM loose ORDER BY title <~~> 'wonn' LIMIT 5;
RESET enable_seqscan;
RESET enable_sort;

-- errors
CREATE INDEX titles_title ON titles USING matchcount (title);
\set VERBOSITY sqlstate
INSERT INTO titles VALUES (4000, 1, repeat('x', 65536));
\set VERBOSITY default
INSERT INTO titles VALUES (4000, 1, repeat('x', 65536));
INSERT INTO titles VALUES (4000, 1, repeat('漢', 65536));
SET enable_seqscan = off;
SELECT id FROM titles ORDER BY title <~~> repeat('x', 65536) LIMIT 1;
RESET enable_seqscan;
CREATE TABLE long AS SELECT repeat('x', 65536) AS title;
CREATE INDEX ON long USING matchcount (title);
CREATE INDEX ON long USING matchcount (left(title, 1000));
CREATE INDEX ON titles USING matchcount (title) WITH (gram = 1);
CREATE INDEX ON titles USING matchcount (title) WITH (gram = 7);
CREATE INDEX ON titles USING matchcount (title) WITH (recall = .9);
CREATE INDEX ON titles USING matchcount (id);
CREATE INDEX ON titles USING matchcount (id text_edit_ops);
CREATE INDEX ON titles USING matchcount (title text_edit_ops, title);
CREATE INDEX ON titles USING exact (title);
CREATE INDEX ON titles USING exact (title text_edit_ops);
SELECT * FROM knn_search('titles_title', 'SELECT title FROM titles', 3);
SELECT * FROM knn_search('titles_title', '{"[1,2]"}'::vector[], 3);
SELECT * FROM knn_graph('titles_title', 3);
SELECT * FROM pgwarp_recall('titles_title');
SELECT * FROM kmeans('titles', 'title', 3);

DROP TABLE titles, queries, others, parts, own, loose, long;
DROP FUNCTION made_text, distances, compared, page, plan_of;
DROP DOMAIN short_text;
