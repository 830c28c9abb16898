-- knn_graph in parts: by ranges of blocks, in a target list, by a cursor
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

-- restarted by ranges of blocks, in heap order
CREATE TEMP TABLE whole AS SELECT * FROM knn_graph('items_index', 3) WITH ORDINALITY;
SELECT count(*) FROM whole w JOIN whole n ON n.ordinality = w.ordinality + 1 WHERE n.tid < w.tid;
SELECT pg_relation_size('items') / current_setting('block_size')::int AS blocks \gset
(SELECT * FROM knn_graph('items_index', 3, 0, 4) UNION ALL SELECT * FROM knn_graph('items_index', 3, 5, :blocks - 1))
	EXCEPT ALL SELECT tid, neighbor, distance FROM whole;
SELECT (SELECT count(*) FROM knn_graph('items_index', 3, NULL, 4)) + (SELECT count(*) FROM knn_graph('items_index', 3, 5)) = count(*) AS same FROM whole;
SELECT count(*) FROM knn_graph('items_index', 3, 5, 4);
SELECT count(*) FROM knn_graph('items_index', 3, 100000);
SELECT min(tid), max(tid) <= '(7,1000)' AS within FROM knn_graph('items_index', 3, 6, 7);

-- one edge after the other, in a target list
SELECT count(*) = (SELECT count(*) FROM whole) AS same
	FROM (SELECT knn_graph('items_index', 3) AS edge OFFSET 0) e JOIN whole w ON w.tid = (edge).tid AND w.neighbor = (edge).neighbor;
SELECT count(*) FROM (SELECT knn_graph('items_index', 3) AS edge LIMIT 7) e;
-- two at once, whose requests get into one another's way
SELECT count(*), count(a), count(b), count(*) FILTER (WHERE a = b) FROM (SELECT knn_graph('items_index', 300) AS a, knn_graph('items_index', 300) AS b) s;
SELECT count(*) FROM (SELECT knn_graph('items_index', 300) AS edge) e WHERE (SELECT count(*) FROM knn_search('items_index', ARRAY['[1,2,3,4]'::vector], 1) WHERE (edge).distance < 0.05) = 1;
SELECT count(*) FROM (SELECT knn_graph('items_index', 300) AS edge) e WHERE (edge).distance < 0.05;
BEGIN;
DECLARE c CURSOR FOR SELECT knn_graph('items_index', 3) AS edge;
MOVE 4 IN c;
DELETE FROM items;
MOVE 4000 IN c;
CLOSE c;
DECLARE c CURSOR FOR SELECT knn_graph('items_index', 3) AS edge;
FETCH 1 FROM c;
ROLLBACK;

DROP FUNCTION compared;
DROP TABLE items, whole;
