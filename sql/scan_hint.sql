-- what a scan is told of the LIMIT above it is its own: neither an error nor another scan of the index finds it
SET jit = off;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE items (id integer, v vector(3));
INSERT INTO items SELECT i, ARRAY[i % 17, i % 101, i]::vector FROM generate_series(1, 5000) i;
CREATE INDEX items_v ON items USING exact (v);
VACUUM ANALYZE items;

-- an error while the query vector is computed
\set ECHO none
SELECT format('PREPARE wide(text) AS SELECT id, %s FROM items ORDER BY v <-> $1::vector LIMIT 5',
	string_agg(format('(SELECT count(*) FROM generate_series(1, %s))', n), ', ')) FROM generate_series(1, 900) n \gexec
\set ECHO all
EXECUTE wide('[bad');
BEGIN;
DECLARE all_items CURSOR FOR SELECT id FROM items ORDER BY v <-> '[1,2,3]';
FETCH 3 FROM all_items;
COMMIT;
DEALLOCATE wide;
PREPARE narrow(text) AS SELECT id FROM items ORDER BY v <-> $1::vector LIMIT 2;
BEGIN;
DECLARE all_items CURSOR FOR SELECT id FROM items ORDER BY v <-> '[1,2,3]';
DECLARE first_items CURSOR FOR SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT 4;
FETCH 1 FROM first_items;
SAVEPOINT before;
FETCH 1 FROM all_items;
EXECUTE narrow('[1,2,3]');
EXECUTE narrow('[bad');
ROLLBACK TO before;
FETCH 2 FROM all_items;
FETCH ALL FROM first_items;
EXECUTE narrow('[1,2,3]');
COMMIT;

-- a function in the query vector that searches the same index: how many rows each scan searches for
CREATE FUNCTION nested_query() RETURNS vector STABLE LANGUAGE plpgsql AS $$
DECLARE
	every CURSOR FOR SELECT v FROM items ORDER BY v <-> '[1,2,3]';
	found vector;
BEGIN
	OPEN every;
	FETCH every INTO found;
	CLOSE every;
	RETURN found;
END $$;
SELECT id FROM items ORDER BY v <-> nested_query() LIMIT 3;
SET client_min_messages = debug1;
\set VERBOSITY terse
SELECT id FROM items ORDER BY v <-> nested_query() LIMIT 3;
-- and for each row whose distance is read
SELECT id, v <-> nested_query() AS d FROM items ORDER BY d LIMIT 3;
-- each execution of a scan again
SELECT q.id, n.id FROM generate_series(1, 2) q(id), LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> ARRAY[q.id, q.id, 7]::vector LIMIT 2) n;
\set VERBOSITY default
RESET client_min_messages;

-- a scan whose rows are counted
CREATE FUNCTION rows_counted(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
		IF line ~ 'Scan|Limit' THEN RETURN NEXT trim(regexp_replace(line, '\.00', '', 'g')); END IF;
	END LOOP;
END $$;
SELECT rows_counted($$SELECT id FROM items ORDER BY v <-> nested_query() LIMIT 3$$);
SELECT rows_counted($$SELECT q.id, n.id FROM generate_series(1, 4) q(id), LATERAL (SELECT i.id FROM items i ORDER BY i.v <-> ARRAY[q.id, q.id, 7]::vector LIMIT 2) n$$);
DROP FUNCTION rows_counted(text), nested_query();
DROP TABLE items;
