-- who may call knn_search, knn_graph and kmeans
SET client_min_messages = warning;

CREATE ROLE regress_pgwarp_reader;
CREATE ROLE regress_pgwarp_other;
CREATE SCHEMA regress_pgwarp;
GRANT USAGE ON SCHEMA regress_pgwarp TO regress_pgwarp_reader, regress_pgwarp_other;
SET search_path = regress_pgwarp, public;
CREATE TABLE items (id integer, kind integer, v vector(2));
INSERT INTO items SELECT i, i % 3, ARRAY[i, -i]::vector(2) FROM generate_series(1, 30) i;
CREATE INDEX items_v ON items USING exact (v);
CREATE INDEX items_part ON items USING exact (v) WHERE kind = 0;
CREATE INDEX items_sum ON items USING exact (((v + ARRAY[id, id]::vector)::vector(2)));

-- nothing granted
SET ROLE regress_pgwarp_reader;
SELECT * FROM knn_search('items_v', ARRAY['[1,1]'::vector], 1);
SELECT * FROM knn_search('items_v', 'SELECT ''[1,1]''::vector', 1);
SELECT * FROM knn_graph('items_v', 1);
SELECT * FROM kmeans('items', 'v', 1);

-- the indexed column suffices
RESET ROLE;
GRANT SELECT (v) ON items TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT distance FROM knn_search('items_v', ARRAY['[1,-1]'::vector], 1);
SELECT count(*) FROM knn_graph('items_v', 1);
SELECT count(*) FROM kmeans('items', 'v', 2);
-- but not where the index is made of others too
SELECT * FROM knn_search('items_part', ARRAY['[1,1]'::vector], 1);
SELECT * FROM knn_graph('items_sum', 1);
SELECT * FROM kmeans('items', 'id', 1);
RESET ROLE;
GRANT SELECT (kind) ON items TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT distance FROM knn_search('items_part', ARRAY['[3,-3]'::vector], 1);
SELECT * FROM knn_graph('items_sum', 1);
-- the query is run with the caller's rights
SELECT * FROM knn_search('items_v', 'SELECT v FROM items WHERE id = 1', 1);
RESET ROLE;
GRANT SELECT ON items TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT query, distance FROM knn_search('items_v', 'SELECT v FROM items WHERE id < 3 ORDER BY id', 1);
SELECT count(*) FROM knn_graph('items_sum', 1);
RESET ROLE;

-- a function of the owner's reads for others, as it does with tables
CREATE FUNCTION knn_of(vector) RETURNS TABLE (distance double precision) LANGUAGE sql AS
	$$ SELECT distance FROM knn_search('regress_pgwarp.items_v', ARRAY[$1], 1) $$;
CREATE FUNCTION nearest(vector) RETURNS SETOF double precision SECURITY DEFINER LANGUAGE sql AS
	$$ SELECT distance FROM regress_pgwarp.knn_of($1) $$;
SET ROLE regress_pgwarp_other;
SELECT * FROM nearest('[1,-1]');
SELECT * FROM knn_of('[1,-1]');
RESET ROLE;

-- row security
CREATE POLICY odd ON items USING (id % 2 = 1);
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
SELECT count(*) FROM knn_search('items_v', ARRAY['[1,-1]'::vector], 100);
SET ROLE regress_pgwarp_reader;
SELECT * FROM knn_search('items_v', ARRAY['[1,1]'::vector], 1);
SELECT * FROM knn_search('items_v', 'SELECT v FROM items', 1);
SELECT * FROM knn_graph('items_v', 1);
SELECT * FROM kmeans('items', 'v', 1);
SET row_security = off;
SELECT * FROM knn_search('items_v', ARRAY['[1,1]'::vector], 1);
RESET row_security;
\set VERBOSITY sqlstate
SELECT * FROM knn_search('items_v', ARRAY['[1,1]'::vector], 1);
RESET ROLE;
SET ROLE regress_pgwarp_other;
SELECT * FROM knn_search('items_v', ARRAY['[1,1]'::vector], 1);
\set VERBOSITY default
RESET ROLE;
-- of the owner, where it is forced
ALTER TABLE items FORCE ROW LEVEL SECURITY;
ALTER TABLE items OWNER TO regress_pgwarp_other;
SET ROLE regress_pgwarp_other;
SELECT * FROM knn_search('items_v', ARRAY['[1,1]'::vector], 1);
ALTER TABLE items NO FORCE ROW LEVEL SECURITY;
SELECT count(*) FROM knn_search('items_v', ARRAY['[1,-1]'::vector], 100);
RESET ROLE;


