-- sets by an index while rows come, go and merge
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set sets :tests '/sql/include/sets.sql'
\i :sets

-- inserts and deletes, before and after a merge
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1501, 1800) i, made_set(i) s;
INSERT INTO items VALUES (1801, 1, '{}', '{}', '{}', ''), (1802, 2, NULL, NULL, NULL, NULL), (1803, 3, ARRAY(SELECT generate_series(1, 32768)), '{1}', '{a}', 'a');
SELECT * FROM all_compared();
DELETE FROM items WHERE id % 7 = 3;
UPDATE items SET i4 = ARRAY[7, 7, i4[1]], d = d || 'w7' WHERE id % 11 = 5;
SELECT * FROM all_compared();
VACUUM items;
SELECT * FROM all_compared();
DO $$
DECLARE
	index regclass;
BEGIN
	FOR index IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' LOOP
		CALL pgwarp_merge(index);
	END LOOP;
END
$$;
SELECT * FROM all_compared();
SELECT relname, live_rows, dead_rows FROM pg_index JOIN pg_class c ON c.oid = indexrelid, pgwarp_check(c.oid, true) WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' ORDER BY 1;
SELECT method, rows, delta_rows, dead_rows, options, calibration, attainable_recall, drift FROM pgwarp_index_info('items_t');
REINDEX TABLE items;
SELECT * FROM all_compared();
-- the largest queries, alone and in a batch
SET enable_seqscan = off;
SELECT id, i4 <&> ARRAY(SELECT generate_series(1, 32768)) AS distance FROM items ORDER BY i4 <&> ARRAY(SELECT generate_series(1, 32768)) LIMIT 1;
SELECT i, n.* FROM (SELECT i, ARRAY(SELECT generate_series(i, 32767 + i)) AS q FROM generate_series(1, 10) i) l CROSS JOIN LATERAL
	(SELECT id, i4 <&> q AS distance FROM items ORDER BY i4 <&> q LIMIT 1) n;
RESET enable_seqscan;
SELECT pgwarp_release('items_d'), pgwarp_prewarm('items_d') > 0 AS prewarmed;

DROP FUNCTION made_set, wide, words, document, common, united, set_plan, distances, rows_within, compared, scan_all, truth_within, bounded, all_compared;
DROP TABLE truths, items, queries;
