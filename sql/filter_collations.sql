-- A filter column of a collation whose equal texts differ: needs a server with ICU
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i') AS without_icu \gset
\if :without_icu
\quit
\endif
SET client_min_messages = warning;
SET enable_seqscan = off;
SET jit = off;
SET pgwarp.verify_results = on;
CREATE COLLATION case_blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE items (id integer, v vector(2), tenant integer, name text COLLATE case_blind);
INSERT INTO items SELECT i, ARRAY[i, i % 7]::vector, i % 10, CASE WHEN i % 2 = 0 THEN 'name ' ELSE 'NAME ' END || i % 13 FROM generate_series(1, 500) i;
CREATE INDEX items_index ON items USING exact (v, tenant, name);
UPDATE items SET name = 'Later' WHERE id BETWEEN 100 AND 110;
EXPLAIN (COSTS OFF) SELECT id, name FROM items WHERE name = 'LATER' AND tenant < 3 ORDER BY v <-> '[1,2]' LIMIT 30;
SELECT id, name FROM items WHERE name = 'LATER' AND tenant < 3 ORDER BY v <-> '[1,2]' LIMIT 30;
SELECT id, name FROM items WHERE name IN ('Name 7', 'later') AND tenant = 5 ORDER BY v <-> '[1,2]' LIMIT 6;
-- text of another collation does not compare by the index
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE name = 'LATER' COLLATE "C" ORDER BY v <-> '[1,2]' LIMIT 30;
SELECT id FROM items WHERE name = 'LATER' COLLATE "C" ORDER BY v <-> '[1,2]' LIMIT 30;
ALTER TABLE items ALTER name TYPE text COLLATE "C";
SELECT id, name FROM items WHERE name = 'Later' AND tenant < 3 ORDER BY v <-> '[1,2]' LIMIT 30;
SELECT id, name FROM items WHERE name = 'LATER' ORDER BY v <-> '[1,2]' LIMIT 30;
ALTER TABLE items ALTER name TYPE text COLLATE case_blind;
SELECT id, name FROM items WHERE name = 'LATER' AND tenant < 3 ORDER BY v <-> '[1,2]' LIMIT 30;
SELECT live_rows FROM pgwarp_check('items_index', true);
DROP TABLE items;
DROP COLLATION case_blind;