-- functions in an index's expressions and predicate run as the table's owner, also for a superuser
CREATE FUNCTION told(vector) RETURNS vector IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN RAISE WARNING 'expression run by %', current_user; RETURN $1; END $$;
CREATE FUNCTION told(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN RAISE WARNING 'predicate run by %', current_user; RETURN true; END $$;
GRANT CREATE ON SCHEMA regress_pgwarp TO regress_pgwarp_other;
SET ROLE regress_pgwarp_other;
CREATE TABLE traps (id integer, v vector(2));
INSERT INTO traps VALUES (1, '[1,1]');
CREATE INDEX traps_v ON traps USING exact ((told(v)::vector(2))) WHERE told(id);
RESET ROLE;
SELECT distance FROM knn_search('traps_v', ARRAY['[1,2]'::vector], 1);
SELECT count(*) FROM knn_graph('traps_v', 1);
SELECT count(*) FROM (SELECT knn_graph('traps_v', 1) OFFSET 0) s;
SELECT pgwarp_recall('traps_v', 1);
SELECT live_rows FROM pgwarp_check('traps_v', true);
CALL pgwarp_merge('traps_v');
-- and can't do what a security-restricted operation must not; a parallel worker refuses by another message
SET max_parallel_workers_per_gather = 0;
CREATE OR REPLACE FUNCTION told(vector) RETURNS vector IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN PERFORM set_config('role', 'none', false); RETURN $1; END $$;
CREATE OR REPLACE FUNCTION told(integer) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
SELECT pgwarp_recall('traps_v', 1);
SELECT * FROM knn_graph('traps_v', 1);
SELECT current_user = session_user AS unchanged;
RESET max_parallel_workers_per_gather;

-- views: a function in one runs as the user of the view, with security_invoker and without
GRANT SELECT (v) ON traps TO regress_pgwarp_reader;
CREATE TABLE plain (id integer, v vector(2));
INSERT INTO plain VALUES (1, '[1,1]'), (2, '[2,2]');
CREATE INDEX plain_v ON plain USING exact (v) INCLUDE (id);
CREATE INDEX plain_alone ON plain USING exact (v);
CREATE VIEW found AS SELECT distance FROM knn_search('plain_alone', ARRAY['[1,2]'::vector], 1);
CREATE VIEW invoked WITH (security_invoker) AS SELECT distance FROM knn_search('plain_alone', ARRAY['[1,2]'::vector], 1);
CREATE VIEW edges WITH (security_invoker) AS SELECT distance FROM knn_graph('plain_alone', 1);
GRANT SELECT ON found, invoked, edges TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT * FROM found;
SELECT * FROM invoked;
SELECT * FROM edges;
RESET ROLE;
GRANT SELECT (v) ON plain TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT * FROM found;
SELECT * FROM invoked;
SELECT count(*) FROM edges;
SELECT pgwarp_recall('plain_alone', 1);
-- an index that also keeps a column that may not be read
SELECT * FROM knn_search('plain_v', ARRAY['[1,2]'::vector], 1);
SELECT * FROM knn_graph('plain_v', 1);
SELECT pgwarp_recall('plain_v', 1);
RESET ROLE;
CREATE POLICY odd ON plain USING (id % 2 = 1);
ALTER TABLE plain ENABLE ROW LEVEL SECURITY;
SET ROLE regress_pgwarp_reader;
SELECT * FROM invoked;
SELECT * FROM edges;
RESET ROLE;

-- how many rows are NULL follows from no number for those whom row security hides rows from, as in pg_stats
INSERT INTO plain SELECT i, NULL FROM generate_series(3, 9) i;
ANALYZE plain;
SELECT pgwarp_prewarm('plain_v') > 0;
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('plain_v');
SELECT rows, delta_rows, delta_rows_indexed, dead_rows FROM pgwarp_status WHERE index = 'plain_v'::regclass;
GRANT SELECT ON plain TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT null_frac FROM pg_stats WHERE tablename = 'plain' AND attname = 'v';
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('plain_v');
SELECT rows, delta_rows, delta_rows_indexed, dead_rows FROM pgwarp_status WHERE index = 'plain_v'::regclass;
RESET ROLE;
ALTER TABLE plain DISABLE ROW LEVEL SECURITY;
SET ROLE regress_pgwarp_reader;
SELECT null_frac > 0.5 AS most FROM pg_stats WHERE tablename = 'plain' AND attname = 'v';
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('plain_v');
SELECT rows, delta_rows, delta_rows_indexed, dead_rows FROM pgwarp_status WHERE index = 'plain_v'::regclass;
RESET ROLE;
REVOKE SELECT ON plain FROM regress_pgwarp_reader;
GRANT SELECT (v) ON plain TO regress_pgwarp_reader;
ALTER TABLE plain ENABLE ROW LEVEL SECURITY;

-- of the resident indexes a role sees those of tables that it may read
CREATE TABLE hidden (v vector(2));
INSERT INTO hidden VALUES ('[1,1]');
CREATE INDEX hidden_v ON hidden USING exact (v);
SELECT pgwarp_prewarm('plain_alone') > 0, pgwarp_prewarm('hidden_v') > 0;
SELECT index FROM pgwarp_status_indexes WHERE index::text IN ('plain_alone', 'hidden_v') ORDER BY index::text;
SET ROLE regress_pgwarp_reader;
SELECT index FROM pgwarp_status_indexes WHERE index::text IN ('plain_alone', 'hidden_v') ORDER BY index::text;
SELECT index FROM pgwarp_status WHERE index::text IN ('plain_alone', 'hidden_v') ORDER BY index::text;
SELECT count(*) FROM pgwarp_status_engine() WHERE filenode = pg_relation_filenode('hidden_v');
SELECT count(*), bool_and(engine_pid > 0) FROM pgwarp_status_server;
RESET ROLE;
GRANT pg_read_all_stats TO regress_pgwarp_reader;
SET ROLE regress_pgwarp_reader;
SELECT index FROM pgwarp_status_indexes WHERE index::text IN ('plain_alone', 'hidden_v') ORDER BY index::text;
RESET ROLE;

DROP SCHEMA regress_pgwarp CASCADE;
DROP ROLE regress_pgwarp_reader, regress_pgwarp_other;
