-- orders that an index gives, in part, or not at all: every answer is that of a sort, whatever the settings forbid
SET client_min_messages = warning;
SET jit = off;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, kind integer, v vector(3), w vector(3));
INSERT INTO items SELECT i, i % 7, ARRAY[i % 5, i % 3, i % 11]::vector, ARRAY[i % 4, i % 13, 1]::vector FROM generate_series(1, 2000) i;
INSERT INTO items SELECT 2000 + i, i, ARRAY[i, i, i]::vector, NULL FROM generate_series(1, 5) i;
CREATE INDEX items_v ON items USING exact (v);
CREATE INDEX items_w ON items USING exact (w);
VACUUM ANALYZE items;
CREATE TABLE others AS SELECT id, v <-> '[1,2,3]' AS d FROM items WHERE id % 50 = 0;
ANALYZE others;

-- the rows of a statement as text, in their order
CREATE FUNCTION rows_of(statement text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	found text[];
BEGIN
	EXECUTE 'SELECT array_agg(s::text) FROM (' || statement || ') s' INTO found;
	RETURN found;
END $$;
-- in which of the settings the answer isn't that without an index
CREATE FUNCTION differing(statement text) RETURNS TABLE (settings text, problem text) LANGUAGE plpgsql AS $$
DECLARE
	truth text[];
	got text[];
	setting text;
BEGIN
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
	truth := rows_of(statement);
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
	FOREACH settings IN ARRAY ARRAY['', 'seqscan', 'sort', 'incremental_sort', 'seqscan sort', 'seqscan sort incremental_sort',
		'seqscan hashjoin nestloop', 'seqscan sort hashagg', 'seqscan sort mergejoin hashjoin', 'indexscan seqscan sort'] LOOP
		FOREACH setting IN ARRAY string_to_array(settings, ' ') LOOP
			PERFORM set_config('enable_' || setting, 'off', true);
		END LOOP;
		BEGIN
			got := rows_of(statement);
			problem := CASE WHEN got IS DISTINCT FROM truth THEN 'another answer' END;
		EXCEPTION WHEN OTHERS THEN
			problem := SQLERRM;
		END;
		FOREACH setting IN ARRAY string_to_array(settings, ' ') LOOP
			PERFORM set_config('enable_' || setting, 'on', true);
		END LOOP;
		IF problem IS NOT NULL THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;

-- two distances, of one column and of two; a distance and something else; a distance twice
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', v <-> '[4,0,7]' FROM items ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]' LIMIT 40$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', v <-> '[4,0,7]' FROM items ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]'$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', w <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]', w <-> '[1,2,3]' LIMIT 40$$);
SELECT * FROM differing($$SELECT id, v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]', id LIMIT 40$$);
SELECT * FROM differing($$SELECT kind, v <-> '[1,2,3]' FROM items ORDER BY kind, v <-> '[1,2,3]' LIMIT 40$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]', '[1,2,3]' <-> v LIMIT 40$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]', v <-> '[1,2,3]' DESC LIMIT 40$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', v <=> '[1,2,3]' FROM items WHERE id <= 2000 AND id % 165 > 0 ORDER BY v <-> '[1,2,3]', v <=> '[1,2,3]' LIMIT 40$$);
-- orders that it doesn't give, or with the last rows first
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]' DESC LIMIT 40$$);
SELECT * FROM differing($$SELECT w <-> '[1,2,3]' FROM items ORDER BY w <-> '[1,2,3]' NULLS FIRST LIMIT 40$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', v <-> '[4,0,7]' FROM items ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]' DESC LIMIT 40$$);
SELECT * FROM differing($$SELECT -(v <-> '[1,2,3]') FROM items ORDER BY -(v <-> '[1,2,3]') LIMIT 40$$);
SELECT * FROM differing($$SELECT count(*), count(v), min(id) FROM items WHERE v IS NOT NULL$$);
-- window functions, DISTINCT, GROUP BY
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', rank() OVER (ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]') FROM items ORDER BY 1, 2$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', rank() OVER (ORDER BY v <-> '[1,2,3]') FROM items ORDER BY 1, 2 LIMIT 40$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', rank() OVER (PARTITION BY v <-> '[4,0,7]' ORDER BY v <-> '[1,2,3]') FROM items ORDER BY v <-> '[4,0,7]', 1, 2$$);
SELECT * FROM differing($$SELECT DISTINCT v <-> '[1,2,3]', v <-> '[4,0,7]' FROM items ORDER BY 1, 2$$);
SELECT * FROM differing($$SELECT DISTINCT v <-> '[1,2,3]' FROM items ORDER BY 1 LIMIT 10$$);
SELECT * FROM differing($$SELECT DISTINCT ON (v <-> '[1,2,3]') v <-> '[1,2,3]', id FROM items ORDER BY v <-> '[1,2,3]', id LIMIT 10$$);
SELECT * FROM differing($$SELECT DISTINCT ON (v <-> '[1,2,3]', v <-> '[4,0,7]') v <-> '[1,2,3]', v <-> '[4,0,7]' FROM items ORDER BY 1, 2 LIMIT 10$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', v <-> '[4,0,7]', count(*) FROM items GROUP BY 1, 2 ORDER BY 1, 2$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', count(*) FROM items GROUP BY 1 ORDER BY 1 LIMIT 10$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]', v <-> '[4,0,7]', count(*) FROM items GROUP BY GROUPING SETS ((1, 2), (1), ()) ORDER BY 1, 2, 3$$);
-- joins, by a distance too: such a join goes back to a mark
SELECT * FROM differing($$SELECT o.id, i.v <-> '[1,2,3]' FROM items i JOIN others o ON i.v <-> '[1,2,3]' = o.d ORDER BY i.v <-> '[1,2,3]', 1$$);
SELECT * FROM differing($$SELECT i.v <-> '[1,2,3]', i.v <-> '[4,0,7]' FROM items i JOIN others o ON i.v <-> '[1,2,3]' = o.d ORDER BY 1, 2 LIMIT 30$$);
SELECT * FROM differing($$SELECT a.v <-> '[1,2,3]' FROM items a JOIN items b ON a.v <-> '[1,2,3]' = b.v <-> '[1,2,3]' WHERE a.kind = 1 AND b.kind = 2 ORDER BY a.v <-> '[1,2,3]' LIMIT 300$$);
SELECT * FROM differing($$SELECT i.v <-> '[1,2,3]' FROM items i JOIN others o USING (id) ORDER BY i.v <-> '[1,2,3]' LIMIT 30$$);
SELECT * FROM differing($$SELECT o.id, n.d, n.e FROM others o, LATERAL (SELECT v <-> ARRAY[o.id % 5, 1, 2]::vector AS d, v <-> '[4,0,7]' AS e FROM items ORDER BY 2, 1 LIMIT 3) n ORDER BY 1, 3, 2$$);
SELECT * FROM differing($$SELECT o.id, n.d, n.e FROM others o, LATERAL (SELECT v <-> ARRAY[o.id % 5, 1, 2]::vector AS d, v <-> '[4,0,7]' AS e FROM items ORDER BY 1, 2 LIMIT 3) n ORDER BY 1, 2, 3$$);
-- set operations
SELECT * FROM differing($$(SELECT v <-> '[1,2,3]' AS d FROM items ORDER BY 1 LIMIT 20) UNION ALL (SELECT v <-> '[4,0,7]' FROM items ORDER BY 1 LIMIT 20) ORDER BY d$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' AS d, v <-> '[4,0,7]' AS e FROM items UNION SELECT w <-> '[1,2,3]', w <-> '[4,0,7]' FROM items ORDER BY d, e LIMIT 50$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' AS d FROM items INTERSECT SELECT w <-> '[1,2,3]' FROM items ORDER BY d LIMIT 5$$);
-- LIMIT in all its forms
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]' LIMIT NULL$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]' LIMIT ALL OFFSET 1990$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]' LIMIT 0$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]' OFFSET 5 FETCH FIRST 6 ROWS WITH TIES$$);
SELECT * FROM differing($$SELECT v <-> '[1,2,3]' FROM items ORDER BY v <-> '[1,2,3]' LIMIT (SELECT count(*) FROM others)$$);
SELECT * FROM differing($$SELECT o.id, n.d FROM others o, LATERAL (SELECT v <-> '[1,2,3]' AS d FROM items ORDER BY 1 LIMIT o.id % 90) n ORDER BY 1, 2$$);
SELECT * FROM differing($$SELECT id FROM items WHERE v <-> '[1,2,3]' < 3 AND kind = 3 ORDER BY v <-> '[1,2,3]', id LIMIT 10$$);
SELECT id FROM items ORDER BY v <-> '[1,2,3]' LIMIT -1;
SELECT id FROM items ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]' LIMIT -1;
SELECT id, generate_series(1, 2) AS n FROM items WHERE id > 2000 ORDER BY v <-> '[1,1,2]', v <-> '[4,0,7]', n LIMIT 3;

-- the index gives the first distance, a sort the rest
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]' LIMIT 5;
SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,2,3]', v <-> '[4,0,7]' LIMIT 5;
RESET enable_incremental_sort;
-- no path without an order, whatever is off
SET enable_bitmapscan = off;
CREATE INDEX items_some ON items USING exact (v) WHERE kind = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM items WHERE kind = 3;
EXPLAIN (COSTS OFF) SELECT id FROM items WHERE kind = 3 ORDER BY v <-> '[1,2,3]' LIMIT 5;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE items, others;
DROP FUNCTION differing, rows_of;
