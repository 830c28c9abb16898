-- documents by an index: BM25 with weights by the statistics of the index, and with given ones
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
SET extra_float_digits = 0;
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of

-- queries
SELECT '[1.2,0.75,57.25] program:3.1 robust:6.9'::bm25_query, ' [ 1.2 , 0.75,1e2 ]"ice cream":1 é:.5 "a:b":2.50 "1":3'::bm25_query AS blanks, '[0,0,1]'::bm25_query AS none;
SELECT 'robust:1'::bm25_query;
SELECT '[1.2,0.75] robust:1'::bm25_query;
SELECT '[1.2,0.75,57.25 robust:1'::bm25_query;
SELECT '[1.2,x,57.25] robust:1'::bm25_query;
SELECT '[1.2,0.75,57.25] robust'::bm25_query;
SELECT '[1.2,0.75,57.25] robust:'::bm25_query;
SELECT '[1.2,0.75,57.25] robust:x'::bm25_query;
SELECT '[1.2,0.75,57.25] a:1 b:2 a:1'::bm25_query;
\set VERBOSITY sqlstate
SELECT '[-1,0.75,57.25]'::bm25_query;
SELECT '[1.2,1.5,57.25]'::bm25_query;
SELECT '[1.2,0.75,0]'::bm25_query;
SELECT '[1.2,0.75,57.25] a:0'::bm25_query;
SELECT '[1.2,0.75,57.25] a:-1'::bm25_query;
SELECT '[1.2,0.75,57.25] a:1e10'::bm25_query;
SELECT ('[1.2,0.75,57.25] ' || (SELECT string_agg('a' || i || ':1', ' ') FROM generate_series(1, 16384) i))::bm25_query;
SELECT bm25_score((SELECT string_agg('a' || i, ' ') FROM generate_series(1, 32769) i)::tsvector, '[1,0,1] a1:1');
\set VERBOSITY default
SELECT bm25_score((SELECT string_agg('a' || i, ' ') FROM generate_series(1, 32768) i)::tsvector, '[1,0,1] a1:2') AS largest,
	bm25_score('a', ('[1,0,1] ' || (SELECT string_agg('a' || i || ':1', ' ') FROM generate_series(1, 16382) i) || ' a:4')::bm25_query) AS longest_query;

-- scores
SELECT bm25_score('cat:1,2 dog:3', '[1,0,1] cat:6') AS four, bm25_score('cat:1A,2B dog:3', '[1,0,1] cat:6') AS labels, bm25_score('cat dog', '[1,0,1] cat:6') AS stripped,
	bm25_score('cat:1,2 dog:3', '[1,0,1] bird:1') AS none, bm25_score('', '[1,0,1] cat:1') AS empty, bm25_score('cat', '[1,0,1]') AS nothing, bm25_score(NULL, '[1,0,1]') AS null;
SELECT 'cat:1,2 dog:3'::tsvector <&> '[1.2,0.75,4] cat:2 dog:1'::bm25_query AS distance, -(2 * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 4)) + 1 / (1 + 1.2 * (0.25 + 0.75 * 3 / 4))) AS by_hand,
	'cat dog'::tsvector <&> 'dog'::tsvector AS overlap, 'cat dog'::tsvector <&> 'dog' AS literal;
SELECT oid::regprocedure, provolatile, proisstrict, proparallel FROM pg_proc WHERE proname IN ('bm25_query', 'bm25_score', 'bm25_distance') AND pronargs > 1 ORDER BY oid::regprocedure::text COLLATE "C";
SELECT opcname, opcdefault, opcintype::regtype, amvalidate(oid) FROM pg_opclass WHERE opcname = 'tsvector_bm25_ops';

