SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set rows :tests '/sql/include/found.sql'
\set nearest :tests '/sql/include/found_nearest.sql'
\set changed :tests '/sql/include/found_changed.sql'
\i :rows

\set index 'graph (v)'
\i :nearest
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

\set method graph
\set found found_share
\set renew 'CALL pgwarp_merge(''items_index'')'
\i :changed
SELECT live_rows, dead_rows FROM pgwarp_check('items_index', true);

DROP TABLE items;
DROP FUNCTION found_share;
DROP FUNCTION found;
