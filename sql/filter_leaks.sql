-- No function of the user sees a row that a policy hides: with keys of an index, filters above it, batches of joins and sub-selects, partitions,
-- index-only scans, kept plans and changing roles
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE ROLE leaks_alice;
CREATE ROLE leaks_eve;
CREATE TABLE items (id integer, tenant integer, kind integer, price numeric, name text, v vector(3));
INSERT INTO items SELECT i, i % 8, i % 5, i % 100, 'name ' || i % 11, CASE WHEN i % 90 > 0 THEN ARRAY[i % 17, i % 101, i % 7]::vector END FROM generate_series(1, 4000) i;
CREATE TABLE questions (id integer, tenant integer, kind integer, v vector(3));
INSERT INTO questions SELECT i, i % 8, i % 5, ARRAY[i % 17, i % 90, 3.25]::vector FROM generate_series(1, 400) i;
CREATE TABLE parts (id integer, tenant integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (2000);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (2000) TO (5000);
INSERT INTO parts SELECT id, tenant, v FROM items;
GRANT SELECT, UPDATE, DELETE ON items, questions, parts TO leaks_alice, leaks_eve;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
ALTER TABLE questions ENABLE ROW LEVEL SECURITY;
ALTER TABLE parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY eves ON items TO leaks_eve USING (tenant = 3);
CREATE POLICY alices ON items TO leaks_alice USING (tenant = 6);
CREATE POLICY eves ON questions TO leaks_eve USING (tenant = 3);
CREATE POLICY alices ON questions TO leaks_alice USING (tenant = 6);
CREATE POLICY eves ON parts TO leaks_eve USING (tenant = 3);
CREATE POLICY alices ON parts TO leaks_alice USING (tenant = 6);

-- A function that would be evaluated first, and tells of each row of another tenant
CREATE FUNCTION tells(tenant integer, id integer) RETURNS boolean LANGUAGE plpgsql STABLE COST 0.0000001 AS $$
BEGIN
	IF tenant IS DISTINCT FROM (CASE current_user WHEN 'leaks_eve' THEN 3 WHEN 'leaks_alice' THEN 6 END) THEN RAISE WARNING 'leaked row % of tenant %', id, tenant; END IF;
	RETURN id % 3 > 0;
END $$;
CREATE FUNCTION tells_equal(integer, integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0000001 AS $$
BEGIN
	IF $1 NOT IN (3, 6) THEN RAISE WARNING 'leaked tenant %', $1; END IF;
	RETURN $1 = $2;
END $$;
CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = tells_equal);

-- Nodes and keys of a statement's plan, the number of its rows, and whether they are those without indexes
CREATE FUNCTION guarded(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found text;
	expected text;
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true), set_config('enable_sort', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		IF line ~ 'Knn|Index( Only)? Scan|Index Cond|Filter' THEN RETURN NEXT regexp_replace(line, '^[ >-]+', ''); END IF;
	END LOOP;
	EXECUTE 'SELECT string_agg(s::text, '' '' ORDER BY s::text) FROM (' || statement || ') s' INTO found;
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_sort', 'on', true);
	EXECUTE 'SELECT string_agg(s::text, '' '' ORDER BY s::text) FROM (' || statement || ') s' INTO expected;
	RETURN NEXT format('%s rows, the same: %s', (SELECT count(*) FROM regexp_matches(found, '\)', 'g')), found = expected);
END $$;
-- the function does tell: without the policy it is called first, for all rows
SELECT count(*) FROM (SELECT * FROM items ORDER BY id LIMIT 3) s WHERE id > 2 AND tells(tenant, id);

-- the policy as a key; the user's conditions as keys and above them
CREATE INDEX items_v ON items USING exact (v, tenant, kind, price, name);
CREATE INDEX parts_v ON parts USING exact (v, tenant);
VACUUM ANALYZE items, questions, parts;
SET ROLE leaks_eve;
SELECT guarded('SELECT v <-> ''[1,2,3]'' FROM items WHERE tells(tenant, id) AND kind = 2 ORDER BY v <-> ''[1,2,3]'' LIMIT 10');
SELECT guarded('SELECT v <-> ''[1,2,3]'' FROM items WHERE tenant === 3 AND price < 50 AND name = ''name 4'' ORDER BY v <-> ''[1,2,3]'' LIMIT 100');
SELECT guarded('SELECT v <-> ''[1,2,3]'' FROM items WHERE (tells(tenant, id) OR kind = 1) AND v <-> ''[1,2,3]'' < 20 ORDER BY v <-> ''[1,2,3]'' LIMIT 100');
SELECT guarded('SELECT v <-> ''[1,2,3]'' FROM items WHERE tenant IN (1, 3) AND tells(tenant, id) AND v IS NOT NULL ORDER BY v <-> ''[1,2,3]'' LIMIT 100');
-- the target list
SELECT guarded('SELECT tells(tenant, id), v <-> ''[1,2,3]'' FROM items ORDER BY v <-> ''[1,2,3]'' LIMIT 10');

-- joins and sub-selects in batches: of either side's rows
SELECT guarded('SELECT q.id, i.d FROM questions q CROSS JOIN LATERAL (SELECT v <-> q.v AS d FROM items i WHERE i.kind = q.kind ORDER BY v <-> q.v LIMIT 3) i');
SELECT guarded('SELECT q.id, i.d FROM questions q CROSS JOIN LATERAL
	(SELECT v <-> q.v AS d FROM items i WHERE i.kind = q.kind AND tells(tenant, id) AND tells_equal(tenant, 3) ORDER BY v <-> q.v LIMIT 3) i WHERE tells(q.tenant, q.id)');
SELECT guarded('SELECT q.id, i.d FROM questions q CROSS JOIN LATERAL (SELECT i.v <-> q.v AS d FROM items i WHERE tells(q.tenant, i.id) AND tells(i.tenant, q.id) ORDER BY i.v <-> q.v LIMIT 3) i');
SELECT guarded('SELECT q.id, ARRAY(SELECT v <-> q.v FROM items i WHERE i.kind = q.kind AND tells(tenant, id) ORDER BY v <-> q.v LIMIT 3) FROM questions q WHERE tells(q.tenant, q.id)');
-- partitions
SELECT guarded('SELECT v <-> ''[1,2,3]'' FROM parts WHERE tells(tenant, id) ORDER BY v <-> ''[1,2,3]'' LIMIT 10');
RESET ROLE;

-- without a column for the policy: all conditions above the index, the policy's first
DROP INDEX items_v, parts_v;
CREATE INDEX items_v ON items USING exact (v) INCLUDE (id, tenant, kind);
CREATE INDEX parts_v ON parts USING exact (v);
VACUUM items;
SET ROLE leaks_alice;
SELECT guarded('SELECT id, kind FROM items WHERE tells(tenant, id) AND kind = 2 AND id > 300 ORDER BY v <-> ''[1,2,3]'' LIMIT 1000');
SELECT guarded('SELECT tells(tenant, id), kind FROM items WHERE tenant === 6 ORDER BY v <-> ''[1,2,3]'' LIMIT 1000');
SELECT guarded('SELECT q.id, i.tenant FROM questions q CROSS JOIN LATERAL (SELECT id, tenant FROM items i WHERE tells(tenant, id) ORDER BY v <-> q.v LIMIT 3) i WHERE tells(i.tenant, q.id)');
SELECT guarded('SELECT q.id, i.d FROM questions q CROSS JOIN LATERAL (SELECT v <-> q.v AS d FROM items i WHERE i.kind = q.kind AND tells(tenant, id) ORDER BY v <-> q.v LIMIT 3) i WHERE tells(q.tenant, q.id)');
SELECT guarded('SELECT v <-> ''[1,2,3]'' FROM parts WHERE tells(tenant, id) ORDER BY v <-> ''[1,2,3]'' LIMIT 10');
RESET ROLE;

-- kept plans: another role, another policy, a function of the owner
DROP INDEX items_v;
CREATE INDEX items_v ON items USING exact (v, tenant, kind);
CREATE FUNCTION nearest(query vector) RETURNS SETOF items LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT * FROM items WHERE tenant = 1 ORDER BY v <-> query LIMIT 3 $$;
SET enable_seqscan = off;
SET enable_sort = off;
SET plan_cache_mode = force_generic_plan;
PREPARE nearest_ids(vector, integer) AS SELECT tenant, count(*) FROM (SELECT tenant FROM items WHERE tells(tenant, id) AND kind = $2 ORDER BY v <-> $1 LIMIT 20) s GROUP BY tenant;
PREPARE joined AS SELECT i.tenant, count(*) FROM questions q CROSS JOIN LATERAL (SELECT * FROM items i WHERE i.kind = q.kind AND tells(tenant, id) ORDER BY v <-> q.v LIMIT 2) i GROUP BY i.tenant;
SET ROLE leaks_eve;
EXECUTE nearest_ids('[1,2,3]', 2);
EXECUTE joined;
SET ROLE leaks_alice;
EXECUTE nearest_ids('[1,2,3]', 2);
EXECUTE joined;
RESET ROLE;
ALTER POLICY alices ON items USING (tenant = 6 AND kind > 2);
SET ROLE leaks_alice;
EXECUTE nearest_ids('[1,2,3]', 2);
EXECUTE nearest_ids('[1,2,3]', 3);
SET row_security = off;
EXECUTE nearest_ids('[1,2,3]', 3);
RESET row_security;
-- a function of the owner returns what its owner finds
SELECT id, tenant FROM nearest('[1,2,3]');
-- a cursor keeps the role that opened it
RESET ROLE;
BEGIN;
SET LOCAL ROLE leaks_eve;
DECLARE eves CURSOR FOR SELECT tenant, kind FROM items WHERE tenant === 3 ORDER BY v <-> '[1,2,3]' LIMIT 4;
FETCH 2 FROM eves;
SET LOCAL ROLE leaks_alice;
FETCH 2 FROM eves;
COMMIT;
-- rows to be changed
BEGIN;
SET LOCAL ROLE leaks_alice;
DELETE FROM items WHERE ctid = ANY (ARRAY(SELECT ctid FROM items WHERE tells(tenant, id) AND kind = 3 ORDER BY v <-> '[1,2,3]' LIMIT 2)) AND tells(tenant, id) RETURNING tenant, kind;
UPDATE items SET kind = 4 FROM (SELECT id FROM items WHERE tells(tenant, id) ORDER BY v <-> '[1,2,3]' LIMIT 2) near WHERE near.id = items.id RETURNING items.tenant;
ROLLBACK;
DEALLOCATE nearest_ids;
DEALLOCATE joined;
DROP OPERATOR === (integer, integer);
DROP FUNCTION nearest, guarded, tells, tells_equal;
DROP TABLE items, questions, parts;
DROP ROLE leaks_alice, leaks_eve;
