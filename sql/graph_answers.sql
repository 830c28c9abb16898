SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set found :tests '/sql/include/found.sql'
\i :found

CREATE INDEX items_index ON items USING graph (v);
SELECT * FROM found_share('<->', 1);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 200);
-- a row that an approximate search missed doesn't come after farther ones
SELECT rows > 29000 AS most, enough, ordered FROM found_share('<->', 2999);
SELECT * FROM found_share('<->', 10, 'kind = 3');
SELECT * FROM found_share('<->', 5, 'id < 20');
SET pgwarp.iterative = relaxed;
SELECT rows, enough FROM found_share('<->', 10, 'kind = 3');
SELECT rows, enough FROM found_share('<->', 5, 'id < 20');
RESET pgwarp.iterative;
-- with as many as there are rows, every row that can be reached is found
SET pgwarp.graph_ef_search = 3000;
SELECT * FROM found('<->', 10);
SET pgwarp.graph_ef_search = 1;
SELECT rows, ordered FROM found('<->', 10);
RESET pgwarp.graph_ef_search;
-- a higher recall takes no less effort
CREATE TEMPORARY VIEW efforts AS SELECT (p->>'effort')::int AS effort, (p->'recall'->>'10')::float AS recall
	FROM pgwarp_index_info('items_index') i, jsonb_array_elements(i.calibration->'curve') p;
SELECT bool_and(recall >= coalesce(before, 0)) AS grows, max(recall) > 0.95 AS attains
	FROM (SELECT recall, lag(recall) OVER (ORDER BY effort) AS before FROM efforts) e;
DROP VIEW efforts;
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v) WITH (degree = 16, build_degree = 24);
SELECT * FROM found_share('<->', 10);
SELECT options->>'degree' AS degree, options->>'build_degree' AS build_degree, options->>'vectors' AS vectors FROM pgwarp_index_info('items_index');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v) WITH (vectors = half);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v) WITH (vectors = bits, bits = 256);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
SELECT rows FROM found('<->', 2999);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v vector_ip_ops);
SELECT * FROM found_share('<#>', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v vector_ip_ops) WITH (vectors = half);
SELECT * FROM found_share('<#>', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v vector_cosine_ops);
SELECT * FROM found_share('<=>', 10);
SELECT * FROM found_share('<=>', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v vector_cosine_ops) WITH (vectors = bits);
SELECT * FROM found_share('<=>', 10);
SELECT options->>'vectors' AS vectors, (options->>'bits')::int > 0 AS bits FROM pgwarp_index_info('items_index');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING graph (v vector_l1_ops);
SELECT * FROM found_share('<+>', 10);
DROP INDEX items_index;

-- rows of the delta, updates and deletes

CREATE INDEX items_index ON items USING graph (v);
INSERT INTO items SELECT id + 3000, kind, v + '[0.01,0,0,0,0,0,0,0]'::vector FROM items WHERE id % 3 = 0;
UPDATE items SET v = v + '[0,0.01,0,0,0,0,0,0]'::vector WHERE id % 5 = 0;
DELETE FROM items WHERE id % 7 = 1;
SELECT * FROM found_share('<->', 50);
VACUUM items;
SELECT * FROM found_share('<->', 50);
INSERT INTO items SELECT id + 10000, kind, v FROM items WHERE id % 11 = 0;
SELECT * FROM found_share('<->', 50);
CALL pgwarp_merge('items_index');
SELECT * FROM found_share('<->', 50);
SELECT method, rows = (SELECT count(*) FROM items) AS all_rows, delta_rows, dead_rows, bytes > 0 AS has_pages,
	jsonb_array_length(calibration->'curve') > 0 AS calibrated, (attainable_recall->>'10')::float > 0.9 AS attains
	FROM pgwarp_index_info('items_index');
SELECT pgwarp_recall('items_index', 10, 50) >= 0.9 AS recall;
SELECT live_rows, dead_rows FROM pgwarp_check('items_index', true);

DROP TABLE items;
DROP FUNCTION found_share;
DROP FUNCTION found;
