SET client_min_messages = warning;
SET pgwarp.verify_results = on;

\getenv tests PG_ABS_SRCDIR
\set rows :tests '/sql/include/found.sql'
\set changed :tests '/sql/include/found_changed.sql'
\i :rows

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

\set method exact
\set found found
\set renew 'REINDEX INDEX items_index'
\i :changed
SELECT options, pgwarp_recall('items_index', 10, 50) FROM pgwarp_index_info('items_index');

DROP TABLE items;
DROP FUNCTION found_share;
DROP FUNCTION found;
