SET client_min_messages = warning;
SET pgwarp.verify_results = on;
SET pgwarp.recall = 1;
\set VERBOSITY sqlstate

CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(8), note text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO items
	SELECT i, i % 10, ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i), sin(0.77 * i), cos(5.1 * i), sin(3.3 * i), cos(0.013 * i)]::vector(8)
	FROM generate_series(1, 2000) i;
CREATE TABLE queries (id integer PRIMARY KEY, v vector(8));
INSERT INTO queries
	SELECT i, ARRAY[cos(i), sin(1.7 * i), sin(2.1 * i), cos(0.37 * i), sin(0.71 * i), cos(5.3 * i), sin(3.1 * i), cos(0.02 * i)]::vector(8)
	FROM generate_series(1, 40) i;

-- Compares knn_search with a sequential scan: rows found, how many have the true distance at their rank, and whether
-- every row is the one that its tid and distance say.
CREATE FUNCTION compared(index regclass, operator text, k integer, condition text DEFAULT 'true', expression text DEFAULT 'v')
RETURNS TABLE (rows bigint, right_distances bigint, right_rows boolean, ordered boolean) AS $$
BEGIN
	RETURN QUERY EXECUTE format('
		WITH found AS (
			SELECT s.*, row_number() OVER (PARTITION BY s.query ORDER BY s.ordinality) AS rank
			FROM knn_search($1, ARRAY(SELECT v FROM queries ORDER BY id), $2) WITH ORDINALITY s),
		truth AS (
			SELECT q.id AS query, n.d, n.rank
			FROM queries q, LATERAL (SELECT d, row_number() OVER (ORDER BY d) AS rank
				FROM (SELECT %3$s %1$s q.v AS d FROM items WHERE %2$s ORDER BY %3$s %1$s q.v LIMIT $2) ordered) n),
		checked AS (
			SELECT f.*, i.id IS NOT NULL AND f.distance = i.%3$s %1$s q.v AS is_right,
				f.distance >= lag(f.distance, 1, f.distance) OVER (PARTITION BY f.query ORDER BY f.rank) AS in_order
			FROM found f JOIN queries q ON q.id = f.query LEFT JOIN items i ON i.ctid = f.tid AND (%2$s))
		SELECT count(*), count(*) FILTER (WHERE c.distance = t.d), bool_and(c.is_right), bool_and(c.in_order)
		FROM truth t FULL JOIN checked c USING (query, rank)', operator, condition, expression)
	USING index, k;
END
$$ LANGUAGE plpgsql SET enable_indexscan = off;

-- all methods and metrics

CREATE INDEX items_index ON items USING exact (v);
SELECT * FROM compared('items_index', '<->', 1);
SELECT * FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 300);
SELECT * FROM compared('items_index', '<->', 3000);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact (v) WITH (vectors = half);
SELECT * FROM compared('items_index', '<->', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact (v vector_ip_ops);
SELECT * FROM compared('items_index', '<#>', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact (v vector_cosine_ops);
SELECT * FROM compared('items_index', '<=>', 10);
SELECT * FROM compared('items_index', '<=>', 2500);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact (v vector_l1_ops);
SELECT * FROM compared('items_index', '<+>', 10);
DROP INDEX items_index;

-- an approximate method at full effort
SET pgwarp.ivfadc_probes = 20;
SET pgwarp.refine_factor = 200;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (lists = 20, refine = full);
SELECT * FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 3000);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (lists = 20);
SELECT * FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 3000);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (lists = 20, codes = half, refine = none);
SELECT * FROM compared('items_index', '<->', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v vector_ip_ops) WITH (lists = 20);
SELECT * FROM compared('items_index', '<#>', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v vector_cosine_ops) WITH (lists = 20);
SELECT * FROM compared('items_index', '<=>', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (lists = 20, refine = none, subquantizers = 8);
SELECT rows, right_distances > 0.9 * rows AS enough, right_rows, ordered FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 3000);
-- few lists visited, and more rows wanted than they hold
SET pgwarp.ivfadc_probes = 1;
SELECT rows, right_rows, ordered FROM compared('items_index', '<->', 500);
RESET pgwarp.ivfadc_probes;
RESET pgwarp.refine_factor;
DROP INDEX items_index;

