-- knn_graph: every row with its nearest others, by an exact index
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set graph_items :tests '/sql/include/graph_items.sql'
\i :graph_items

SELECT * FROM compared('items_index', '<->', 5);
UPDATE items SET note = NULL WHERE id % 4 = 0;
DELETE FROM items WHERE id % 7 = 0;
SELECT * FROM compared('items_index', '<->', 5);
VACUUM items;
INSERT INTO items SELECT 5000 + id, kind, v * '[1,1,1,-1]', note FROM items WHERE id % 5 = 0;
SELECT * FROM compared('items_index', '<->', 5);
SELECT * FROM compared('items_index', '<->', 1);
SELECT count(*) = (SELECT count(*) * (count(*) - 1) FROM items) AS complete FROM knn_graph('items_index', 3000);
-- rows without a vector have no edges
INSERT INTO items VALUES (9000, 1, NULL), (9001, 1, '[0,0,0,0]');
SELECT count(*) FROM knn_graph('items_index', 5) g JOIN items i ON i.ctid IN (g.tid, g.neighbor) WHERE i.id = 9000;
DELETE FROM items WHERE id >= 9000;

-- nothing asked for, and what is refused
SELECT count(*) FROM knn_graph('items_index', 0);
SELECT count(*) FROM knn_graph(NULL, 3);
SELECT count(*) FROM knn_graph('items_index', NULL);
SELECT count(*) FROM (SELECT knn_graph('items_index', NULL) LIMIT 1) s;
\set VERBOSITY sqlstate
SELECT count(*) FROM knn_graph('items_index', -1);
SELECT count(*) FROM knn_graph('items_index', 65537);
SELECT count(*) FROM knn_graph('items_index', 3, -1);
SELECT count(*) FROM knn_graph('items_index', 3, 0, -1);
SELECT count(*) FROM knn_graph('items_pkey', 3);
SELECT count(*) FROM knn_graph('items', 3);
\set VERBOSITY default
DROP FUNCTION compared;
DROP TABLE items;
