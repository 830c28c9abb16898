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
INSERT INTO documents SELECT i, i % 10, made_document(i) FROM generate_series(1, 1500) i;
ANALYZE documents;
CREATE INDEX documents_words ON documents USING matchcount (words tsvector_bm25_ops);
CREATE TABLE queries (id integer, words tsvector);
INSERT INTO queries SELECT i, made_document(i * 131) FROM generate_series(1, 12) i;
INSERT INTO queries VALUES (13, ''), (14, 'unknown'), (15, 'unknown w0'), (16, 'w399'), (17, NULL), (18, (SELECT string_agg('w' || i, ' ') FROM generate_series(0, 410) i)::tsvector);

-- the definition, in SQL: pairs of a document and a query, and those whose score is another
CREATE FUNCTION against_definition(k1 float8, b float8, OUT pairs bigint, OUT scored bigint, OUT wrong bigint) AS $$
	WITH d AS MATERIALIZED (SELECT id, words, (SELECT coalesce(sum(greatest(cardinality(positions), 1)), 0)::float8 FROM unnest(words)) AS length FROM documents WHERE words IS NOT NULL),
	n AS MATERIALIZED (SELECT count(*) AS rows, avg(length) AS length FROM d),
	occurrences AS MATERIALIZED (SELECT id, lexeme, greatest(cardinality(positions), 1)::float8 AS count FROM d, unnest(words)),
	weights AS MATERIALIZED (SELECT q.id, w.lexeme, greatest(cardinality(w.positions), 1) * (k1 + 1) * ln(1 + (n.rows - coalesce(f.count, 0) + 0.5) / (coalesce(f.count, 0) + 0.5)) AS weight
		FROM n, queries q, unnest(q.words) w LEFT JOIN (SELECT lexeme, count(*) FROM occurrences GROUP BY lexeme) f USING (lexeme)),
	scores AS (SELECT w.id AS query, o.id AS document, sum(w.weight * o.count / (o.count + k1 * (1 - b + b * d.length / n.length))) AS score
		FROM n, weights w JOIN occurrences o USING (lexeme) JOIN d ON d.id = o.id WHERE o.id % 10 = 7 GROUP BY 1, 2),
	given AS (SELECT q.id AS query, d.id AS document, bm25_score(d.words, q.words) AS score
		FROM (SELECT id, bm25_query('documents_words', words, k1, b) AS words FROM queries OFFSET 0) q, d WHERE d.id % 10 = 7 AND q.words IS NOT NULL)
	SELECT count(*), count(s.score), count(*) FILTER (WHERE abs(g.score - coalesce(s.score, 0)) > 1e-9 OR g.score IS NULL)
		FROM given g FULL JOIN scores s USING (query, document)
$$ LANGUAGE sql;
SELECT * FROM against_definition(1.2, 0.75);
SELECT * FROM against_definition(2, 0.5);
SELECT * FROM against_definition(0, 1);

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
	SELECT sum(cardinality(by_index)), count(*) FILTER (WHERE by_index IS DISTINCT FROM by_scan)
		FROM (SELECT rows_within(q, bound, true) AS by_index, rows_within(q, bound, false) AS by_scan
			FROM (SELECT bm25_query('documents_words', words) AS q FROM queries OFFSET 0) n OFFSET 0) n
