-- rows of the delta, updates and deletes: :method, :found the function that compares with a sequential scan, :renew a
-- statement that takes delta rows into the index
CREATE INDEX items_index ON items USING :method (v);
INSERT INTO items SELECT id + 3000, kind, v + '[0.01,0,0,0,0,0,0,0]'::vector FROM items WHERE id % 3 = 0;
UPDATE items SET v = v + '[0,0.01,0,0,0,0,0,0]'::vector WHERE id % 5 = 0;
DELETE FROM items WHERE id % 7 = 1;
SELECT * FROM :found('<->', 50);
VACUUM items;
SELECT * FROM :found('<->', 50);
INSERT INTO items SELECT id + 10000, kind, v FROM items WHERE id % 11 = 0;
SELECT * FROM :found('<->', 50);
:renew;
SELECT * FROM :found('<->', 50);
SELECT method, rows = (SELECT count(*) FROM items) AS all_rows, delta_rows, dead_rows, bytes > 0 AS has_pages,
	length(generation), jsonb_array_length(calibration->'curve') > 0 AS calibrated,
	(attainable_recall->>'10')::float > 0.9 AS attains
	FROM pgwarp_index_info('items_index');
SELECT pgwarp_recall('items_index', 10, 50) >= 0.9 AS recall;
