-- docs/hybrid.md: its statements and plans, and that answers are those without indexes
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE articles (
    id bigint PRIMARY KEY,
    tenant_id integer NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    data jsonb NOT NULL,
    latitude float8,
    longitude float8,
    embedding vector(8),
    language text GENERATED ALWAYS AS (data ->> 'language') STORED,
    words tsvector GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || body)) STORED
);
CREATE FUNCTION word(number integer) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT (ARRAY['robust', 'integer', 'program', 'index', 'vector', 'search', 'filter', 'tenant', 'policy', 'planner', 'graph', 'tree', 'hash', 'page', 'buffer', 'query', 'join', 'batch',
		'engine', 'memory', 'river', 'mountain', 'bridge', 'harbour', 'museum', 'garden', 'station', 'market', 'castle', 'tower'])[1 + (number & 2147483647) % 30] $$;
INSERT INTO articles SELECT i, i % 50, 'On ' || word(hashint4(i)) || ' ' || word(hashint4(i + 7)) || CASE WHEN i % 2000 = 57 THEN ' aqueduct' ELSE '' END,
	(SELECT string_agg(word(hashint4(i * 31 + n)), ' ') FROM generate_series(1, 2 + i % 11) n),
	jsonb_build_object('language', (ARRAY['en', 'de', 'fr'])[1 + i % 3], 'year', 2000 + i % 23, 'tags', jsonb_build_array(word(hashint4(i + 5)), word(hashint4(i + 6)))),
	48 + hashint4(i) / 2147483648.0, 11 + hashint4(i + 100000) / 2147483648.0,
	(SELECT array_agg(hashint4(i * 8 + d) / 2147483648.0 ORDER BY d) FROM generate_series(1, 8) d)::vector FROM generate_series(1, 10000) i;
CREATE INDEX articles_embedding ON articles USING ivfadc (embedding vector_cosine_ops, tenant_id, language, latitude, longitude,
    ((data ->> 'year')::integer), (data @> '{"tags": ["river"]}'));
CREATE INDEX articles_bm25 ON articles USING matchcount (words tsvector_bm25_ops, tenant_id, language filter_ops);
CREATE INDEX articles_words ON articles USING gin (words);
VACUUM articles;
ANALYZE articles;
\set near '''[.1,.2,.3,.4,.5,.6,.7,.8]'''

-- Whether a prepared statement's rows and their order are those without indexes: those of few enough rows to be compared exactly
CREATE FUNCTION same_rows(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text;
	expected text;
BEGIN
	EXECUTE 'CREATE TEMP TABLE with_indexes AS EXECUTE ' || call;
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
	EXECUTE 'CREATE TEMP TABLE without AS EXECUTE ' || call;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'on', true);
	SELECT string_agg(w::text, ' ') INTO found FROM with_indexes w;
	SELECT string_agg(w::text, ' ') INTO expected FROM without w;
	DROP TABLE with_indexes, without;
	RETURN format('%s rows, the same: %s', (SELECT count(*) FROM regexp_matches(found, '\)( |$)', 'g')), found = expected);
END $$;
-- words and meaning
SET plan_cache_mode = force_generic_plan;
PREPARE fused(text, vector, integer) AS
WITH by_words AS (
    SELECT id, rank() OVER (ORDER BY distance) AS place FROM
        (SELECT id, words <&> bm25_query('articles_bm25', websearch_to_tsquery('english', $1)) AS distance
            FROM articles WHERE tenant_id = $3 ORDER BY distance LIMIT 60) w WHERE distance < 0),
by_meaning AS (
    SELECT id, rank() OVER (ORDER BY distance) AS place FROM
        (SELECT id, embedding <=> $2 AS distance FROM articles WHERE tenant_id = $3 ORDER BY distance LIMIT 60) m)
SELECT a.id, a.title, round(s.score, 4) AS score
    FROM (SELECT id, coalesce(1.0 / (60 + w.place), 0) + coalesce(1.0 / (60 + m.place), 0) AS score
        FROM by_words w FULL JOIN by_meaning m USING (id) ORDER BY score DESC, id LIMIT 10) s
    JOIN articles a USING (id) ORDER BY s.score DESC, id;
EXECUTE fused('river bridge', :near, 7);
SELECT same_rows($$fused('river bridge', '[.1,.2,.3,.4,.5,.6,.7,.8]', 7)$$);
PREPARE by_words(text, integer) AS
SELECT id, words <&> bm25_query('articles_bm25', websearch_to_tsquery('english', $1)) AS distance
    FROM articles WHERE tenant_id = $2 ORDER BY distance LIMIT 60;
EXPLAIN (COSTS OFF) EXECUTE by_words('river bridge', 7);
PREPARE by_rank(text, integer) AS
SELECT id, rank() OVER (ORDER BY score DESC) AS place FROM
    (SELECT id, ts_rank_cd(words, query) AS score FROM articles, websearch_to_tsquery('english', $1) query
        WHERE words @@ query AND tenant_id = $2 ORDER BY score DESC, id LIMIT 60) w;