$$ LANGUAGE sql;
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 300, 4000]) k, compared(k);
SELECT * FROM compared(10, 'kind = 3');
SELECT * FROM compared(10, 'words <&> $1 <= -2 AND kind < 5');
SELECT bound, bounded.* FROM unnest(ARRAY['<= NULL', '<= -1000', '< -20', '<= -5', '< -0.5', '< 0', '<= 0', '<= ''infinity''', '<= ''nan''']) bound, bounded(bound);
-- inserts and deletes, before and after a merge
INSERT INTO documents SELECT i, i % 10, made_document(i) FROM generate_series(1501, 1800) i;
INSERT INTO documents VALUES (1801, 1, ''), (1802, 2, NULL), (1807, 3, (SELECT string_agg('w' || i, ' ') FROM generate_series(1, 32768) i)::tsvector);
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
SELECT * FROM against_definition(1.2, 0.75);
DELETE FROM documents WHERE id % 7 = 3;
UPDATE documents SET words = words || 'w7' WHERE id % 11 = 5;
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
VACUUM documents;
CALL pgwarp_merge('documents_words');
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
SELECT live_rows, dead_rows FROM pgwarp_check('documents_words', true);
SELECT method, rows, delta_rows, dead_rows, options, attainable_recall FROM pgwarp_index_info('documents_words');
REINDEX INDEX documents_words;
SELECT * FROM against_definition(1.2, 0.75);
SELECT k, compared.* FROM unnest(ARRAY[1, 10, 4000]) k, compared(k);
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
-- words that repeat count as one lexeme of a larger weight; so many different ones are too many
SELECT split_part(bm25_query('documents_words'::regclass, (SELECT string_agg('w1', '|')::tsquery FROM generate_series(1, n)), b => 0)::text, ':', 2)::float8
		/ split_part(bm25_query('documents_words', 'w1'::tsquery, b => 0)::text, ':', 2)::float8 AS times FROM unnest(ARRAY[16383, 16384, 40000]) n;
SELECT bm25_query('documents_words', (SELECT string_agg('w' || i, '|')::tsquery FROM generate_series(1, 16384) i));
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

-- a partitioned index without partitions is checked too; without those of some partitions it is not valid
CREATE TABLE no_parts (id integer, words tsvector) PARTITION BY RANGE (id);
CREATE INDEX no_parts_overlap ON no_parts USING matchcount (words);
CREATE INDEX no_parts_gin ON no_parts USING gin (words);
CREATE INDEX no_parts_words ON no_parts USING matchcount (words tsvector_bm25_ops);
SELECT bm25_query('no_parts_overlap', 'w1'::tsvector);
SELECT bm25_query('no_parts_gin', 'w1'::tsvector);
SELECT bm25_query('no_parts_words', ''::tsvector);
CREATE INDEX parts_again ON ONLY parts USING matchcount (words tsvector_bm25_ops);
SELECT bm25_query('parts_again', 'w1'::tsvector);

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
SELECT split_part(q::text, ' ', 1) AS query, bm25_score('w1', q) FROM bm25_query('none_words', 'w1'::tsvector) q;
INSERT INTO none VALUES (''), (''), (NULL);
SELECT split_part(q::text, ' ', 1) AS query, bm25_score('w1', q) FROM bm25_query('none_words', 'w1'::tsvector) q;
CREATE INDEX ON none USING matchcount (words tsvector_bm25_ops) WITH (gram = 4);
-- the calls of a statement have one answer
CREATE FUNCTION add_document() RETURNS void LANGUAGE sql AS $$INSERT INTO none VALUES ('w1')$$;
SELECT before = after AS same FROM (SELECT bm25_query('none_words', 'w1'::tsvector)::text AS before, add_document(), bm25_query('none_words', 'w1'::tsvector)::text AS after) n;
SELECT split_part(q::text, ' ', 1) AS query, bm25_score('w1', q) FROM bm25_query('none_words', 'w1'::tsvector) q;

-- a view names the index by a text
CREATE VIEW weighed AS SELECT bm25_query('none_words'::text::regclass, 'w1'::tsvector) AS q;
REINDEX INDEX CONCURRENTLY none_words;
SELECT split_part(q::text, ' ', 1) AS query, bm25_score('w1', q) FROM weighed;

-- binary form
SELECT encode(bm25_query_send('[1,0,1] a:2'), 'escape');

DROP VIEW weighed;
DROP TABLE documents, queries, parts, no_parts, none;
DROP FUNCTION made_document, against_definition, set_plan, distances, rows_within, compared, bounded, lexemes_of, add_document, plan_of;
DROP ROLE regress_bm25_reader;
