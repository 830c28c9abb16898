-- knn_graph by indexes of other metrics and methods, and by a partial index
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set graph_items :tests '/sql/include/graph_items.sql'
\i :graph_items
-- dead rows, and rows in the delta
UPDATE items SET note = NULL WHERE id % 4 = 0;
DELETE FROM items WHERE id % 7 = 0;
VACUUM items;
INSERT INTO items SELECT 5000 + id, kind, v * '[1,1,1,-1]', note FROM items WHERE id % 5 = 0;

INSERT INTO items VALUES (9000, 1, NULL), (9001, 1, '[0,0,0,0]');
CREATE INDEX items_cosine ON items USING exact (v vector_cosine_ops);
SELECT count(*) FROM knn_graph('items_cosine', 5) g JOIN items i ON i.ctid IN (g.tid, g.neighbor) WHERE i.id >= 9000;
DELETE FROM items WHERE id >= 9000;
SELECT * FROM compared('items_cosine', '<=>', 5);
CREATE INDEX items_partial ON items USING exact (v) WHERE kind < 4;
SELECT * FROM compared('items_partial', '<->', 5, '$kind < 4');
DROP INDEX items_cosine, items_partial;
CREATE INDEX items_ivfadc ON items USING ivfadc (v) WITH (lists = 8);
SET pgwarp.ivfadc_probes = 8;
SET pgwarp.refine_factor = 100;
SELECT * FROM compared('items_ivfadc', '<->', 5);
DROP INDEX items_ivfadc;
CREATE INDEX items_pqtree ON items USING pqtree (v);
SET pgwarp.pqtree_candidates = 100000;
SELECT * FROM compared('items_pqtree', '<->', 5);
RESET pgwarp.pqtree_candidates;
DROP INDEX items_pqtree;

DROP FUNCTION compared;
DROP TABLE items;
