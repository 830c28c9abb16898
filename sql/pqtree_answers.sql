SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set rows :tests '/sql/include/found.sql'
\set nearest :tests '/sql/include/found_nearest.sql'
\set changed :tests '/sql/include/found_changed.sql'
\set measured :tests '/sql/include/measured_effort.sql'
\i :rows

\set index 'pqtree (v) WITH (parts = 2, k1 = 16, k2 = 4)'
\i :nearest
-- all rows as candidates: the answer is exact
SET pgwarp.pqtree_candidates = 3000;
SELECT * FROM found('<->', 10);
SELECT * FROM found('<->', 3000);
-- few candidates, of few bins
SET pgwarp.pqtree_candidates = 20;
SET pgwarp.pqtree_width = 1;
SELECT rows, ordered FROM found('<->', 10);
RESET pgwarp.pqtree_candidates;
RESET pgwarp.pqtree_width;
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v) WITH (refine = full);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v) WITH (refine = none, line_parts = 8);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 10, 'kind = 3');
SET pgwarp.pqtree_candidates = 3000;
SELECT * FROM found('<->', 3000);
RESET pgwarp.pqtree_candidates;
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v) WITH (parts = 1);
SELECT * FROM found_share('<->', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v) WITH (parts = 4, k1 = 8, k2 = 2, line_parts = 8);
SELECT * FROM found_share('<->', 10);
DROP INDEX items_index;

-- some hundred million bins, nearly all of them empty: a search that would visit too many compares all rows
CREATE INDEX items_index ON items USING pqtree (v) WITH (parts = 4, k1 = 64, k2 = 2);
SELECT * FROM found_share('<->', 10);
SET pgwarp.pqtree_candidates = 2900;
SELECT * FROM found('<->', 10);
RESET pgwarp.pqtree_candidates;
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v vector_ip_ops);
SELECT * FROM found_share('<#>', 10);
SELECT * FROM found_share('<#>', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v vector_ip_ops) WITH (refine = full);
SELECT * FROM found_share('<#>', 10);
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v vector_cosine_ops);
SELECT * FROM found_share('<=>', 10);
SELECT * FROM found_share('<=>', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING pqtree (v vector_cosine_ops) WITH (refine = none, line_parts = 8);
SELECT * FROM found_share('<=>', 10);
DROP INDEX items_index;

\set method pqtree
\set found found_share
\set renew 'REINDEX INDEX items_index'
\i :changed
SELECT options->>'refine' AS refine, (options->>'k1')::int > 1 AS has_tree FROM pgwarp_index_info('items_index');

\set effort pgwarp.pqtree_candidates
\i :measured

DROP TABLE items;
DROP FUNCTION found_share;
DROP FUNCTION found;
