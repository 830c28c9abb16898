-- Words narrow the search by the bitmap of their own index: the plan that the planner chooses by cost
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE items (id integer, words tsvector, v vector(64));
INSERT INTO items SELECT i, to_tsvector('english', CASE WHEN i % 50 = 0 THEN 'a red bicycle' ELSE 'a blue car' END), ARRAY(SELECT sin(i * j) FROM generate_series(1, 64) j)::vector FROM generate_series(1, 20000) i;
CREATE INDEX ON items USING ivfadc (v);
CREATE INDEX ON items USING gin (words);
VACUUM ANALYZE items;
SET plan_cache_mode = force_generic_plan;
PREPARE near(vector) AS
SELECT id FROM items WHERE words @@ websearch_to_tsquery('english', 'bicycle') ORDER BY v <-> $1 LIMIT 10;
SELECT v AS query FROM items WHERE id = 7 \gset
EXPLAIN (COSTS OFF) EXECUTE near(:'query');
-- the rows that a sort finds
CREATE TABLE found AS EXECUTE near(:'query');
SET enable_indexscan = off;
CREATE TABLE sorted AS SELECT id FROM items WHERE words @@ websearch_to_tsquery('english', 'bicycle') ORDER BY v <-> :'query' LIMIT 10;
SELECT count(*), count(s.id) FROM found f LEFT JOIN sorted s USING (id);
DROP TABLE items, found, sorted;
