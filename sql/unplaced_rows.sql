-- rows without a place in an order: NULLs, and zero vectors under cosine distance. Scans offer them last, as a sort does
SET client_min_messages = warning;
SET jit = off;
SET pgwarp.verify_results = on;

-- An answer as text; of which plan: `used` is a part of it that is to be there.
CREATE FUNCTION answer_of(statement text, used text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; plan text := ''; answer text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		plan := plan || line || ' ';
	END LOOP;
	IF plan !~ used THEN RETURN 'another plan: ' || plan; END IF;
	EXECUTE 'SELECT string_agg(s::text, '' '') || '': '' || count(*) FROM (' || statement || ') s' INTO answer;
	RETURN answer;
END $$;
-- Whether the answer by an index is that of sequential scans.
CREATE FUNCTION compared(statement text, used text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE truth text; answer text;
BEGIN
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
	truth := answer_of(statement, '');
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
	answer := answer_of(statement, used);
	PERFORM set_config('enable_seqscan', 'on', true);
	RETURN CASE WHEN answer = truth THEN regexp_replace(truth, '.*: ', '') || ' rows' ELSE statement || E'\n ' || truth || E'\n ' || answer END;
END $$;

-- The forms of a search: distances, which are all that equal rows have in common, or all rows, sorted by themselves.
CREATE TABLE forms (number integer, form text);
INSERT INTO forms VALUES
	(1, 'SELECT TAB.COL OP ''QUERY'' AS d FROM TAB ORDER BY d'),
	(2, 'SELECT TAB.COL OP ''QUERY'' AS d FROM TAB ORDER BY d LIMIT 1000'),
	(3, 'SELECT TAB.COL OP ''QUERY'' AS d FROM TAB ORDER BY d LIMIT 25 OFFSET 110'),
	(4, 'SELECT id FROM (SELECT id FROM TAB ORDER BY TAB.COL OP ''QUERY'' OFFSET 0) s ORDER BY id'),
	(5, 'SELECT id FROM (SELECT id FROM TAB ORDER BY TAB.COL OP (SELECT COL FROM asked WHERE id = 6) OFFSET 0) s ORDER BY id'),
	(6, 'SELECT TAB.COL OP ''QUERY'' AS d, kind FROM TAB WHERE kind = 3 ORDER BY d LIMIT 30'),
	(7, 'SELECT TAB.COL OP ''QUERY'' AS d FROM TAB WHERE TAB.COL IS NULL ORDER BY d LIMIT 4'),
	(8, 'SELECT TAB.COL OP ''QUERY'' AS d FROM TAB WHERE TAB.COL OP ''QUERY'' < 5 ORDER BY d LIMIT 500'),
	(9, 'SELECT TAB.COL OP ''QUERY'' AS d FROM TAB WHERE TAB.COL OP ''QUERY'' <= ''NaN'' ORDER BY d LIMIT 500'),
	(10, 'SELECT q.id, n.d FROM asked q CROSS JOIN LATERAL (SELECT TAB.COL OP q.COL AS d FROM TAB ORDER BY TAB.COL OP q.COL LIMIT 150) n ORDER BY 1, 2'),
	(11, 'SELECT q.id, n.d FROM asked q CROSS JOIN LATERAL (SELECT TAB.COL OP q.COL AS d FROM TAB WHERE kind < 3 ORDER BY TAB.COL OP q.COL LIMIT 150) n ORDER BY 1, 2'),
	(12, 'SELECT q.id, (SELECT count(*) FROM (SELECT id FROM TAB ORDER BY TAB.COL OP q.COL LIMIT 115) s) AS n FROM asked q ORDER BY 1'),
	(13, 'SELECT d, count(*) FROM (SELECT TAB.COL OP ''QUERY'' AS d FROM TAB ORDER BY 1) s GROUP BY d ORDER BY d');
-- What is not the same, or how many rows there were in all forms.
CREATE FUNCTION all_forms(tab text, col text, op text, query text, used text) RETURNS SETOF text LANGUAGE sql AS $$
	WITH answers AS MATERIALIZED (SELECT number, compared(replace(replace(replace(replace(form, 'TAB', tab), 'COL', col), 'OP', op), 'QUERY', query), used) AS answer FROM forms)
	SELECT count(*) || ' forms, ' || sum(substring(answer FROM '^(\d+) rows$')::int) || ' rows' FROM answers
	UNION ALL SELECT number || ': ' || answer FROM answers WHERE answer !~ '^\d+ rows$'
$$;

-- 120 rows, a sixth of them NULL and a sixth zero; as vectors, halves and bits
CREATE FUNCTION fill(tab text, first integer, last integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %I SELECT i, i %% 5, CASE i %% 6 WHEN 0 THEN NULL WHEN 1 THEN ''[0,0,0]'' ELSE ARRAY[i %% 13, i %% 7, 1]::vector END FROM generate_series($1, $2) i', tab) USING first, last;
	EXECUTE format('UPDATE %I SET h = v::halfvec, b = CASE WHEN v IS NOT NULL THEN (id %% 200)::bit(8) END WHERE id BETWEEN $1 AND $2', tab) USING first, last;
END $$;
CREATE TABLE t (id integer, kind integer, v vector(3), h halfvec(3), b bit(8)) WITH (autovacuum_enabled = off);
SELECT fill('t', 1, 120);
VACUUM FULL t;
CREATE TABLE asked AS SELECT * FROM t WHERE id IN (2, 3, 6, 7, 10);
ANALYZE t, asked;

-- every method, before and after inserts, VACUUM, a merge and REINDEX
CREATE FUNCTION life(definition text, col text, op text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE step text;
BEGIN
	EXECUTE 'CREATE TABLE l AS SELECT * FROM t';
	ALTER TABLE l SET (autovacuum_enabled = off);
	EXECUTE 'CREATE INDEX l_index ON l USING ' || definition;
	FOREACH step IN ARRAY ARRAY['', 'SELECT fill(''l'', 121, 180)', 'DELETE FROM l WHERE id % 4 = 1', 'CALL pgwarp_merge(''l_index'')',
		'UPDATE l SET kind = kind + 1 WHERE id % 9 = 0', 'UPDATE l SET v = NULL, h = NULL, b = NULL WHERE id % 10 = 2', 'CALL pgwarp_merge(''l_index'')', 'REINDEX INDEX l_index'] LOOP
		IF step <> '' THEN EXECUTE step; END IF;
		RETURN QUERY SELECT coalesce(nullif(left(step, 14), ''), 'CREATE INDEX') || ': ' || all_forms('l', col, op, query, 'l_index');
		RETURN QUERY SELECT '  info: ' || concat_ws(' ', rows, delta_rows, i.dead_rows, options->'unplaced_rows') || ', check: ' || concat_ws(' ', live_rows, c.dead_rows, unused_pages)
			FROM pgwarp_index_info('l_index') i, pgwarp_check('l_index', true) c;
	END LOOP;
	DROP TABLE l;
END $$;
SELECT life('exact (v)', 'v', '<->', '[1,2,3]');
SELECT life('exact (v vector_cosine_ops)', 'v', '<=>', '[1,2,3]');
SELECT life('exact (h halfvec_cosine_ops)', 'h', '<=>', '[1,2,3]');
SELECT life('exact (b bit_hamming_ops)', 'b', '<~>', '10101100');
SELECT life('ivfadc (v vector_cosine_ops) WITH (lists = 2)', 'v', '<=>', '[1,2,3]');
SELECT life('ivfadc (h halfvec_l2_ops) WITH (refine = none)', 'h', '<->', '[1,2,3]');
SELECT life('pqtree (v vector_cosine_ops)', 'v', '<=>', '[1,2,3]');
SELECT life('pqtree (h halfvec_l2_ops) WITH (refine = none)', 'h', '<->', '[1,2,3]');
SELECT life('graph (v vector_cosine_ops)', 'v', '<=>', '[1,2,3]');
SELECT life('graph (h halfvec_ip_ops)', 'h', '<#>', '[1,2,3]');
SELECT life('graph (b bit_jaccard_ops)', 'b', '<%>', '10101100');
-- a zero vector has no order of its own: NULLs come last all the same
SELECT life('exact (v vector_cosine_ops)', 'v', '<=>', '[0,0,0]');

-- VACUUM marks those that died, and the index counts what the table does
CREATE INDEX t_v ON t USING exact (v vector_cosine_ops) INCLUDE (id, kind);
SELECT reltuples FROM pg_class WHERE relname = 't_v';
DELETE FROM t WHERE id % 12 = 0 OR id % 12 = 1 OR id = 2;
VACUUM (INDEX_CLEANUP ON) t;
SELECT c.reltuples, i.rows, i.dead_rows, i.options->'unplaced_rows' AS unplaced FROM pg_class c, pgwarp_index_info('t_v') i WHERE relname = 't_v';
SELECT live_rows, dead_rows FROM pgwarp_check('t_v', true);
SELECT fill('t', 121, 300);
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('t_v');
DELETE FROM t WHERE id % 12 = 6 OR id % 12 = 7 OR id = 122;
VACUUM (INDEX_CLEANUP ON) t;
SELECT c.reltuples, i.rows, i.delta_rows, i.dead_rows, i.options->'unplaced_rows' AS unplaced FROM pg_class c, pgwarp_index_info('t_v') i WHERE relname = 't_v';
SELECT live_rows, dead_rows FROM pgwarp_check('t_v', true);
-- their addresses are used again
SELECT fill('t', 301, 400);
SELECT live_rows, dead_rows FROM pgwarp_check('t_v', true);
-- index-only scans: included columns, with a distance and without
SELECT all_forms('t', 'v', '<=>', '[1,2,3]', 't_v');
SELECT compared('SELECT sum(id), count(*) FROM (SELECT id FROM t ORDER BY v <=> ''[1,2,3]'' LIMIT 10000) s', 'Index Only Scan using t_v');
VACUUM t;
SELECT compared('SELECT sum(id), count(*) FROM (SELECT id FROM t ORDER BY v <=> ''[1,2,3]'' LIMIT 10000) s', 'Index Only Scan using t_v');
CREATE INDEX t_l2 ON t USING exact (v) INCLUDE (id, kind);
SELECT compared('SELECT d, sum(id), count(*) FROM (SELECT id, v <-> ''[1,2,3]'' AS d FROM t ORDER BY v <-> ''[1,2,3]'' LIMIT 10000) s GROUP BY d ORDER BY d', 'Index Only Scan using t_l2');
SELECT compared('SELECT kind, v <-> ''[1,2,3]'' AS d FROM t WHERE kind = 2 ORDER BY d, kind LIMIT 500', 'Index Only Scan using t_l2');

-- many that died are merged away, by VACUUM too; no engine is needed
CREATE TABLE many (id integer, v vector(2)) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i, CASE WHEN i <= 50 THEN ARRAY[i, 1]::vector END FROM generate_series(1, 5050) i;
CREATE INDEX many_v ON many USING graph (v);
DELETE FROM many WHERE id > 50 AND id % 2 = 0;
VACUUM (INDEX_CLEANUP ON) many;
SELECT rows, delta_rows, dead_rows FROM pgwarp_index_info('many_v');
INSERT INTO many SELECT i, NULL FROM generate_series(5051, 8000) i;
SELECT rows, delta_rows, dead_rows FROM pgwarp_index_info('many_v');
VACUUM (INDEX_CLEANUP ON) many;
SELECT rows, delta_rows, dead_rows FROM pgwarp_index_info('many_v');
SELECT live_rows, dead_rows, unused_pages FROM pgwarp_check('many_v', true);
SELECT compared('SELECT v <-> ''[3,3]'' AS d FROM many ORDER BY d LIMIT 60', 'many_v');
SELECT compared('SELECT sum(id), count(*) FROM (SELECT id FROM many ORDER BY v <-> ''[3,3]'' LIMIT 10000) s', 'many_v');
SET work_mem = '64kB';
SELECT compared('SELECT sum(id), count(*) FROM (SELECT id FROM many ORDER BY v <-> ''[3,3]'' LIMIT 10000) s', 'many_v');
RESET work_mem;
DROP TABLE many;

-- A merge of these rows alone leaves the index in the engine as it is, with the rows and the tombstones of its logs.
CREATE TABLE alone (id integer, v vector(2)) WITH (autovacuum_enabled = off);
INSERT INTO alone SELECT i, ARRAY[i, 1]::vector FROM generate_series(1, 300) i;
CREATE INDEX alone_v ON alone USING exact (v) INCLUDE (id);
CREATE FUNCTION alone_answers() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT compared('SELECT v <-> ''[3,3]'' AS d FROM alone ORDER BY d LIMIT 60', 'alone_v')
	UNION ALL SELECT compared('SELECT sum(id), count(*) FROM (SELECT id FROM alone ORDER BY v <-> ''[3,3]'' LIMIT 10000) s', 'Index Only Scan using alone_v')
$$;
INSERT INTO alone SELECT i, ARRAY[i, 2]::vector FROM generate_series(301, 330) i;
DELETE FROM alone WHERE id % 10 = 3;
VACUUM (INDEX_CLEANUP ON) alone;
SELECT alone_answers();
SELECT searches AS before, generation AS old FROM pgwarp_status, pgwarp_index_info('alone_v') WHERE index = 'alone_v'::regclass \gset
INSERT INTO alone SELECT i, NULL FROM generate_series(1001, 2500) i;
VACUUM (INDEX_CLEANUP ON) alone;
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced, generation <> :'old' AS merged FROM pgwarp_index_info('alone_v');
SELECT searches = :before AS same FROM pgwarp_status WHERE index = 'alone_v'::regclass;
SELECT alone_answers();
INSERT INTO alone SELECT i, ARRAY[i, 3]::vector FROM generate_series(331, 350) i;
DELETE FROM alone WHERE id % 10 = 4;
VACUUM (INDEX_CLEANUP ON) alone;
INSERT INTO alone VALUES (2501, NULL);
VACUUM (INDEX_CLEANUP ON) alone;
SELECT alone_answers();
-- VACUUM leaves a few of them in their log when it merges the others.
INSERT INTO alone SELECT i, ARRAY[i, 1]::vector FROM generate_series(3001, 8000) i;
VACUUM (INDEX_CLEANUP ON) alone;
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('alone_v');
SELECT alone_answers();
SELECT live_rows, dead_rows FROM pgwarp_check('alone_v', true);
CALL pgwarp_merge('alone_v');
SELECT rows, delta_rows, options->'unplaced_rows' AS unplaced FROM pgwarp_index_info('alone_v');
SELECT alone_answers();
DROP FUNCTION alone_answers;
DROP TABLE alone;

-- no row has a place
CREATE TABLE none (id integer, kind integer, v vector(3));
INSERT INTO none SELECT i, 3, CASE WHEN i % 2 = 0 THEN '[0,0,0]'::vector END FROM generate_series(1, 20) i;
CREATE INDEX none_v ON none USING ivfadc (v vector_cosine_ops);
SELECT all_forms('none', 'v', '<=>', '[1,2,3]', 'none_v');
SELECT concat_ws(' ', rows, delta_rows, options->'unplaced_rows') FROM pgwarp_index_info('none_v');
CALL pgwarp_merge('none_v');
SELECT all_forms('none', 'v', '<=>', '[1,2,3]', 'none_v');
DROP TABLE none;

-- partitions, one of them without placed rows, one without any
CREATE TABLE parts (id integer, kind integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (60);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (60) TO (200);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (200) TO (220);
CREATE TABLE parts_4 PARTITION OF parts FOR VALUES FROM (300) TO (400);
INSERT INTO parts SELECT id, kind, v FROM t WHERE id < 200;
INSERT INTO parts SELECT i, i % 5, CASE WHEN i % 2 = 0 THEN '[0,0,0]'::vector END FROM generate_series(200, 219) i;
CREATE INDEX parts_v ON parts USING exact (v vector_cosine_ops);
CREATE INDEX parts_graph ON parts USING graph (v);
ANALYZE parts;
SELECT all_forms('parts', 'v', '<=>', '[1,2,3]', 'parts_1_v_idx ');
SELECT all_forms('parts', 'v', '<=>', '[0,0,0]', 'parts_1_v_idx ');
SELECT all_forms('parts', 'v', '<->', '[1,2,3]', 'parts_1_v_idx1 ');
DROP TABLE parts;

-- cursors go on across changes and merges; a second round of a scan; settings that end in other searches
CREATE TABLE c (id integer, v vector(2)) WITH (autovacuum_enabled = off);
INSERT INTO c SELECT i, CASE WHEN i <= 20 THEN ARRAY[i * i, 0]::vector END FROM generate_series(1, 40) i;
CREATE INDEX c_v ON c USING exact (v);
SELECT pgwarp_recall('c_v', 10, 10);
SET enable_seqscan = off;
BEGIN;
DECLARE near CURSOR FOR SELECT id FROM c ORDER BY v <-> '[0,0]';
FETCH 19 FROM near \g /dev/null
INSERT INTO c VALUES (100, NULL), (101, '[5,5]');
FETCH 3 FROM near;
DELETE FROM c WHERE id % 2 = 0;
FETCH 3 FROM near;
MOVE ALL FROM near;
FETCH 1 FROM near;
ROLLBACK;
DO $$
DECLARE
	near CURSOR FOR SELECT id FROM c ORDER BY v <-> '[0,0]';
	seen integer[] := '{}';
BEGIN
	FOR row IN near LOOP
		seen := seen || row.id;
		IF row.id = 10 THEN
			INSERT INTO c VALUES (200, NULL);
			CALL pgwarp_merge('c_v');
		END IF;
	END LOOP;
	RAISE WARNING '% rows, % of them different, in order: %', cardinality(seen), (SELECT count(DISTINCT id) FROM unnest(seen) id), seen = ARRAY(SELECT generate_series(1, 40));
END $$;
SELECT q.i, s.n, s.nulls FROM generate_series(1, 3) q(i), LATERAL (SELECT count(*) AS n, count(*) FILTER (WHERE v IS NULL) AS nulls FROM (SELECT v FROM c ORDER BY v <-> ARRAY[q.i, 0]::vector LIMIT 20 + q.i) s) s;
SET pgwarp.iterative = relaxed;
SELECT count(*), count(v) FROM (SELECT v FROM c ORDER BY v <-> '[0,0]' LIMIT 30) s;
RESET pgwarp.iterative;
RESET enable_seqscan;
-- knn_search, knn_graph and pgwarp_recall are about rows that have a distance
SELECT count(*), count(distance) FROM knn_search('c_v', ARRAY['[0,0]']::vector[], 100);
SELECT count(DISTINCT tid) FROM knn_graph('c_v', 3);
DROP TABLE c;

-- partial indexes and expressions
CREATE TABLE e (id integer, a real, kind integer) WITH (autovacuum_enabled = off);
INSERT INTO e SELECT i, CASE WHEN i % 3 > 0 THEN i END, i % 2 FROM generate_series(1, 60) i;
-- PostgreSQL 17 and later inline it without the schema of the extension in the search path
CREATE FUNCTION pair(a real) RETURNS vector LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN a IS NOT NULL THEN ARRAY[a, 1]::public.vector END';
CREATE INDEX e_partial ON e USING exact ((pair(a)::vector(2))) WHERE kind = 1;
CREATE INDEX e_placed ON e USING exact ((pair(a)::vector(2)) vector_l1_ops) WHERE a IS NOT NULL;
SELECT rows, options->'unplaced_rows' AS unplaced FROM unnest('{e_partial,e_placed}'::regclass[]) i, pgwarp_index_info(i);
SELECT compared('SELECT pair(a)::vector(2) <-> ''[3,3]'' AS d FROM e WHERE kind = 1 ORDER BY d LIMIT 100', 'e_partial');
SELECT compared('SELECT pair(a)::vector(2) <+> ''[3,3]'' AS d FROM e WHERE a IS NOT NULL ORDER BY d LIMIT 100', 'e_placed');
UPDATE e SET a = NULL WHERE id % 7 = 0;
SELECT compared('SELECT pair(a)::vector(2) <-> ''[3,3]'' AS d FROM e WHERE kind = 1 ORDER BY d LIMIT 100', 'e_partial');
DROP TABLE e;
DROP TABLE t, asked, forms;
DROP FUNCTION answer_of, compared, all_forms, fill, life, pair;
