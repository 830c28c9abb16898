-- Recall of searches with conditions: rows of the table are queries, and the rows that equal them in some columns are searched
SET client_min_messages = warning;
CREATE TABLE items (id integer, v vector(8), tenant integer, price numeric, name text);
SELECT setseed(0.5);
INSERT INTO items SELECT i, ARRAY(SELECT random() + i * 0 FROM generate_series(1, 8))::vector, i % 12, CASE WHEN i % 10 > 0 THEN i % 90 END, 'name ' || i % 7 FROM generate_series(1, 3000) i;
CREATE INDEX items_index ON items USING exact (v, tenant, price, name);
SELECT pgwarp_recall('items_index', ARRAY['tenant'], 10, 50), pgwarp_recall('items_index', ARRAY['price', 'name'], sample => 50);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (tenant, v, price, name) WITH (lists = 40);
SELECT pgwarp_recall('items_index', ARRAY['tenant'], 10, 100) >= 0.9 AS tenant, pgwarp_recall('items_index', ARRAY['tenant', 'name'], 5, 100) >= 0.9 AS two,
	pgwarp_recall('items_index', ARRAY['price'], 5, 100) >= 0.9 AS price;
-- without vectors in the index the table tells the true neighbours; rows of a delta, and dead ones
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfadc (v, tenant, name) WITH (lists = 40, refine = 'none');
DELETE FROM items WHERE id % 5 = 0;
INSERT INTO items SELECT i, ARRAY(SELECT random() + i * 0 FROM generate_series(1, 8))::vector, i % 12, 1, 'name ' || i % 7 FROM generate_series(3001, 3200) i;
SELECT pgwarp_recall('items_index', ARRAY['tenant'], 5, 60) >= 0.8 AS codes;
SET pgwarp.ivfadc_probes = 1;
SELECT pgwarp_recall('items_index', ARRAY['tenant'], 5, 60) > pgwarp_recall('items_index', 5, 60) AS more_than_of_all;
RESET pgwarp.ivfadc_probes;
-- a row with a NULL is no query; a row whose values no other has has no neighbours to miss
UPDATE items SET name = NULL WHERE id % 2 = 0;
SELECT pgwarp_recall('items_index', ARRAY['name'], 5, 60) >= 0.8 AS not_null;
UPDATE items SET name = NULL;
SELECT pgwarp_recall('items_index', ARRAY['name'], 5, 60) AS none;
UPDATE items SET name = id::text;
SELECT pgwarp_recall('items_index', ARRAY['name'], 5, 60) AS alone;
-- refused
SELECT pgwarp_recall('items_index', ARRAY['price']);
SELECT pgwarp_recall('items_index', ARRAY['v']);
SELECT pgwarp_recall('items_index', ARRAY[]::text[]);
SELECT pgwarp_recall('items_index', ARRAY['tenant'], 0);
SELECT pgwarp_recall('items_index', ARRAY['tenant'], 10, 0);
-- a column that is an expression has the name that the index gives it
CREATE INDEX items_expressions ON items USING exact (v, (tenant % 4));
SELECT pgwarp_recall('items_expressions', ARRAY['tenant']);
SELECT pgwarp_recall('items_expressions', ARRAY['expr'], 5, 60);
DROP TABLE items;
