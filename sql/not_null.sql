-- IS NOT NULL of an index's key: NULLs come last, so the condition drops no near row, and the first NULL ends the scan
SET jit = off;
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TABLE nn (id integer, kind integer, v vector(8), w vector);
SELECT setseed(0.5);
INSERT INTO nn SELECT i, i / 50 % 5, CASE WHEN i % 50 = 0 THEN (SELECT array_agg(random()) FROM generate_series(1, 8) d WHERE i + d > 0)::vector END FROM generate_series(1, 20000) i;
UPDATE nn SET w = v;
CREATE INDEX nn_v ON nn USING exact (v);
VACUUM (FULL, ANALYZE) nn;

-- the plan's nodes with the rows that they gave, and the searches
CREATE FUNCTION nodes(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || statement LOOP
		IF line ~ 'rows=|While|Removed' THEN RETURN NEXT regexp_replace(line, '\(actual rows=(\d+).*', '\1'); END IF;
	END LOOP;
END $$;
SET client_min_messages = debug1;
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 10$$);
SET client_min_messages = warning;
SET enable_seqscan = off;
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]'$$);
SELECT nodes($$SELECT id FROM nn WHERE kind = 0 AND id % 77 = 0 AND v IS NOT NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 20$$);
SELECT nodes($$SELECT id FROM nn WHERE v <-> '[1,1,1,1,1,1,1,1]' < 1e30 ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
-- a bound that every number is below
SELECT nodes($$SELECT id FROM nn WHERE v <-> '[1,1,1,1,1,1,1,1]' <= 'NaN' ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
-- the rates of the other conditions are those of rows with a key
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL AND kind = 0 ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 30$$);
-- other conditions end nothing
SELECT nodes($$SELECT id FROM nn WHERE w IS NOT NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
SELECT nodes($$SELECT id FROM nn WHERE (v IS NOT NULL OR id = 7) ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
SELECT nodes($$SELECT id FROM nn WHERE v IS NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 5$$);
-- a NULL query: all rows are alike
SELECT count(*), count(v) FROM (SELECT v FROM nn WHERE v IS NOT NULL ORDER BY v <-> (SELECT NULL::vector) LIMIT 1000) s;
-- joins
SELECT q.id, count(n.id), count(DISTINCT n.id) FROM nn q CROSS JOIN LATERAL (SELECT n.id FROM nn n WHERE n.v IS NOT NULL ORDER BY n.v <-> q.v LIMIT 500) n
	WHERE q.id IN (50, 100, 150) GROUP BY q.id ORDER BY q.id;
-- an expression is the key
DROP INDEX nn_v;
CREATE INDEX nn_w ON nn USING ivfadc ((w::vector(8))) WITH (lists = 4);
SELECT nodes($$SELECT id FROM nn WHERE w::vector(8) IS NOT NULL ORDER BY w::vector(8) <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
DROP INDEX nn_w;
CREATE INDEX nn_w ON nn USING pqtree ((w::vector(8)));
SELECT nodes($$SELECT id FROM nn WHERE w::vector(8) IS NOT NULL ORDER BY w::vector(8) <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
DROP INDEX nn_w;
-- a partial index has no NULLs, so nothing is left to filter
CREATE INDEX nn_v ON nn USING ivfadc (v) WITH (lists = 4) WHERE v IS NOT NULL;
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL ORDER BY v <-> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
DROP INDEX nn_v;
-- zero vectors under cosine are not NULL
UPDATE nn SET v = '[0,0,0,0,0,0,0,0]' WHERE id % 1000 = 1;
CREATE INDEX nn_v ON nn USING graph (v vector_cosine_ops);
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL ORDER BY v <=> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
SELECT count(*), count(*) FILTER (WHERE d = 'NaN') AS nans FROM (SELECT v <=> '[1,1,1,1,1,1,1,1]' AS d FROM nn WHERE v IS NOT NULL ORDER BY v <=> '[1,1,1,1,1,1,1,1]' LIMIT 1000) s;
SELECT count(*) FROM (SELECT id FROM nn WHERE v IS NOT NULL ORDER BY v <=> '[0,0,0,0,0,0,0,0]' LIMIT 1000) s;
-- row security: IS NOT NULL tells nothing, and ends the scan; what the user's functions see is as before
CREATE ROLE late_reader;
CREATE FUNCTION told(integer) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'row %', $1; RETURN true; END $$;
ALTER TABLE nn ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON nn USING (id % 5000 = 0);
GRANT SELECT ON nn TO late_reader;
SET ROLE late_reader;
SET client_min_messages = notice;
SELECT nodes($$SELECT id FROM nn WHERE v IS NOT NULL AND told(id) ORDER BY v <=> '[1,1,1,1,1,1,1,1]' LIMIT 1000$$);
RESET ROLE;
DROP FUNCTION nodes(text), told(integer);
DROP TABLE nn;
DROP ROLE late_reader;
