-- sets by an index, within a distance: bounds of no row, of some, of every row
SET client_min_messages = warning;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set sets :tests '/sql/include/sets.sql'
\i :sets
SELECT scan_all('{i4,t}');
SELECT bound, b.* FROM unnest(ARRAY['<= NULL', '<= -1000', '< ''-infinity''', '<= -5', '< -2', '<= -1.5', '<= -1', '< 0', '<= 0', '< 0.5',
	'<= ''infinity''', '<= ''nan''']) bound, bounded('i4', '<&>', bound) b;
SELECT bound, b.* FROM unnest(ARRAY['<= NULL', '<= -1', '< 0', '<= 0', '<= 0.3', '< 0.75', '<= 0.9', '< 1', '<= 1', '< 2', '<= ''nan''']) bound, bounded('t', '<%>', bound) b;

DROP FUNCTION made_set, wide, words, document, common, united, set_plan, distances, rows_within, compared, scan_all, truth_within, bounded, all_compared;
DROP TABLE truths, items, queries;
