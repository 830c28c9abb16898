SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set found :tests '/sql/include/found.sql'
\i :found

CREATE INDEX items_index ON items USING pqtree (v) WITH (parts = 2, k1 = 16, k2 = 4);
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

-- rows of the delta, updates and deletes

CREATE INDEX items_index ON items USING pqtree (v);
INSERT INTO items SELECT id + 3000, kind, v + '[0.01,0,0,0,0,0,0,0]'::vector FROM items WHERE id % 3 = 0;
UPDATE items SET v = v + '[0,0.01,0,0,0,0,0,0]'::vector WHERE id % 5 = 0;
DELETE FROM items WHERE id % 7 = 1;
SELECT * FROM found_share('<->', 50);
VACUUM items;
SELECT * FROM found_share('<->', 50);
INSERT INTO items SELECT id + 10000, kind, v FROM items WHERE id % 11 = 0;
SELECT * FROM found_share('<->', 50);
REINDEX INDEX items_index;
SELECT * FROM found_share('<->', 50);
SELECT method, rows = (SELECT count(*) FROM items) AS all_rows, delta_rows, dead_rows, bytes > 0 AS has_pages,
	options->>'refine' AS refine, (options->>'k1')::int > 1 AS has_tree,
	jsonb_array_length(calibration->'curve') > 0 AS calibrated, (attainable_recall->>'10')::float > 0.9 AS attains
	FROM pgwarp_index_info('items_index');
SELECT pgwarp_recall('items_index', 10, 50) >= 0.9 AS recall;
-- it is measured with the effort of a LIMIT 10, which is less than that of a LIMIT 100
SET pgwarp.recall = 0.8;
CREATE TABLE efforts AS SELECT min((p->>'effort')::int) FILTER (WHERE (p->'recall'->>'10')::float >= 0.8) AS for_10,
	min((p->>'effort')::int) FILTER (WHERE (p->'recall'->>'100')::float >= 0.8) AS for_100
	FROM pgwarp_index_info('items_index'), jsonb_array_elements(calibration->'curve') p;
SELECT for_10 < for_100 AS less FROM efforts;
CREATE TABLE recalls AS SELECT pgwarp_recall('items_index', 10, 100) AS recall;
SELECT set_config('pgwarp.pqtree_candidates', for_10::text, false) <> '' AS set FROM efforts;
SELECT recall = pgwarp_recall('items_index', 10, 100) AS same FROM recalls;
RESET pgwarp.pqtree_candidates;
RESET pgwarp.recall;
DROP TABLE efforts, recalls;

DROP TABLE items;
DROP FUNCTION found_share;
DROP FUNCTION found;