SET pgwarp.pqtree_candidates = 4000;
CREATE INDEX items_index ON items USING pqtree (v) WITH (refine = full);
SELECT * FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 3000);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v);
SELECT * FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 3000);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v vector_ip_ops);
SELECT * FROM compared('items_index', '<#>', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v vector_cosine_ops);
SELECT * FROM compared('items_index', '<=>', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v) WITH (refine = none, line_parts = 8);
SELECT rows, right_distances > 0.9 * rows AS enough, right_rows, ordered FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 3000);
-- few candidates, and more rows wanted
SET pgwarp.pqtree_candidates = 20;
SELECT rows, right_rows, ordered FROM compared('items_index', '<->', 500);
RESET pgwarp.pqtree_candidates;
DROP INDEX items_index;

-- partial and expression indexes

CREATE INDEX items_index ON items USING exact (v) WHERE kind < 3;
SELECT * FROM compared('items_index', '<->', 10, 'kind < 3');
SELECT * FROM compared('items_index', '<->', 1000, 'kind < 3');
DROP INDEX items_index;
CREATE INDEX items_index ON items USING exact ((subvector(v, 1, 8)::vector(8)) vector_cosine_ops);
SELECT * FROM compared('items_index', '<=>', 10);
DROP INDEX items_index;

-- rows that the snapshot doesn't see, and HOT chains

CREATE INDEX items_index ON items USING exact (v);
UPDATE items SET note = 'updated' WHERE id % 3 = 0;
UPDATE items SET note = 'again' WHERE id % 6 = 0;
SELECT pg_stat_force_next_flush();
SELECT n_tup_upd, n_tup_hot_upd = n_tup_upd AS all_hot FROM pg_stat_user_tables WHERE relname = 'items';
SELECT * FROM compared('items_index', '<->', 10);
VACUUM items;
SELECT * FROM compared('items_index', '<->', 10);
UPDATE items SET v = v * '[1,1,1,1,1,1,1,2]' WHERE id % 5 = 0;
SELECT * FROM compared('items_index', '<->', 10);
-- the nearest hundred of each query are dead
DELETE FROM items WHERE ctid IN (SELECT tid FROM knn_search('items_index', 'SELECT v FROM queries ORDER BY id', 30));
SELECT count(*) BETWEEN 500 AND 1800 AS some FROM items;
SELECT * FROM compared('items_index', '<->', 10);
SELECT * FROM compared('items_index', '<->', 2000);
VACUUM items;
SELECT * FROM compared('items_index', '<->', 10);
BEGIN;
INSERT INTO items SELECT 10000 + id, 3, v FROM queries;
SELECT * FROM compared('items_index', '<->', 10);
SELECT count(*) FROM knn_search('items_index', 'SELECT v FROM queries', 1) WHERE distance = 0;
SAVEPOINT s;
DELETE FROM items WHERE id > 10000;
SELECT * FROM compared('items_index', '<->', 10);
ROLLBACK TO s;
ROLLBACK;
SELECT count(*) FROM knn_search('items_index', 'SELECT v FROM queries', 1) WHERE distance = 0;
SELECT * FROM compared('items_index', '<->', 10);
-- a function that searches sees what its statement sees
CREATE FUNCTION insert_and_search(vector) RETURNS bigint AS $$
	INSERT INTO items VALUES (20000, 0, $1);
	SELECT count(*) FROM knn_search('items_index', ARRAY[$1], 5) WHERE distance = 0;
$$ LANGUAGE sql;
BEGIN;
SELECT insert_and_search(v) FROM queries WHERE id = 1;
ROLLBACK;
DROP FUNCTION insert_and_search;
-- of a cursor, whose snapshot is older than what follows
BEGIN;
DECLARE c CURSOR FOR SELECT query, count(*) FROM knn_search('items_index', 'SELECT v FROM queries WHERE id <= 3', 10) s
	JOIN items i ON i.ctid = s.tid GROUP BY query ORDER BY query;
DELETE FROM items;
FETCH ALL FROM c;
SELECT count(*) FROM knn_search('items_index', 'SELECT v FROM queries', 10);
ROLLBACK;

-- the forms agree; positions count from 1 and NULL queries have no rows

SELECT count(*), min(query), max(query) FROM knn_search('items_index', ARRAY(SELECT v FROM queries ORDER BY id), 3);
(SELECT * FROM knn_search('items_index', ARRAY(SELECT v FROM queries ORDER BY id), 3))
	EXCEPT ALL (SELECT * FROM knn_search('items_index', 'SELECT v FROM queries ORDER BY id', 3));
