-- Pages of an answer: one sequence of rows for a query, whatever LIMIT and OFFSET.
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer PRIMARY KEY, v vector(8));
INSERT INTO items
	SELECT i, ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i), sin(0.77 * i), cos(5.1 * i), sin(3.3 * i), cos(0.013 * i)]::vector(8)
	FROM generate_series(1, 6000) i;

-- how many rows pages of a query show, how many of them differ, and whether each page is that of a long answer
CREATE FUNCTION pages(page integer, last integer) RETURNS TABLE (rows bigint, different bigint, same boolean) AS $$
DECLARE
	query vector(8);
	shown integer[];
	ids integer[];
	whole integer[];
BEGIN
	rows := 0; different := 0; same := true;
	FOR query IN SELECT v FROM items WHERE id % 1500 = 7 LOOP
		ids := '{}';
		FOR skipped IN 0 .. (last - page) BY page LOOP
			EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM items ORDER BY v <-> $1 LIMIT %s OFFSET %s) n', page, skipped)
				INTO shown USING query;
			ids := ids || shown;
		END LOOP;
		EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM items ORDER BY v <-> $1 LIMIT %s) n', last) INTO whole USING query;
		rows := rows + cardinality(ids);
		different := different + (SELECT count(DISTINCT id) FROM unnest(ids) id);
		same := same AND ids = whole;
	END LOOP;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;

-- the same rows by batches: a join, and a function
CREATE FUNCTION batches(k integer) RETURNS TABLE (same_join boolean, same_function boolean) AS $$
DECLARE
	one integer[];
	joined integer[];
	called integer[];
	query record;
BEGIN
	same_join := true; same_function := true;
	CREATE TEMP TABLE joins AS
		SELECT q.id AS query, n.id, n.d FROM items q CROSS JOIN LATERAL (SELECT id, v <-> q.v AS d FROM items ORDER BY v <-> q.v LIMIT k) n WHERE q.id % 100 = 7;
	CREATE TEMP TABLE calls AS
		SELECT i.id, s.query, s.distance FROM knn_search('items_index', (SELECT array_agg(v ORDER BY id) FROM items WHERE id % 1500 = 7), k) s JOIN items i ON i.ctid = s.tid;
	FOR query IN SELECT id, v, row_number() OVER (ORDER BY id) AS number FROM items WHERE id % 1500 = 7 LOOP
		EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM items ORDER BY v <-> $1 LIMIT %s) n', k) INTO one USING query.v;
		SELECT array_agg(id ORDER BY id) INTO joined FROM joins j WHERE j.query = query.id;
		SELECT array_agg(id ORDER BY id) INTO called FROM calls c WHERE c.query = query.number;
		same_join := same_join AND one = joined;
		same_function := same_function AND one = called;
	END LOOP;
	DROP TABLE joins, calls;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;

SET enable_seqscan = off;
SET enable_sort = off;
SET pgwarp.recall = 0.95;
CREATE INDEX items_index ON items USING exact (v);
SELECT * FROM pages(10, 200);
SELECT * FROM pages(100, 1100);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING graph (v);
SELECT * FROM pages(10, 200);
SELECT * FROM pages(100, 1100);
SELECT * FROM batches(7);
SELECT * FROM batches(40);
SET pgwarp.recall = 0.99;
SELECT * FROM pages(10, 200);
SELECT * FROM batches(40);
RESET pgwarp.recall;
SET pgwarp.graph_ef_search = 15;
SELECT * FROM pages(10, 200);
RESET pgwarp.graph_ef_search;
-- rows that came since, and rows that are gone
INSERT INTO items SELECT -id, v FROM items WHERE id % 50 = 1;
DELETE FROM items WHERE id % 20 = 3;
SELECT * FROM pages(10, 200);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING graph (v) WITH (vectors = half);
SELECT * FROM pages(10, 200);
SELECT * FROM batches(40);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (refine = half);
SELECT * FROM pages(10, 200);
SELECT * FROM pages(100, 1100);
SELECT * FROM batches(40);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v) WITH (refine = full);
SELECT * FROM pages(10, 200);
SET pgwarp.ivfadc_probes = 1;
SELECT * FROM pages(10, 200);
RESET pgwarp.ivfadc_probes;
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v) WITH (refine = half);
SELECT * FROM pages(10, 200);
SELECT * FROM pages(100, 1100);
SELECT * FROM batches(40);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v) WITH (refine = full);
SELECT * FROM pages(10, 200);
SET pgwarp.pqtree_candidates = 20;
SELECT * FROM pages(10, 200);
RESET pgwarp.pqtree_candidates;
DROP INDEX items_index;
-- beyond the last rung: what a function finds is what a scan finds, also where many rows of the rungs are gone
CREATE FUNCTION deep(k integer) RETURNS TABLE (rows bigint, same boolean, is_beginning boolean) AS $$
DECLARE
	query vector(8);
	scanned integer[];
	called integer[];
	fewer integer[];
BEGIN
	rows := 0; same := true; is_beginning := true;
	FOR query IN SELECT v FROM items WHERE id IN (7, 1507) LOOP
		EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM items ORDER BY v <-> $1 LIMIT %s) n', k) INTO scanned USING query;
		SELECT array_agg(i.id ORDER BY s.rank) INTO called FROM knn_search('items_index', ARRAY[query], k) WITH ORDINALITY AS s(query, tid, distance, rank) JOIN items i ON i.ctid = s.tid;
		SELECT array_agg(i.id ORDER BY s.rank) INTO fewer FROM knn_search('items_index', ARRAY[query], k - 500) WITH ORDINALITY AS s(query, tid, distance, rank) JOIN items i ON i.ctid = s.tid;
		rows := rows + cardinality(called);
		same := same AND scanned = called;
		is_beginning := is_beginning AND fewer = called[1 : k - 500];
	END LOOP;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;
DELETE FROM items WHERE id < 0;
SET pgwarp.recall = 0.9;
CREATE INDEX items_index ON items USING graph (v);
SET pgwarp.graph_ef_search = 15;
SELECT * FROM deep(1500);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v);
SET pgwarp.ivfadc_probes = 2;
SELECT * FROM deep(1500);
DELETE FROM items WHERE id % 3 = 0;
SELECT * FROM deep(600);
SELECT * FROM deep(1500);
SELECT * FROM batches(40);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING pqtree (v);
SET pgwarp.pqtree_candidates = 20;
SELECT * FROM deep(600);
SELECT * FROM deep(1500);
SELECT * FROM batches(40);
RESET pgwarp.pqtree_candidates;
DROP INDEX items_index;
RESET pgwarp.graph_ef_search;
RESET pgwarp.ivfadc_probes;
RESET pgwarp.recall;
DROP TABLE items;
DROP FUNCTION pages, batches, deep;
