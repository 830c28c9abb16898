SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set found :tests '/sql/include/found.sql'
\i :found

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
DROP FUNCTION found_share;
DROP FUNCTION found;
