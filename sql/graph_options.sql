CREATE TABLE t (val vector(3));

CREATE INDEX ON t USING graph (val) WITH (degree = -1);
CREATE INDEX ON t USING graph (val) WITH (degree = 257);
CREATE INDEX ON t USING graph (val) WITH (degree = 2);
CREATE INDEX ON t USING graph (val) WITH (degree = 32, build_degree = 16);
CREATE INDEX ON t USING graph (val) WITH (vectors = quarter);
CREATE INDEX ON t USING graph (val) WITH (vectors = bits, bits = 100);
CREATE INDEX ON t USING graph (val) WITH (bits = 128);
CREATE INDEX ON t USING graph (val) WITH (lists = 3);
CREATE INDEX ON t USING graph (val, val);
CREATE UNIQUE INDEX ON t USING graph (val);
CREATE INDEX ON t USING graph (val DESC);

-- no index was left behind
SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass;

-- what was asked for, and what was chosen
CREATE INDEX t_full ON t USING graph (val);
CREATE INDEX t_narrow ON t USING graph (val) WITH (degree = 8, build_degree = 12);
CREATE INDEX t_half ON t USING graph (val) WITH (vectors = half);
CREATE INDEX t_bits ON t USING graph (val) WITH (vectors = bits, bits = 64);
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 't\__%' ORDER BY relname;
SELECT i, options->>'vectors' AS vectors, (options->>'degree')::int > 0 AS degree, (options->>'build_degree')::int > 0 AS build_degree,
	options->>'bits' AS bits FROM unnest('{t_full,t_half,t_bits}'::regclass[]) i, pgwarp_index_info(i);
SELECT options->>'degree' AS degree, options->>'build_degree' AS build_degree FROM pgwarp_index_info('t_narrow');
-- options that make no sense together are refused when they are set, too
ALTER INDEX t_narrow SET (degree = 2);
ALTER INDEX t_narrow SET (bits = 64);
ALTER INDEX t_narrow SET (build_degree = 4);
ALTER INDEX t_narrow SET (degree = 12);
SELECT pg_get_indexdef('t_narrow'::regclass);
INSERT INTO t SELECT ARRAY[i, i % 7, i % 5]::vector FROM generate_series(1, 100) i;
REINDEX INDEX t_narrow;
SELECT rows, options->>'degree' AS degree FROM pgwarp_index_info('t_narrow');
DROP TABLE t;

-- columns without dimensions, and of other types

CREATE TABLE t (val vector, numbers real[]);
CREATE INDEX ON t USING graph (val);
CREATE INDEX ON t USING graph (numbers);
CREATE INDEX ON t USING graph ((val::vector(3)));
DROP TABLE t;

-- the setting

SHOW pgwarp.graph_ef_search;
SET pgwarp.graph_ef_search = -1;
SET pgwarp.graph_ef_search = 65537;

-- operator classes

SELECT opc.opcname, opc.opcdefault, amvalidate(opc.oid)
	FROM pg_opclass opc JOIN pg_am am ON am.oid = opc.opcmethod WHERE am.amname = 'graph' AND opc.opcname LIKE 'vector\_%' ORDER BY 1;

-- the planner takes it for an order, and for nothing else

CREATE TABLE t (id integer PRIMARY KEY, val vector(3));
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 5]::vector FROM generate_series(1, 20000) i;
CREATE INDEX t_val ON t USING graph (val);
ANALYZE t;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <-> '[1,2,3]' LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <-> '[1,2,3]' DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <=> '[1,2,3]' LIMIT 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
-- fewer comparisons than an exact index makes
CREATE INDEX t_exact ON t USING exact (val);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <-> '[1,2,3]' LIMIT 5;
DROP INDEX t_exact;
-- the effort of a batch
CREATE FUNCTION effort() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT q.id, n.id FROM (SELECT * FROM t LIMIT 9) q
		CROSS JOIN LATERAL (SELECT i.id FROM t i ORDER BY i.val <-> q.val LIMIT 2) n' LOOP
		IF line ~ 'KnnBatch|Effort|Order By' THEN RETURN NEXT regexp_replace(trim(line), ' \(actual.*', ''); END IF;
	END LOOP;
END $$;
SET enable_seqscan = on;
SET pgwarp.graph_ef_search = 77;
SELECT effort();
RESET pgwarp.graph_ef_search;
SELECT regexp_replace(effort, '=\d+', '=some') FROM effort() effort;
DROP FUNCTION effort;
DROP TABLE t;

-- what SONG leaves to choose, for a GPU: the CPU answers the same whatever is chosen

SELECT name, setting, boot_val, min_val, max_val, enumvals FROM pg_settings WHERE name ~ '^pgwarp.graph_' AND name <> 'pgwarp.graph_ef_search' ORDER BY name;
SET pgwarp.graph_visited = tables;
SET pgwarp.graph_visited = 1;
SET pgwarp.graph_bounded_queue = 2;
SET pgwarp.graph_selected_insertion = sometimes;
SET pgwarp.graph_visited_deletion = '';
SET pgwarp.graph_multi_query = 3;
SET pgwarp.graph_multi_query = 5;
SET pgwarp.graph_multi_query = -1;
SET pgwarp.graph_multi_step = 33;
SET pgwarp.graph_multi_step = -1;
SET pgwarp.graph_no_such_choice = 1;

CREATE TABLE t (id integer PRIMARY KEY, val vector(4));
INSERT INTO t SELECT i, ARRAY[i % 89, i % 97, i % 101, i % 103]::vector FROM generate_series(1, 20000) i;
CREATE INDEX t_val ON t USING graph (val);
ANALYZE t;
CREATE FUNCTION answers() RETURNS integer[] LANGUAGE sql AS $$
	SELECT array_agg(n.id ORDER BY q.id, n.d, n.id)
	FROM t q CROSS JOIN LATERAL (SELECT i.id, i.val <-> q.val AS d FROM t i ORDER BY i.val <-> q.val LIMIT 5) n WHERE q.id % 2000 = 1
$$;
SET enable_seqscan = off;
SET pgwarp.graph_ef_search = 2000;
SELECT answers() AS usual \gset
SET pgwarp.graph_visited = hash;
SELECT answers() = :'usual';
SET pgwarp.graph_visited = bloom;
SET pgwarp.graph_bounded_queue = off;
SELECT answers() = :'usual';
SET pgwarp.graph_visited = cuckoo;
SET pgwarp.graph_selected_insertion = on;
SET pgwarp.graph_visited_deletion = on;
SET pgwarp.graph_multi_query = 4;
SET pgwarp.graph_multi_step = 32;
SELECT answers() = :'usual', array_length(:'usual'::integer[], 1);
RESET pgwarp.graph_ef_search;
-- they choose no effort: what the index can't reach is said all the same
DROP INDEX t_val;
CREATE INDEX t_bits ON t USING graph (val) WITH (vectors = bits, bits = 32);
SET pgwarp.recall = 1;
\set VERBOSITY terse
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <-> '[1,2,3,4]' LIMIT 3) n;
\set VERBOSITY default
RESET ALL;
DROP FUNCTION answers;
DROP TABLE t;
