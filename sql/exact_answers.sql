SET client_min_messages = warning;
SET pgwarp.verify_results = on;

-- answers agree with the sequential scan

CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(8));
INSERT INTO items
	SELECT i, i % 10, ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i), sin(0.77 * i), cos(5.1 * i), sin(3.3 * i), cos(0.013 * i)]::vector(8)
	FROM generate_series(1, 3000) i;

-- how many of the nearest rows of some queries an index scan finds, and whether they come in order
CREATE FUNCTION found(operator text, k integer, condition text DEFAULT 'true') RETURNS TABLE (rows bigint, hits bigint, ordered boolean) AS $$
DECLARE
	query vector(8);
	ids integer[];
	distances double precision[];
	truth integer[];
	statement text := format('SELECT array_agg(id), array_agg(d) FROM (SELECT id, v %1$s $1 AS d FROM items WHERE %2$s ORDER BY v %1$s $1 LIMIT %3$s) n',
		operator, condition, k);
BEGIN
	rows := 0; hits := 0; ordered := true;
	FOR query IN SELECT v FROM items WHERE id % 300 = 7 LOOP
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_sort = off;
		EXECUTE statement INTO ids, distances USING query;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_sort = on;
		EXECUTE statement INTO truth USING query;
		rows := rows + cardinality(ids);
		hits := hits + (SELECT count(*) FROM unnest(ids) a JOIN unnest(truth) b ON a = b);
		ordered := ordered AND distances = (SELECT array_agg(d ORDER BY d) FROM unnest(distances) d);
	END LOOP;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;

CREATE INDEX items_index ON items USING exact (v);
SELECT * FROM found('<->', 1);
SELECT * FROM found('<->', 10);
SELECT * FROM found('<->', 200);
SELECT * FROM found('<->', 2999);
SELECT * FROM found('<->', 10, 'kind = 3');
SELECT * FROM found('<->', 5, 'id < 20');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING exact (v) WITH (vectors = half);
SELECT * FROM found('<->', 10);
SELECT * FROM found('<->', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING exact (v vector_ip_ops);
SELECT * FROM found('<#>', 10);
SELECT * FROM found('<#>', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING exact (v vector_cosine_ops);
SELECT * FROM found('<=>', 10);
SELECT * FROM found('<=>', 10, 'kind = 3');
DROP INDEX items_index;

CREATE INDEX items_index ON items USING exact (v vector_l1_ops);
SELECT * FROM found('<+>', 10);
SELECT * FROM found('<+>', 10, 'kind = 3');
DROP INDEX items_index;

-- rows of the delta, updates and deletes

CREATE INDEX items_index ON items USING exact (v);
INSERT INTO items SELECT id + 3000, kind, v + '[0.01,0,0,0,0,0,0,0]'::vector FROM items WHERE id % 3 = 0;
UPDATE items SET v = v + '[0,0.01,0,0,0,0,0,0]'::vector WHERE id % 5 = 0;
DELETE FROM items WHERE id % 7 = 1;
SELECT * FROM found('<->', 50);
VACUUM items;
SELECT * FROM found('<->', 50);
INSERT INTO items SELECT id + 10000, kind, v FROM items WHERE id % 11 = 0;
SELECT * FROM found('<->', 50);
REINDEX INDEX items_index;
SELECT * FROM found('<->', 50);
SELECT method, rows = (SELECT count(*) FROM items) AS all_rows, delta_rows, dead_rows, bytes > 0 AS has_pages, length(generation), options
	FROM pgwarp_index_info('items_index');
SELECT pgwarp_recall('items_index', 10, 50);

DROP TABLE items;
DROP FUNCTION found;
