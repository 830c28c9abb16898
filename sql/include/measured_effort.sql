-- pgwarp_recall() measures with the effort of a LIMIT 10, which is less than that of a LIMIT 100: :effort its setting
SET pgwarp.recall = 0.8;
CREATE TABLE efforts AS SELECT min((p->>'effort')::int) FILTER (WHERE (p->'recall'->>'10')::float >= 0.8) AS for_10,
	min((p->>'effort')::int) FILTER (WHERE (p->'recall'->>'100')::float >= 0.8) AS for_100
	FROM pgwarp_index_info('items_index'), jsonb_array_elements(calibration->'curve') p;
SELECT for_10 < for_100 AS less FROM efforts;
CREATE TABLE recalls AS SELECT pgwarp_recall('items_index', 10, 100) AS recall;
SELECT set_config(:'effort', for_10::text, false) <> '' AS set FROM efforts;
SELECT recall = pgwarp_recall('items_index', 10, 100) AS same FROM recalls;
RESET :effort;
RESET pgwarp.recall;
DROP TABLE efforts, recalls;
