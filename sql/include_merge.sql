-- Merges of indexes with INCLUDE columns: every row keeps its own.
SET client_min_messages = error;
SET jit = off;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
SET pgwarp.ivfadc_probes = 1000;
SET pgwarp.pqtree_candidates = 10000;

CREATE TABLE t (id integer, title text, val vector(4)) WITH (autovacuum_enabled = off);
CREATE INDEX t_fixed ON t USING exact (val) INCLUDE (id);
CREATE INDEX t_title ON t USING exact (val) INCLUDE (id, title);
CREATE INDEX t_ivf ON t USING ivfadc (val) INCLUDE (title, id) WITH (refine = full);
CREATE INDEX t_half ON t USING ivfadc (val vector_cosine_ops) INCLUDE (id) WITH (codes = half);
CREATE INDEX t_pq ON t USING ivfadc (val vector_ip_ops) INCLUDE (title) WITH (refine = none);
CREATE INDEX t_tree ON t USING pqtree (val) INCLUDE (title, id) WITH (refine = full);
CREATE INDEX t_tree_none ON t USING pqtree (val vector_ip_ops) INCLUDE (title) WITH (refine = none);
CREATE PROCEDURE add(first integer, last integer, wide boolean) LANGUAGE sql AS $$
	INSERT INTO t SELECT i, CASE WHEN wide THEN CASE WHEN i % 7 > 0 THEN repeat('title ' || i, i % 40) END ELSE 'title' END,
		ARRAY[i, i % 7, i % 11, i % 13]::vector FROM generate_series(first, last) i ORDER BY i % 10, i $$;
CREATE PROCEDURE merge() LANGUAGE plpgsql AS $$
	DECLARE index regclass;
	BEGIN
		FOREACH index IN ARRAY '{t_fixed,t_title,t_ivf,t_half,t_pq,t_tree,t_tree_none}'::regclass[] LOOP CALL pgwarp_merge(index); END LOOP;
	END $$;
CREATE VIEW states AS SELECT i.relname AS index, rows, delta_rows AS in_logs, s.dead_rows AS dead, live_rows AS live, unused_pages AS unused
	FROM pg_class i, pgwarp_index_info(i.oid) s, pgwarp_check(i.oid, true) c
	WHERE i.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass) ORDER BY 1;
-- all rows as each index returns them, of those that return them by themselves, against the table
CREATE FUNCTION wrong_rows() RETURNS TABLE (index text, index_only boolean, rows bigint, wrong bigint) LANGUAGE plpgsql AS $$
	DECLARE query text; plan json;
	BEGIN
		FOREACH index IN ARRAY '{t_fixed,t_title,t_ivf,t_tree}'::text[] LOOP
			CREATE TEMPORARY TABLE returned (id integer, title text);
			BEGIN
				-- the others are gone while this one is looked at
				EXECUTE (SELECT string_agg('DROP INDEX ' || c.relname, ';') FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
					WHERE i.indrelid = 't'::regclass AND c.relname <> index);
				query := format('SELECT id, %s FROM t ORDER BY val <-> ''[1,2,3,4]''', CASE index WHEN 't_fixed' THEN 'NULL' ELSE 'title' END);
				EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
				index_only := plan::text ~ 'Index Only Scan';
				EXECUTE 'INSERT INTO returned ' || query;
				SELECT count(*) INTO rows FROM returned;
				SELECT count(*) INTO wrong FROM (SELECT r.id FROM returned r LEFT JOIN t ON t.id = r.id
					WHERE t.id IS NULL OR (index <> 't_fixed' AND r.title IS DISTINCT FROM t.title)) s;
				RAISE division_by_zero;
			EXCEPTION WHEN division_by_zero THEN
			END;
			DROP TABLE returned;
			RETURN NEXT;
		END LOOP;
	END $$;

-- the first rows of an empty index
CALL add(1, 400, false);
CALL merge();
SELECT * FROM states;
VACUUM t;
SELECT * FROM wrong_rows();
-- more of the same length
CALL add(401, 500, false);
CALL merge();
VACUUM t;
SELECT * FROM states;
SELECT * FROM wrong_rows();
-- of other lengths: those that are there are written anew; then more of them
CALL add(501, 600, true);
CALL merge();
VACUUM t;
SELECT * FROM states;
SELECT * FROM wrong_rows();
CALL add(601, 650, true);
CALL merge();
VACUUM t;
SELECT * FROM states;
SELECT * FROM wrong_rows();
SELECT id, left(title, 12) AS title FROM t ORDER BY val <-> '[597.2,2,3,12]' LIMIT 3;
SELECT id FROM t ORDER BY val <=> '[597,2,3,12]' LIMIT 1;
-- dead rows keep their places, until they are many
DELETE FROM t WHERE id <= 30;
CALL add(701, 720, true);
VACUUM (INDEX_CLEANUP ON) t;
CALL merge();
SELECT * FROM states;
DELETE FROM t WHERE id <= 450 OR id BETWEEN 711 AND 715;
CALL add(801, 850, true);
VACUUM (INDEX_CLEANUP ON) t;
CALL merge();
VACUUM t;
SELECT * FROM states;
SELECT * FROM wrong_rows();
-- trained again, with all rows in another order
CALL add(1001, 4000, true);
CALL merge();
VACUUM t;
SELECT * FROM states;
SELECT * FROM wrong_rows();
-- of one length again, once the others are gone
DELETE FROM t WHERE id > 500;
VACUUM (INDEX_CLEANUP ON) t;
CALL merge();
SELECT * FROM states;
SELECT * FROM wrong_rows();
-- all gone, and new ones
DELETE FROM t;
VACUUM (INDEX_CLEANUP ON) t;
CALL merge();
SELECT * FROM states;
CALL add(1, 100, true);
CALL merge();
VACUUM t;
SELECT * FROM states;
SELECT * FROM wrong_rows();

-- a cursor goes on across merges that move its rows
INSERT INTO t SELECT i, i, ARRAY[i, 0, 0, 0]::vector FROM generate_series(1001, 3000) i;
CALL merge();
DELETE FROM t WHERE id <= 100;
DELETE FROM t WHERE id BETWEEN 1101 AND 1900;
INSERT INTO t SELECT i, i, ARRAY[i, 0, 0, 0]::vector FROM generate_series(3001, 3300) i;
VACUUM (INDEX_CLEANUP ON) t;
DROP INDEX t_fixed, t_half, t_pq, t_ivf;
SET client_min_messages = warning;
DO $$
DECLARE
	near CURSOR FOR SELECT id, title FROM t ORDER BY val <-> '[0,0,0,0]';
	seen integer[] := '{}';
	other bigint := 0;
BEGIN
	FOR row IN near LOOP
		seen := seen || row.id;
		IF row.title <> row.id::text THEN other := other + 1; END IF;
		IF cardinality(seen) IN (40, 700) THEN
			INSERT INTO t SELECT i, i, ARRAY[i, 0, 0, 0]::vector FROM generate_series(5000, 5010) i;
			CALL pgwarp_merge('t_title');
		END IF;
	END LOOP;
	RAISE WARNING '% rows, % of them different, % with another''s title', cardinality(seen),
		(SELECT count(DISTINCT id) FROM unnest(seen) id), other;
END $$;
SELECT live_rows, unused_pages FROM pgwarp_check('t_title', true);
DROP VIEW states;
DROP PROCEDURE add, merge;
DROP FUNCTION wrong_rows;
DROP TABLE t;
