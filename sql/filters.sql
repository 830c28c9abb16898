-- docs/filters.md: its statements
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE items (id bigint, tenant_id bigint, price numeric, v vector(3));
INSERT INTO items SELECT i, i % 20, i % 37, ARRAY[hashint4(i), hashint4(i + 10000), hashint4(i + 20000)]::vector FROM generate_series(1, 4000) i;
CREATE TABLE questions (id bigint, tenant_id bigint, v vector(3));
INSERT INTO questions SELECT id, tenant_id, v FROM items WHERE id <= 40;
CREATE INDEX ON items USING ivfadc (v, tenant_id, price);
ANALYZE items, questions;
\set near '''[100000000,-100000000,1000000000]'''
PREPARE cheap(vector) AS
SELECT id FROM items WHERE tenant_id = 7 AND price < 10 ORDER BY v <-> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE cheap(:near);
CREATE TABLE found AS EXECUTE cheap(:near);
SELECT count(*) FROM found JOIN (SELECT id FROM items WHERE tenant_id = 7 AND price < 10 ORDER BY (v <-> :near) + 0 LIMIT 10) t USING (id);
-- of each outer row its own
PREPARE joined AS
SELECT q.id, i.id FROM questions q CROSS JOIN LATERAL
    (SELECT id FROM items WHERE tenant_id = q.tenant_id ORDER BY v <-> q.v LIMIT 10) i;
CREATE TABLE pairs (question, item) AS EXECUTE joined;
SELECT count(*), count(DISTINCT item) > 300, bool_and(q.tenant_id = i.tenant_id) FROM pairs p JOIN questions q ON q.id = p.question JOIN items i ON i.id = p.item;
-- the recall asked, measured
SELECT recall >= 0.95 FROM (
SELECT pgwarp_recall('items_v_tenant_id_price_idx', ARRAY['tenant_id'])
) measured (recall);
-- a policy
DROP INDEX items_v_tenant_id_price_idx;
CREATE POLICY own ON items USING (tenant_id = current_setting('app.tenant')::bigint);
CREATE INDEX ON items USING ivfadc (v, tenant_id);
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE ROLE filters_reader;
GRANT SELECT ON items TO filters_reader;
SET app.tenant = '7';
SET ROLE filters_reader;
PREPARE own(vector) AS
SELECT id FROM items ORDER BY v <-> $1 LIMIT 10;
EXPLAIN (COSTS OFF) EXECUTE own(:near);
RESET ROLE;
DROP TABLE items, questions, found, pairs;
DROP ROLE filters_reader;
