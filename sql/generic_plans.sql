-- plans that are kept: an index's options change, and it goes away
SET client_min_messages = warning;
CREATE TABLE items (id integer, v vector(4));
INSERT INTO items SELECT i, ARRAY[hashint4(i), hashint4(i + 10000), hashint4(i + 20000), hashint4(i + 30000)]::vector(4) * '[1e-9,1e-9,1e-9,1e-9]' FROM generate_series(1, 4000) i;
CREATE TABLE queries AS SELECT id AS query, v FROM items WHERE id % 40 = 0;
CREATE TABLE truth AS SELECT q.query, n.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> q.v LIMIT 10) n;
CREATE INDEX items_v ON items USING ivfadc (v) WITH (lists = 64, refine = full, recall = 0.01);
ANALYZE items;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_sort = off;
PREPARE hits AS SELECT count(*) FROM (SELECT q.query, n.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> q.v LIMIT 10) n) f JOIN truth USING (query, id);
PREPARE nearest(vector) AS SELECT array_agg(id) FROM (SELECT id FROM items ORDER BY v <-> $1 LIMIT 10) s;
CREATE TABLE measured (step text, hits bigint, nearest integer[]);
CREATE FUNCTION measure(step text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE hits bigint; nearest integer[];
	BEGIN
		EXECUTE 'EXECUTE hits' INTO hits;
		EXECUTE 'EXECUTE nearest(''[0.1,0.2,0.3,0.4]'')' INTO nearest;
		INSERT INTO measured VALUES (step, hits, nearest);
	END $$;

-- the option
SELECT measure('low');
ALTER INDEX items_v SET (recall = 0.999);
SELECT measure('high');
-- which other sessions change too
\c
SET client_min_messages = warning;
ALTER INDEX items_v RESET (recall);
ALTER INDEX items_v SET (recall = 0.999);
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_sort = off;
PREPARE hits AS SELECT count(*) FROM (SELECT q.query, n.id FROM queries q CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> q.v LIMIT 10) n) f JOIN truth USING (query, id);
PREPARE nearest(vector) AS SELECT array_agg(id) FROM (SELECT id FROM items ORDER BY v <-> $1 LIMIT 10) s;
SELECT measure('high again');
-- the setting wins over it
SET pgwarp.recall = 0.01;
SELECT measure('low by the setting');
SET pgwarp.recall = 0;
SELECT measure('high by the option');
ALTER INDEX items_v RESET (recall);
SELECT measure('usual');
SET pgwarp.recall = 0.95;
SELECT measure('usual by the setting');
RESET pgwarp.recall;
SELECT (SELECT hits FROM measured WHERE step = 'low') < (SELECT hits FROM measured WHERE step = 'usual') AS low,
	(SELECT min(hits) FROM measured WHERE step LIKE 'high%') >= 990 AS high,
	(SELECT hits FROM measured WHERE step = 'usual') BETWEEN 900 AND 1000 AS usual,
	(SELECT hits FROM measured WHERE step = 'low by the setting') = (SELECT hits FROM measured WHERE step = 'low') AS setting_wins,
	(SELECT count(DISTINCT hits) FROM measured WHERE step LIKE 'usual%') = 1 AS same,
	(SELECT count(DISTINCT nearest) FROM measured WHERE step LIKE 'high%') = 1 AS same_nearest;

-- the index goes away
SELECT measure('usual again');
DROP INDEX CONCURRENTLY items_v;
EXECUTE hits;
EXPLAIN (COSTS OFF) EXECUTE nearest('[0,0,0,0]');
SELECT measure('dropped');
CREATE INDEX CONCURRENTLY items_v ON items USING exact (v);
EXPLAIN (COSTS OFF) EXECUTE nearest('[0,0,0,0]');
SELECT measure('exact');
SELECT count(DISTINCT nearest), min(hits) FROM measured WHERE step IN ('dropped', 'exact');
REINDEX INDEX CONCURRENTLY items_v;
EXECUTE hits;
DROP TABLE items, queries, truth, measured;
DROP FUNCTION measure;