-- documents of some of 400 words, low ones more frequent
CREATE FUNCTION made_document(seed integer) RETURNS tsvector AS $$
	SELECT CASE WHEN seed % 41 = 0 THEN NULL WHEN seed % 37 = 0 THEN ''
			ELSE to_tsvector('simple', string_agg('w' || (abs(hashint4(seed * 1000 + i)) % (1 + abs(hashint4(seed * 1000 + i + 500000)) % 400)), ' ')) END
		FROM generate_series(1, 1 + seed % 50) i
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE documents (id integer PRIMARY KEY, kind integer, words tsvector);
INSERT INTO documents SELECT i, i % 10, made_document(i) FROM generate_series(1, 3000) i;
ANALYZE documents;
CREATE INDEX documents_words ON documents USING matchcount (words tsvector_bm25_ops);
CREATE TABLE queries (id integer, words tsvector);
INSERT INTO queries SELECT i, made_document(i * 131) FROM generate_series(1, 30) i;
INSERT INTO queries VALUES (31, ''), (32, 'unknown'), (33, 'unknown w0'), (34, 'w399'), (35, NULL), (36, (SELECT string_agg('w' || i, ' ') FROM generate_series(0, 410) i)::tsvector);

-- the definition, in SQL
CREATE FUNCTION defined_query(words tsvector, k1 float8, b float8) RETURNS TABLE (lexeme text, weight float8, average float8) AS $$
	WITH n AS (SELECT count(*) AS rows, sum((SELECT coalesce(sum(greatest(cardinality(positions), 1)), 0) FROM unnest(d.words))) AS length FROM documents d WHERE d.words IS NOT NULL)
	SELECT q.lexeme, greatest(cardinality(q.positions), 1) * (k1 + 1) * ln(1 + (n.rows - f.count + 0.5) / (f.count + 0.5)), n.length::float8 / n.rows
		FROM n, unnest(words) q, LATERAL (SELECT count(*) FROM documents d WHERE d.words @@ q.lexeme::tsquery) f
$$ LANGUAGE sql;
CREATE FUNCTION defined_score(document tsvector, words tsvector, k1 float8, b float8) RETURNS float8 AS $$
	SELECT coalesce(sum(q.weight * f.count / (f.count + k1 * (1 - b + b * l.length / q.average))), 0)
		FROM defined_query(words, k1, b) q JOIN (SELECT lexeme, greatest(cardinality(positions), 1)::float8 AS count FROM unnest(document)) f USING (lexeme),
			(SELECT sum(greatest(cardinality(positions), 1)) AS length FROM unnest(document)) l
$$ LANGUAGE sql;
SELECT count(*), count(*) FILTER (WHERE abs(bm25_score(d.words, bm25_query('documents_words', q.words)) - defined_score(d.words, q.words, 1.2, 0.75)) > 1e-9) AS wrong,
		count(*) FILTER (WHERE abs(bm25_score(d.words, bm25_query('documents_words', q.words, 2, 0.5)) - defined_score(d.words, q.words, 2, 0.5)) > 1e-9) AS wrong_with_others
	FROM documents d, queries q WHERE d.id % 100 = 7 AND q.id % 6 = 1 AND d.words IS NOT NULL;

-- answers by an index, and by a sort or a scan
CREATE FUNCTION set_plan(by_index boolean) RETURNS void AS $$
	SELECT set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name
$$ LANGUAGE sql;
CREATE FUNCTION distances(q bm25_query, k integer, by_index boolean, condition text) RETURNS float8[] AS $$
DECLARE
	found float8[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT words <&> $1 AS d FROM documents WHERE %s ORDER BY words <&> $1 LIMIT %s) n', condition, k) INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION rows_within(q bm25_query, bound text, by_index boolean) RETURNS integer[] AS $$
DECLARE
	found integer[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM documents WHERE words <&> $1 %s OFFSET 0) n', bound) INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql SET enable_sort = on;
CREATE FUNCTION compared(k integer, condition text DEFAULT 'true', OUT queries bigint, OUT wrong bigint) AS $$
	SELECT count(*), count(*) FILTER (WHERE distances(q, k, true, condition) IS DISTINCT FROM distances(q, k, false, condition))
		FROM (SELECT bm25_query('documents_words', words, id % 3, (id % 5) / 4.0) AS q FROM queries OFFSET 0) n