SELECT query, count(*) FROM knn_search('items_index', (SELECT array_agg(CASE WHEN id % 2 = 0 THEN v END ORDER BY id) FROM queries WHERE id < 6), 3) GROUP BY 1 ORDER BY 1;
SELECT query, count(*) FROM knn_search('items_index', 'SELECT CASE WHEN id % 2 = 0 THEN v END FROM queries WHERE id < 6 ORDER BY id', 3) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM knn_search('items_index', '{}'::vector[], 3);
SELECT count(*) FROM knn_search('items_index', ARRAY[NULL]::vector[], 3);
SELECT count(*) FROM knn_search('items_index', 'SELECT v FROM queries WHERE false', 3);
SELECT count(*) FROM knn_search('items_index', ARRAY(SELECT v FROM queries), 0);
SELECT count(*) FROM knn_search('items_index', 'SELECT v FROM queries', 0);
SELECT count(*) FROM knn_search(NULL, ARRAY(SELECT v FROM queries), 3);
SELECT count(*) FROM knn_search('items_index', NULL::vector[], 3);
SELECT count(*) FROM knn_search('items_index', NULL::text, 3);
SELECT count(*) FROM knn_search('items_index', 'SELECT v FROM queries', NULL);
-- more queries than one request holds
SELECT count(*), count(DISTINCT query) FROM knn_search('items_index', 'SELECT v FROM queries, generate_series(1, 1000)', 2);
SELECT count(*), count(DISTINCT query) FROM knn_search('items_index', 'SELECT v FROM queries, generate_series(1, 20)', 100);
-- in a target list
SELECT (s).query, (s).distance >= 0 AS near FROM (SELECT knn_search('items_index', 'SELECT v FROM queries ORDER BY id', 2) AS s) n LIMIT 3;

-- searches within the query, and an error while the engine is at work
SET enable_seqscan = off;
SELECT count(*), count(DISTINCT query) FROM knn_search('items_index',
	'SELECT q.v FROM queries q, LATERAL (SELECT id FROM items ORDER BY v <-> q.v LIMIT 20) n', 1000);
RESET enable_seqscan;
DO $$
BEGIN
	PERFORM count(*) FROM knn_search('items_index', 'SELECT CASE WHEN g < 1000 THEN v ELSE ''[1]''::vector END FROM generate_series(1, 1000) g, queries', 2);
EXCEPTION WHEN data_exception THEN
	RAISE WARNING 'refused: %', SQLERRM;
END
$$;
SELECT * FROM compared('items_index', '<->', 10);

-- zero vectors under cosine: every row is as good

CREATE INDEX items_cosine ON items USING exact (v vector_cosine_ops);
SELECT count(*), count(DISTINCT tid), min(distance), max(distance) FROM knn_search('items_cosine', ARRAY['[0,0,0,0,0,0,0,0]'::vector], 7);
SELECT count(*) = (SELECT count(*) FROM items) AS whole FROM knn_search('items_cosine', ARRAY['[0,0,0,0,0,0,0,0]'::vector], 5000);
INSERT INTO items VALUES (30000, 0, '[0,0,0,0,0,0,0,0]'), (30001, 0, NULL);
SELECT count(*) = (SELECT count(*) - 2 FROM items) AS without FROM knn_search('items_cosine', (SELECT ARRAY[v] FROM queries LIMIT 1), 5000);
SELECT count(*) = (SELECT count(*) - 1 FROM items) AS with_zero FROM knn_search('items_index', (SELECT ARRAY[v] FROM queries LIMIT 1), 5000);
DELETE FROM items WHERE id >= 30000;

-- empty tables, whose engine isn't asked

CREATE TABLE empty (v vector(3));
CREATE INDEX empty_index ON empty USING ivfadc (v);
SELECT count(*) FROM knn_search('empty_index', ARRAY['[1,2,3]'::vector], 3);
INSERT INTO empty VALUES ('[1,2,3]');
SELECT * FROM knn_search('empty_index', ARRAY['[1,2,3]'::vector, '[1,2,4]'], 3);
DROP TABLE empty;

-- temporary and unlogged tables, and an index of this transaction

BEGIN;
CREATE TEMP TABLE short_lived AS SELECT * FROM items WHERE kind = 1;
CREATE INDEX short_lived_v ON short_lived USING ivfadc (v);
SELECT count(*), count(DISTINCT query) FROM knn_search('short_lived_v', 'SELECT v FROM queries', 5);
SELECT count(*) = 3 * (SELECT count(*) FROM short_lived) AS whole FROM knn_graph('short_lived_v', 3);
ROLLBACK;
CREATE UNLOGGED TABLE short_lived AS SELECT * FROM items WHERE kind = 1;
CREATE INDEX CONCURRENTLY short_lived_v ON short_lived USING exact (v);
REINDEX INDEX CONCURRENTLY short_lived_v;
SELECT count(*), count(DISTINCT query) FROM knn_search('short_lived_v', 'SELECT v FROM queries', 5);
DROP TABLE short_lived;

