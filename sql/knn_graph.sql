SET client_min_messages = warning;
SET pgwarp.verify_results = on;

CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(4), note text) WITH (fillfactor = 60, autovacuum_enabled = off);
INSERT INTO items
	SELECT i, i % 10, ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i)]::vector(4), repeat('x', 50)
	FROM generate_series(1, 1500) i;
CREATE INDEX items_index ON items USING exact (v);

-- every row with its nearest others, compared with a join
CREATE FUNCTION compared(index regclass, operator text, k integer, condition text DEFAULT 'true')
RETURNS TABLE (rows bigint, right_distances bigint, right_rows boolean) AS $$
BEGIN
	RETURN QUERY EXECUTE format('
		WITH edges AS (
			SELECT g.*, row_number() OVER (PARTITION BY g.tid ORDER BY g.ordinality) AS rank
			FROM knn_graph($1, $2) WITH ORDINALITY g),
		truth AS (
			SELECT a.ctid AS tid, n.d, n.rank
			FROM items a, LATERAL (SELECT d, row_number() OVER (ORDER BY d) AS rank
				FROM (SELECT b.v %1$s a.v AS d FROM items b WHERE b.ctid <> a.ctid AND %2$s ORDER BY 1 LIMIT $2) ordered) n
			WHERE %3$s),
		checked AS (
			SELECT e.*, a.id <> b.id AND a.v %1$s b.v = e.distance AND %3$s AND %2$s AS is_right
			FROM edges e LEFT JOIN items a ON a.ctid = e.tid LEFT JOIN items b ON b.ctid = e.neighbor)
		SELECT count(*), count(*) FILTER (WHERE c.distance = t.d), bool_and(c.is_right)
		FROM truth t FULL JOIN checked c USING (tid, rank)', operator, replace(condition, '$', 'b.'), replace(condition, '$', 'a.'))
	USING index, k;
END
$$ LANGUAGE plpgsql SET enable_indexscan = off;

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
DROP TABLE items, whole;