$$ LANGUAGE sql;
CREATE FUNCTION bounded(bound text, OUT found bigint, OUT wrong bigint) AS $$
	SELECT sum(cardinality(rows_within(q, bound, true))), count(*) FILTER (WHERE rows_within(q, bound, true) IS DISTINCT FROM rows_within(q, bound, false))
		FROM (SELECT bm25_query('documents_words', words) AS q FROM queries OFFSET 0) n
$$ LANGUAGE sql;
SELECT k, (compared(k)).* FROM unnest(ARRAY[1, 10, 300, 4000]) k;
SELECT * FROM compared(10, 'kind = 3');
SELECT * FROM compared(10, 'words <&> $1 <= -2 AND kind < 5');
SELECT bound, (bounded(bound)).wrong FROM unnest(ARRAY['<= NULL', '<= -1000', '< -20', '<= -5', '< -0.5', '< 0', '<= 0', '<= ''infinity''', '<= ''nan''']) bound;
-- inserts and deletes, before and after a merge
INSERT INTO documents SELECT i, i % 10, made_document(i) FROM generate_series(3001, 3400) i;
INSERT INTO documents VALUES (3401, 1, ''), (3402, 2, NULL), (3403, 3, (SELECT string_agg('w' || i, ' ') FROM generate_series(1, 32768) i)::tsvector);
SELECT k, (compared(k)).* FROM unnest(ARRAY[1, 10, 4000]) k;
SELECT count(*), count(*) FILTER (WHERE abs(bm25_score(d.words, bm25_query('documents_words', q.words)) - defined_score(d.words, q.words, 1.2, 0.75)) > 1e-9) AS wrong
	FROM documents d, queries q WHERE d.id % 500 = 7 AND q.id % 6 = 1 AND d.words IS NOT NULL;
DELETE FROM documents WHERE id % 7 = 3;
UPDATE documents SET words = words || 'w7' WHERE id % 11 = 5;
SELECT k, (compared(k)).* FROM unnest(ARRAY[1, 10, 4000]) k;
VACUUM documents;
CALL pgwarp_merge('documents_words');
SELECT k, (compared(k)).* FROM unnest(ARRAY[1, 10, 4000]) k;
SELECT live_rows, dead_rows FROM pgwarp_check('documents_words', true);
SELECT method, rows, delta_rows, dead_rows, options, attainable_recall FROM pgwarp_index_info('documents_words');
REINDEX INDEX documents_words;
SELECT k, (compared(k)).* FROM unnest(ARRAY[1, 10, 4000]) k;
SELECT pgwarp_release('documents_words'), pgwarp_prewarm('documents_words') > 0 AS prewarmed;

-- words of a query
CREATE FUNCTION lexemes_of(bm25_query) RETURNS text AS $$SELECT string_agg(split_part(w, ':', 1), ' ' ORDER BY w) FROM unnest(string_to_array($1::text, ' ')) w WHERE w !~ '^\['$$ LANGUAGE sql;
SELECT lexemes_of(bm25_query('documents_words', 'w1 & (w2 | w3) <-> w4 & !w5 & !(w6 | w7) & w8:A'::tsquery)) AS operators, lexemes_of(bm25_query('documents_words', '!w1'::tsquery)) AS none,
	lexemes_of(bm25_query('documents_words', ''::tsquery)) AS empty;
SELECT bm25_query('documents_words', 'w1 & w1 & w2'::tsquery)::text = bm25_query('documents_words', 'w1:1,2 w2:1'::tsvector)::text AS twice,
	bm25_query('documents_words', websearch_to_tsquery('simple', 'w1 "w2 w3" -w4'))::text = bm25_query('documents_words', 'w1:1 w2:2 w3:3'::tsvector)::text AS websearch;