-- refused

SELECT * FROM knn_search('items_index', ARRAY['[1,2,3]'::vector], 3);
SELECT * FROM knn_search('items_index', 'SELECT ''[1,2,3]''::vector', 3);
SELECT * FROM knn_search('items_index', ARRAY[ARRAY['[1,2,3]'::vector]], 3);
SELECT * FROM knn_search('items_index', ARRAY(SELECT v FROM queries), -1);
SELECT * FROM knn_search('items_index', ARRAY(SELECT v FROM queries), 65537);
SELECT count(*) FROM knn_search('items_index', (SELECT ARRAY[v] FROM queries LIMIT 1), 65536) HAVING count(*) < 1;
SELECT * FROM knn_search('items_pkey', ARRAY(SELECT v FROM queries), 3);
SELECT * FROM knn_search('items', ARRAY(SELECT v FROM queries), 3);
SELECT * FROM knn_search('pg_class', 'SELECT v FROM queries', 3);
SELECT * FROM knn_search(1, ARRAY(SELECT v FROM queries), 3);
SELECT * FROM knn_search('items_index', 'SELECT id FROM queries', 3);
SELECT * FROM knn_search('items_index', 'SELECT id, v FROM queries', 3);
SELECT * FROM knn_search('items_index', 'SELECT FROM queries', 3);
SELECT * FROM knn_search('items_index', 'SELECT v FROM nowhere', 3);
SELECT * FROM knn_search('items_index', 'SELECT v FROM queries; SELECT v FROM queries', 3);
SELECT * FROM knn_search('items_index', 'INSERT INTO queries VALUES (100, NULL) RETURNING v', 3);
SELECT * FROM knn_search('items_index', 'DELETE FROM queries', 3);
SELECT * FROM knn_search('items_index', '', 3);
-- an index that is no index yet
CREATE TABLE parts (id integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10);
CREATE INDEX parts_index ON parts USING exact (v);
SELECT * FROM knn_search('parts_index', ARRAY['[1,2,3]'::vector], 3);
SELECT * FROM knn_search('parts_1_v_idx', ARRAY['[1,2,3]'::vector], 3);
DROP TABLE parts;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'items_index'::regclass;
SELECT * FROM knn_search('items_index', ARRAY(SELECT v FROM queries), 3);

\set VERBOSITY default
SELECT * FROM knn_search('items_index', ARRAY(SELECT v FROM queries), 3);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'items_index'::regclass;
SELECT * FROM knn_search('items_index', ARRAY['[1,2,3]'::vector], 3);
SELECT * FROM knn_search('items_index', 'SELECT id FROM queries', 3);
SELECT * FROM knn_search('items', ARRAY(SELECT v FROM queries), 3);
SELECT * FROM knn_search('items_index', '[1,2,3]', 3);
SELECT * FROM knn_search('items_index', ' {"[1,2,3]"}', 3);

-- as many rows as there are: as of a scan, all of them, though searches find some too late for their place

CREATE TABLE spread AS SELECT i AS id, ARRAY[sin(i), cos(3 * i), sin(7 * i)]::vector(3) AS v FROM generate_series(1, 2500) i;
CREATE INDEX spread_lists ON spread USING ivfadc (v) WITH (lists = 20);
CREATE INDEX spread_graph ON spread USING graph (v);
SET pgwarp.ivfadc_probes = 1;
SET pgwarp.graph_ef_search = 1;
SELECT index, k, query, count(*), count(DISTINCT tid) FROM (VALUES (1500), (2500), (3000)) wanted(k),
	(VALUES ('spread_lists'), ('spread_graph')) indexes(index), knn_search(index::regclass, 'SELECT v FROM spread WHERE id IN (7, 700)', k)
	GROUP BY index, k, query ORDER BY index, k, query;
SELECT count(*) FROM (SELECT id FROM spread ORDER BY v <-> '[0.1,0.2,0.3]' LIMIT 2500) s;
DELETE FROM spread WHERE id > 1000;
SELECT index, count(*) FROM (VALUES ('spread_lists'), ('spread_graph')) indexes(index), knn_search(index::regclass, ARRAY['[0.1,0.2,0.3]'::vector], 2000)
	GROUP BY index ORDER BY index;
RESET pgwarp.ivfadc_probes;
RESET pgwarp.graph_ef_search;
DROP TABLE spread;

DROP FUNCTION compared;
DROP TABLE items, queries;
