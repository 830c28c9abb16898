SET client_min_messages = warning;

-- four groups of rows
CREATE TABLE points (id integer PRIMARY KEY, v vector(2), w vector, name text);
INSERT INTO points SELECT i, ARRAY[(i % 4) * 10 + sin(i) / 10, (i % 4) * -5 + cos(i) / 10]::vector(2), ARRAY[i, 1]::vector
	FROM generate_series(1, 4000) i;
INSERT INTO points VALUES (0, NULL, NULL);

CREATE TEMP TABLE centroids AS SELECT * FROM kmeans('points', 'v', 16);
SELECT array_agg(id ORDER BY id) FROM centroids;
-- each lies in a group, and each row's nearest in the row's own
SELECT count(*) FROM centroids WHERE centroid <-> ARRAY[round((centroid::real[])[1] / 10) * 10, round((centroid::real[])[1] / 10) * -5]::vector > 0.2;
SELECT count(DISTINCT nearest), count(DISTINCT grp), count(DISTINCT (nearest, grp)) FROM (
	SELECT id % 4 AS grp, nearest_centroid(v, (SELECT array_agg(centroid ORDER BY c.id) FROM centroids c)) AS nearest FROM points WHERE id > 0) s;
-- the same table and seed give the same centroids
SELECT count(*) FROM (SELECT * FROM kmeans('points', 'v', 16) EXCEPT TABLE centroids) s;
SELECT count(*) FROM (SELECT * FROM kmeans('points', 'v', 7, 5, 42) EXCEPT SELECT * FROM kmeans('points', 'v', 7, 5, 42)) s;
SELECT count(*) FROM kmeans(rel => 'points', "column" => 'v', k => 5, iterations => 1, seed => -3, sample => 100);
-- of one centroid: the mean
SELECT centroid <-> (SELECT avg(v) FROM points) < 1e-4 AS is_mean FROM kmeans('points', 'v', 1, sample => 100000);
-- without fixed dimensions
SELECT count(*), min(vector_dims(centroid)) FROM kmeans('points', 'w', 3);
-- as many as there are rows
CREATE TABLE few AS SELECT * FROM points WHERE id BETWEEN 1 AND 3;
SELECT count(*) FROM (SELECT centroid FROM kmeans('few', 'v', 3) EXCEPT SELECT v FROM few) s;
-- partitions and children
CREATE TABLE parts (id integer, v vector(2)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (2000);
CREATE TABLE parts_2 (v vector(2), id integer);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (2000) TO (5000);
INSERT INTO parts SELECT id, v FROM points;
SELECT centroid <-> (SELECT avg(v) FROM points) < 1e-4 AS is_mean FROM kmeans('parts', 'v', 1, sample => 100000);
SELECT centroid <-> (SELECT avg(v) FROM points WHERE id < 2000) < 1e-4 AS is_mean FROM kmeans('parts_1', 'v', 1, sample => 100000);
CREATE MATERIALIZED VIEW viewed AS SELECT v FROM points;
SELECT count(*) FROM kmeans('viewed', 'v', 4);
-- nothing asked for
SELECT count(*) FROM kmeans(NULL, 'v', 4);
SELECT count(*) FROM kmeans('points', NULL, 4);
SELECT count(*) FROM kmeans('points', 'v', NULL);
SELECT count(*) FROM kmeans('points', 'v', 4, NULL);
SELECT count(*) FROM kmeans('points', 'v', 4, 5, NULL);

-- refused
SELECT * FROM kmeans('points', 'v', 0);
SELECT * FROM kmeans('points', 'v', 65537);
SELECT * FROM kmeans('points', 'v', 4, 0);
SELECT * FROM kmeans('points', 'v', 4, 1001);
SELECT * FROM kmeans('points', 'v', 4, sample => 3);
SELECT * FROM kmeans('few', 'v', 4);
SELECT * FROM kmeans('points', 'name', 4);
SELECT * FROM kmeans('points', 'ctid', 4);
SELECT * FROM kmeans('points', 'nowhere', 4);
\set VERBOSITY sqlstate
SELECT * FROM kmeans('points_pkey', 'v', 4);
\set VERBOSITY default
SELECT * FROM kmeans('pg_stats', 'tablename', 4);
INSERT INTO points VALUES (-1, NULL, '[1,2,3]');
SELECT count(*) FROM kmeans('points', 'w', 3, sample => 100000);
CREATE TABLE nothing (v vector(2));
SELECT * FROM kmeans('nothing', 'v', 1);
-- no row is left in the engine
SELECT DISTINCT builds FROM pgwarp_status;

SELECT nearest_centroid('[1,1]', ARRAY['[0,0]', '[1,2]', '[1,1]', '[1,1]']::vector[]);
SELECT nearest_centroid('[1,1]', ARRAY[NULL, '[5,5]', NULL, '[1,2]', NULL]::vector[]);
SELECT nearest_centroid('[1,1]', ARRAY[NULL]::vector[]) IS NULL, nearest_centroid('[1,1]', '{}') IS NULL,
	nearest_centroid(NULL, ARRAY['[1]']::vector[]) IS NULL, nearest_centroid('[1]', NULL) IS NULL;
SELECT nearest_centroid('[3e38,0]', ARRAY['[-3e38,0]', '[-2e38,0]']::vector[]);
SELECT nearest_centroid('[1,1]', ARRAY['[1,2]', '[1,2,3]']::vector[]);

DROP TABLE points, few, parts, nothing, centroids CASCADE;