SET default_text_search_config = 'pg_catalog.english';
SELECT lexemes_of(bm25_query('documents_words', 'The robust programs')) AS text;
RESET default_text_search_config;
SELECT bm25_query('documents_words', 'w1:*'::tsquery);
SELECT bm25_query('documents_words', 'w1'::tsvector, k1 => -1);
SELECT bm25_query('documents_words', 'w1'::tsvector, b => 2);
SELECT bm25_query(NULL, 'w1'::tsvector) IS NULL AS null_index, bm25_query('documents_words', NULL::tsvector) IS NULL AS null_words;

-- other indexes, rights
CREATE INDEX documents_overlap ON documents USING matchcount (words);
SELECT bm25_query('documents_overlap', 'w1'::tsvector);
SELECT bm25_query('documents_pkey', 'w1'::tsvector);
SELECT bm25_query('documents', 'w1'::tsvector);
SELECT bm25_query('no_index', 'w1'::tsvector);
DROP INDEX documents_overlap;
CREATE ROLE regress_bm25_reader;
SET ROLE regress_bm25_reader;
SELECT bm25_query('documents_words', 'w1'::tsvector);
RESET ROLE;
GRANT SELECT (words) ON documents TO regress_bm25_reader;
SET ROLE regress_bm25_reader;
SELECT bm25_query('documents_words', 'w1'::tsvector) IS NOT NULL AS granted;
RESET ROLE;
ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bm25_reader;
SELECT bm25_query('documents_words', 'w1'::tsvector);
RESET ROLE;
ALTER TABLE documents DISABLE ROW LEVEL SECURITY;

-- partitions: the statistics of all
CREATE TABLE parts (id integer, words tsvector) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (10000) PARTITION BY HASH (id);
CREATE TABLE parts_21 PARTITION OF parts_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_22 PARTITION OF parts_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT id, words FROM documents;
CREATE INDEX parts_words ON parts USING matchcount (words tsvector_bm25_ops);
SELECT bm25_query('parts_words', 'w1 w2 w300'::tsvector)::text = bm25_query('documents_words', 'w1 w2 w300'::tsvector)::text AS same;
SET enable_seqscan = off;
SELECT count(*) FILTER (WHERE a.d IS DISTINCT FROM b.d) AS wrong FROM
	(SELECT row_number() OVER () AS n, d FROM (SELECT words <&> bm25_query('parts_words', 'w1 w2 w300'::tsvector) AS d FROM parts ORDER BY 1 LIMIT 100) x) a
	JOIN (SELECT row_number() OVER () AS n, d FROM (SELECT words <&> bm25_query('parts_words', 'w1 w2 w300'::tsvector) AS d FROM documents ORDER BY 1 LIMIT 100) x) b USING (n);

-- plans
EXPLAIN (COSTS OFF) SELECT id FROM documents ORDER BY words <&> bm25_query('documents_words', 'w1 w2'::tsvector) LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM documents WHERE words @@ 'w1 & w2' ORDER BY words <&> bm25_query('documents_words', 'w1 & w2'::tsquery) LIMIT 10;
EXPLAIN (COSTS OFF) SELECT id FROM documents WHERE bm25_distance(words, '[1,0,1] w1:2') <= -1;
SELECT plan_of($$SELECT n.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM documents ORDER BY words <&> bm25_query('documents_words', q.words) LIMIT 3) n$$) AS plan;
SELECT count(*) FROM queries q CROSS JOIN LATERAL (SELECT id FROM documents ORDER BY words <&> bm25_query('documents_words', q.words) LIMIT 3) n;
RESET enable_seqscan;

-- empty tables and tables of empty documents have statistics too
CREATE TABLE none (words tsvector);
CREATE INDEX none_words ON none USING matchcount (words tsvector_bm25_ops);
SELECT bm25_query('none_words', 'w1'::tsvector);
INSERT INTO none VALUES (''), (''), (NULL);
SELECT bm25_query('none_words', 'w1'::tsvector);
CREATE INDEX ON none USING matchcount (words tsvector_bm25_ops) WITH (gram = 4);

-- binary form
SELECT encode(bm25_query_send('[1,0,1] a:2'), 'escape');

DROP TABLE documents, queries, parts, none;
DROP ROLE regress_bm25_reader;
