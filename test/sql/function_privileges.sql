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

DROP SCHEMA regress_pgwarp CASCADE;
DROP ROLE regress_pgwarp_reader, regress_pgwarp_other;
