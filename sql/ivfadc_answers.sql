SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set rows :tests '/sql/include/found.sql'
\set nearest :tests '/sql/include/found_nearest.sql'
\set changed :tests '/sql/include/found_changed.sql'
\set measured :tests '/sql/include/measured_effort.sql'
\i :rows

\set index 'ivfadc (v) WITH (lists = 20)'
\i :nearest
SET pgwarp.ivfadc_probes = 20;
SET pgwarp.refine_factor = 50;
SELECT * FROM found_share('<->', 10);
RESET pgwarp.ivfadc_probes;
RESET pgwarp.refine_factor;
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v) WITH (refine = full);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v) WITH (refine = none, subquantizers = 8);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v) WITH (codes = half, refine = none);
SELECT * FROM found_share('<->', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v) WITH (codes = int8, refine = none);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v vector_cosine_ops) WITH (codes = int8);
SELECT * FROM found_share('<=>', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v vector_ip_ops) WITH (codes = int8, refine = full);
SELECT * FROM found_share('<#>', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v) WITH (opq = on, subquantizers = 3);
SELECT * FROM found_share('<->', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v vector_ip_ops);
SELECT * FROM found_share('<#>', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING ivfadc (v vector_cosine_ops);
SELECT * FROM found_share('<=>', 10);
SELECT * FROM found_share('<=>', 10, 'kind = 3');
DROP INDEX items_index;

\set method ivfadc
\set found found_share
\set renew 'REINDEX INDEX items_index'
\i :changed
SELECT options->>'codes' AS codes, options->>'refine' AS refine, (options->>'lists')::int > 0 AS has_lists
	FROM pgwarp_index_info('items_index');

\set effort pgwarp.ivfadc_probes
\i :measured

DROP TABLE items;
DROP FUNCTION found_share;
DROP FUNCTION found;
