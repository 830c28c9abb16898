-- arrays of integers by an index while rows come, go and merge
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set sets :tests '/sql/include/sets.sql'
\i :sets
\set columns '{i4}'
\set set_changes :tests '/sql/include/set_changes.sql'
\i :set_changes
-- the largest queries, alone and in a batch
SET enable_seqscan = off;
SELECT id, i4 <&> ARRAY(SELECT generate_series(1, 32768)) AS distance FROM items ORDER BY i4 <&> ARRAY(SELECT generate_series(1, 32768)) LIMIT 1;
SELECT i, n.* FROM (SELECT i, ARRAY(SELECT generate_series(i, 32767 + i)) AS q FROM generate_series(1, 10) i) l CROSS JOIN LATERAL
	(SELECT id, i4 <&> q AS distance FROM items ORDER BY i4 <&> q LIMIT 1) n;
RESET enable_seqscan;

DROP FUNCTION made_set, wide, words, document, common, united, set_plan, distances, rows_within, compared, scan_all, truth_within, bounded, all_compared;
DROP TABLE truths, items, queries;