SELECT same_rows($$by_rank('river bridge', 7)$$);
PREPARE mixed(vector) AS
SELECT id FROM
    (SELECT id, embedding <=> $1 AS distance, (data ->> 'year')::integer AS year FROM articles ORDER BY distance LIMIT 100) near
    ORDER BY distance + 0.01 * (2025 - year), id LIMIT 10;
CREATE TABLE mixed_ids AS EXECUTE mixed(:near);
SELECT count(*) FROM mixed_ids;

-- words as a condition
PREPARE with_word(vector) AS
SELECT id FROM articles WHERE words @@ websearch_to_tsquery('english', 'river') ORDER BY embedding <=> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE with_word(:near);
PREPARE with_two_words(vector) AS SELECT id FROM articles WHERE words @@ websearch_to_tsquery('english', 'river castle') ORDER BY embedding <=> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE with_two_words(:near);
SELECT same_rows(format('with_two_words(%L)', :near));
PREPARE with_rare_word(vector) AS SELECT id FROM articles WHERE words @@ websearch_to_tsquery('english', 'aqueduct') ORDER BY embedding <=> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE with_rare_word(:near);
SELECT same_rows($$with_rare_word('[.1,.2,.3,.4,.5,.6,.7,.8]')$$);

-- documents
PREPARE of_years(vector) AS
SELECT id FROM articles WHERE (data ->> 'year')::integer >= 2010 AND data @> '{"tags": ["river"]}' ORDER BY embedding <=> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE of_years(:near);
SELECT same_rows($$of_years('[.1,.2,.3,.4,.5,.6,.7,.8]')$$);

-- a policy as a key: beside a leakproof condition, and below others
CREATE ROLE hybrid_reader;
GRANT SELECT ON articles TO hybrid_reader;
ALTER TABLE articles ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON articles USING (tenant_id = current_setting('app.tenant')::integer);
CREATE FUNCTION article_query(words text) RETURNS bm25_query
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$ SELECT bm25_query('articles_bm25', websearch_to_tsquery('english', words)) $$;
SET ROLE hybrid_reader;
SET app.tenant = '7';
PREPARE in_german(vector) AS
SELECT id FROM articles WHERE language = 'de' ORDER BY embedding <=> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE in_german(:near);
SELECT same_rows($$in_german('[.1,.2,.3,.4,.5,.6,.7,.8]')$$);
PREPARE since(vector) AS
SELECT id FROM articles WHERE (data ->> 'year')::integer >= 2010 ORDER BY embedding <=> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE since(:near);
SELECT same_rows($$since('[.1,.2,.3,.4,.5,.6,.7,.8]')$$);
EXPLAIN (COSTS OFF)
SELECT id FROM articles WHERE words @@ 'aqueduct' ORDER BY ts_rank_cd(words, 'aqueduct') DESC LIMIT 10;
SELECT bm25_query('articles_bm25', 'river');
PREPARE own_words(text) AS
SELECT id, words <&> article_query($1) AS distance FROM articles ORDER BY distance LIMIT 60;
EXPLAIN (COSTS OFF) EXECUTE own_words('river bridge');
PREPARE own_scores(text) AS SELECT distance FROM (SELECT id, words <&> article_query($1) AS distance FROM articles ORDER BY distance LIMIT 60) w;
SELECT same_rows($$own_scores('river bridge')$$);
-- the same plans for another tenant
SET app.tenant = '8';
SELECT same_rows($$in_german('[.1,.2,.3,.4,.5,.6,.7,.8]')$$);
SELECT same_rows($$own_scores('river bridge')$$);
RESET ROLE;

-- a list of tenants: a key as an array, and no key as a set
CREATE TABLE members (name name, tenant_id integer);
INSERT INTO members VALUES ('hybrid_reader', 7), ('hybrid_reader', 9), ('another', 8);
GRANT SELECT ON members TO hybrid_reader;
ALTER POLICY own ON articles USING (tenant_id = ANY (ARRAY(SELECT m.tenant_id FROM members m WHERE m.name = current_user)));
\getenv tests PG_ABS_SRCDIR
\set plan_of :tests '/sql/include/plan_of.sql'
\i :plan_of
SET ROLE hybrid_reader;
PREPARE of_members(vector) AS SELECT id, tenant_id FROM articles ORDER BY embedding <=> $1 LIMIT 5;
SELECT plan_of($$EXECUTE of_members('[.1,.2,.3,.4,.5,.6,.7,.8]')$$);
EXECUTE of_members(:near);
RESET ROLE;
ALTER POLICY own ON articles USING (tenant_id IN (SELECT m.tenant_id FROM members m WHERE m.name = current_user));
SET ROLE hybrid_reader;
SELECT count(*) FROM plan_of($$EXECUTE of_members('[.1,.2,.3,.4,.5,.6,.7,.8]')$$) line WHERE line ~ 'Index Cond';
EXECUTE of_members(:near);
RESET ROLE;
DROP FUNCTION same_rows, article_query, plan_of;
DROP TABLE articles, members, mixed_ids;
DROP FUNCTION word;
DROP ROLE hybrid_reader;
