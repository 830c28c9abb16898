-- Answers about the sets of sql/include/sets.sql in some columns while rows come, go and merge.
-- inserts and deletes, before and after a merge
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1501, 1800) i, made_set(i) s;
INSERT INTO items VALUES (1801, 1, '{}', '{}', '{}', ''), (1802, 2, NULL, NULL, NULL, NULL), (1803, 3, ARRAY(SELECT generate_series(1, 32768)), '{1}', '{a}', 'a');
SELECT * FROM all_compared(:'columns');
DELETE FROM items WHERE id % 7 = 3;
UPDATE items SET i4 = ARRAY[7, 7, i4[1]], d = d || 'w7' WHERE id % 11 = 5;
SELECT * FROM all_compared(:'columns');
VACUUM items;
SELECT * FROM all_compared(:'columns');
DO $$
DECLARE
	index regclass;
BEGIN
	FOR index IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' LOOP
		CALL pgwarp_merge(index);
	END LOOP;
END
$$;
SELECT * FROM all_compared(:'columns');
SELECT relname, live_rows, dead_rows FROM pg_index JOIN pg_class c ON c.oid = indexrelid, pgwarp_check(c.oid, true) WHERE indrelid = 'items'::regclass AND relname <> 'items_pkey' ORDER BY 1;
SELECT method, rows, delta_rows, dead_rows, options, calibration, attainable_recall, drift FROM pgwarp_index_info('items_t');
REINDEX TABLE items;
SELECT * FROM all_compared(:'columns');
