-- arrays of texts by an index while rows come, go and merge
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set sets :tests '/sql/include/sets.sql'
\i :sets
\set columns '{t}'
\set set_changes :tests '/sql/include/set_changes.sql'
\i :set_changes

DROP FUNCTION made_set, wide, words, document, common, united, set_plan, distances, rows_within, compared, scan_all, truth_within, bounded, all_compared;
DROP TABLE truths, items, queries;
