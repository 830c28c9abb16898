-- Row-level security and columns to filter by: a policy's condition is a key of the scan; a condition of the query is one only where its
-- operator is leakproof, and no function of the user sees a row that the policy hides
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE ROLE filter_alice;
CREATE ROLE filter_eve;
CREATE TABLE items (id integer, owner name, tenant integer, price numeric, v vector(3), secret text);
INSERT INTO items SELECT i, CASE WHEN i % 4 = 0 THEN 'filter_eve' ELSE 'filter_alice' END, i % 4, i % 100, ARRAY[i % 10, i % 7, i]::vector, 'secret ' || i FROM generate_series(1, 2000) i;
CREATE TABLE tenants (name name, tenant integer);
INSERT INTO tenants VALUES ('filter_alice', 1), ('filter_eve', 0);
CREATE INDEX items_v ON items USING exact (v, tenant, price, secret);
ANALYZE items;
CREATE FUNCTION leaks(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'leaked %', $1; RETURN true; END $$;
CREATE FUNCTION leaks_less(integer, integer) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'leaked %', $1; RETURN $1 < $2; END $$;
GRANT SELECT ON items, tenants TO filter_alice, filter_eve;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON items USING (tenant = 0);
SET enable_seqscan = off;
SET ROLE filter_eve;
-- the policy's condition alone
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id, tenant FROM items ORDER BY v <-> '[1,2,3]' LIMIT 3;
-- leakproof: beside it; a leaky operator or function: above it
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE secret = 'secret 8' ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE secret = 'secret 8' ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE secret = 'secret 7' ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE secret IN ('secret 7', 'secret 12') ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE price < 20 ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE price < 20 ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE price IN (4, 8, 9) ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE price = 4 OR price = 8 ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE leaks(secret) ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT id FROM items WHERE leaks(secret) ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT id FROM items WHERE leaks(secret) AND tenant < 2 ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT id FROM items WHERE leaks_less(tenant, 2) AND id < 20 ORDER BY v <-> '[1,2,3]' LIMIT 2;
RESET ROLE;

-- a policy that reads another table
ALTER POLICY own ON items USING (tenant = (SELECT t.tenant FROM tenants t WHERE t.name = current_user));
SET ROLE filter_alice;
SELECT id, tenant FROM items ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id FROM items WHERE leaks(secret) ORDER BY v <-> '[1,2,3]' LIMIT 2;
SET ROLE filter_eve;
SELECT id, tenant FROM items ORDER BY v <-> '[1,2,3]' LIMIT 3;
RESET ROLE;

-- a policy that is not leakproof itself stays above the index, and so does all that comes after it
ALTER POLICY own ON items USING (price < 50);
SET ROLE filter_eve;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE tenant = 3 ORDER BY v <-> '[1,2,3]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE price > 40 ORDER BY v <-> '[1,2,3]' LIMIT 3;
SELECT id, price FROM items WHERE tenant = 3 AND leaks(secret) ORDER BY v <-> '[1,2,70]' LIMIT 2;
RESET ROLE;

-- a view with a security barrier
ALTER TABLE items DISABLE ROW LEVEL SECURITY;
CREATE VIEW own_items WITH (security_barrier) AS SELECT * FROM items WHERE tenant = 0 AND price < 50;
EXPLAIN (COSTS OFF) SELECT id FROM own_items WHERE price > 40 AND leaks(secret) ORDER BY v <-> '[1,2,3]' LIMIT 2;
SELECT id FROM own_items WHERE leaks(secret) AND id < 10 ORDER BY v <-> '[1,2,3]' LIMIT 2;
DROP VIEW own_items;
DROP TABLE items, tenants;
DROP FUNCTION leaks, leaks_less;
DROP ROLE filter_alice, filter_eve;
