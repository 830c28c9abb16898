-- docs/hybrid.md, places: needs PostgreSQL's extension earthdistance
SELECT NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'earthdistance') AS without_earthdistance \gset
\if :without_earthdistance
\quit
\endif
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA places;
CREATE EXTENSION cube SCHEMA places;
SET search_path = public, places;
CREATE EXTENSION earthdistance SCHEMA places;
CREATE TABLE articles (id integer, latitude float8, longitude float8, embedding vector(8));
INSERT INTO articles SELECT i, 48 + hashint4(i) / 2147483648.0, 11 + hashint4(i + 100000) / 2147483648.0,
	(SELECT array_agg(hashint4(i * 8 + d) / 2147483648.0 ORDER BY d) FROM generate_series(1, 8) d)::vector FROM generate_series(1, 10000) i;
CREATE INDEX articles_embedding ON articles USING exact (embedding vector_cosine_ops, latitude, longitude);
CREATE INDEX articles_place ON articles USING gist (ll_to_earth(latitude, longitude));
VACUUM ANALYZE articles;
\set near '''[.1,.2,.3,.4,.5,.6,.7,.8]'''
SET plan_cache_mode = force_generic_plan;

-- a box as keys, and the circle in it above the search; the types of the parameters follow from the statement
PREPARE within_box AS
SELECT id FROM articles
    WHERE latitude BETWEEN $2::float8 - $4::float8 / 111195 AND $2 + $4 / 111195
    AND longitude BETWEEN $3 - $4 / (111195 * cosd($2)) AND $3 + $4 / (111195 * cosd($2))
    AND earth_distance(ll_to_earth(latitude, longitude), ll_to_earth($2, $3)) < $4
    ORDER BY embedding <=> $1 LIMIT 10;
SELECT parameter_types FROM pg_prepared_statements;
CREATE FUNCTION lines(statement text, pattern text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		IF line ~ pattern THEN RETURN NEXT ltrim(line, ' >-'); END IF;
	END LOOP;
END $$;
SELECT lines($$EXECUTE within_box('[.1,.2,.3,.4,.5,.6,.7,.8]', 48.2, 11.55, 8000)$$, 'Scan|Index Cond|Order By');
CREATE TABLE by_index AS EXECUTE within_box(:near, 48.2, 11.55, 8000);
-- the circle alone: all of it lies within the box
CREATE TABLE by_circle AS SELECT id FROM articles
	WHERE earth_distance(ll_to_earth(latitude, longitude), ll_to_earth(48.2, 11.55)) < 8000 ORDER BY (embedding <=> :near) + 0 LIMIT 10;
SELECT count(i.id), count(c.id), bool_and(i.id = c.id) FROM by_index i FULL JOIN by_circle c USING (id);
-- few rows in a place: by GiST and a sort
SELECT lines($$SELECT id FROM articles WHERE earth_box(ll_to_earth(48.2, 11.55), 2000) @> ll_to_earth(latitude, longitude) ORDER BY embedding <=> '[.1,.2,.3,.4,.5,.6,.7,.8]' LIMIT 10$$, 'Scan|Sort');
DROP TABLE articles, by_index, by_circle;
DROP FUNCTION lines;
DROP EXTENSION earthdistance, cube;
DROP SCHEMA places;
