-- avg and sum of vectors, serial and parallel.
\pset null '(null)'
SELECT avg(v), sum(v) FROM unnest(ARRAY['[1,2,3]'::vector, '[3,5,7]', NULL]) v;
SELECT avg(v), sum(v) FROM unnest(ARRAY[]::vector[]) v;
SELECT avg(v), sum(v) FROM unnest(ARRAY[NULL]::vector[]) v;
SELECT avg(v), sum(v) FROM unnest(ARRAY['[1,-2]'::vector]) v;
SELECT avg(v) FROM unnest(ARRAY['[1,2]'::vector, '[3]']) v;
SELECT sum(v) FROM unnest(ARRAY['[1,2]'::vector, '[3]']) v;
SELECT avg(v) AS no_overflow FROM unnest(ARRAY['[3e38]'::vector, '[3e38]']) v;
SELECT sum(v) FROM unnest(ARRAY['[3e38]'::vector, '[3e38]']) v;
SELECT k, avg(v), sum(v) FROM (VALUES (1, '[1,2]'::vector), (2, '[3]'), (1, '[5,6]'), (2, '[4]'), (3, NULL)) AS t (k, v) GROUP BY k ORDER BY k;
SELECT avg(DISTINCT v), sum(v) FILTER (WHERE v > '[1]') FROM unnest(ARRAY['[0]'::vector, '[-0]', '[4]']) v;
SELECT i, avg(ARRAY[i]::vector) OVER (ORDER BY i ROWS 1 PRECEDING) AS moving, sum(ARRAY[i]::vector) OVER (ORDER BY i) AS running, avg(ARRAY[i]::vector) OVER (ORDER BY i) AS running_avg
FROM generate_series(1, 4) i;

-- the functions behind them
SELECT vector_accum('{0}', '[1,2,3]'), vector_accum('{0,0,0,0}', '[1,2,3]'), vector_accum('{2,1,1,1}', '[1,2,3]');
SELECT vector_combine('{1,2}', '{3,4}'), vector_combine('{0}', '{3,4}') AS left_empty, vector_combine('{3,4}', '{0}') AS right_empty;
SELECT vector_avg('{2,2,4,6}'), vector_avg('{0}') AS empty;
SELECT vector_accum('{0,0}', '[1,2,3]');
SELECT vector_accum('{1,1.7976931348623157e308}', '[-3e38]');
SELECT vector_accum('{{0}}', '[1]');
SELECT vector_accum('{}', '[1]');
SELECT vector_accum('{NULL}', '[1]');
SELECT vector_combine('{1,2}', '{1,2,3}');
SELECT vector_combine('{1,1.7e308}', '{1,1.7e308}');
SELECT vector_combine('{0}', '{0}') AS both_empty, vector_combine('{0}', '{0,3}') AS left_without_sums, vector_combine('{1,2}', '{0,3}');
SELECT vector_combine('{{1,2}}', '{1,2}');
SELECT vector_combine('{1,2}', '{}');
SELECT vector_combine('{0}', array_fill(1::float8, ARRAY[16002]));
SELECT vector_avg('{1}');
SELECT vector_avg('{{1,2}}');
SELECT vector_avg('{NULL,2}');
SELECT vector_avg('{1,1e300}');
SELECT vector_avg(array_fill(1::float8, ARRAY[16002]));
SELECT a, vector_accum(a, '[10]') AS argument_unchanged, a FROM (VALUES ('{1,2}'::float8[])) AS t (a);

-- parallel: sums that single precision holds exactly, since the order differs each time
CREATE TABLE measured (k int, v vector(4)) WITH (parallel_workers = 2);
INSERT INTO measured SELECT i % 3, ARRAY[i % 100, -(i % 100), i % 100 / 4.0, 1]::vector FROM generate_series(1, 10000) i;
INSERT INTO measured VALUES (5, NULL);
ANALYZE measured;
SELECT avg(v), sum(v) FROM measured;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT avg(v), sum(v) FROM measured;
SELECT avg(v), sum(v) FROM measured;
SET parallel_leader_participation = off;
SELECT avg(v), sum(v) FROM measured;
SELECT avg(v), sum(v) FROM measured WHERE k = 5; -- NULLs alone
SELECT avg(v), sum(v) FROM measured WHERE k = 7; -- no rows
SELECT avg(v), sum(v) FROM measured WHERE v = '[7,-7,1.75,1]' AND k = 1;
EXPLAIN (COSTS OFF) SELECT k, avg(v), sum(v) FROM measured GROUP BY k;
SELECT k, avg(v), sum(v), count(v) FROM measured GROUP BY k ORDER BY k;
SELECT count(*), min(v <-> '[1,-1,0.25,1]') FROM measured;
DROP TABLE measured;
-- the sign of zero
SELECT avg(v), avg(v::halfvec) FROM unnest(ARRAY['[-0,0,-0]'::vector]) v;
SELECT avg(v), avg(v::halfvec) FROM unnest(ARRAY['[-0,0,-0]', '[-0,-0,0]']::vector[]) v;
