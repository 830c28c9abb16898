-- the worked example of docs/sql.md: the smoothest path between two rows through the k-NN graph
SET client_min_messages = warning;

CREATE TABLE pictures (id integer PRIMARY KEY, v vector(2));
-- a spiral: neighbours along it are near, the windings far from each other
INSERT INTO pictures SELECT i, ARRAY[i * cos(i / 15.0), i * sin(i / 15.0)]::vector(2) FROM generate_series(1, 240) i;
CREATE INDEX pictures_v ON pictures USING exact (v);

CREATE TABLE edges AS
	SELECT a.id AS a, b.id AS b, g.distance
	FROM knn_graph('pictures_v', 4) g JOIN pictures a ON a.ctid = g.tid JOIN pictures b ON b.ctid = g.neighbor;

CREATE TABLE smoothest AS
WITH RECURSIVE
	links AS (
		SELECT a, b, distance FROM edges UNION SELECT b, a, distance FROM edges
		UNION ALL SELECT id, id, 0 FROM pictures  -- to stay is a step too
	),
	steps (step, node, roughest, path) AS (
		SELECT 0, 20, 0::float8, ARRAY[20]
		UNION ALL
		SELECT * FROM (
			SELECT DISTINCT ON (l.b) s.step + 1 AS step, l.b, greatest(s.roughest, l.distance),
				CASE WHEN l.b = s.node THEN s.path ELSE s.path || l.b END
			FROM steps s JOIN links l ON l.a = s.node
			ORDER BY l.b, greatest(s.roughest, l.distance), cardinality(s.path) + (l.b <> s.node)::int, s.path) best
		WHERE step <= 250
	)
SELECT roughest, path FROM steps WHERE node = 240 ORDER BY step DESC LIMIT 1;

SELECT round(roughest::numeric, 3) AS roughest, cardinality(path) AS rows, path[1:4] AS first, path[cardinality(path)] AS last FROM smoothest;
-- the direct way is rougher by far
SELECT round((a.v <-> b.v)::numeric, 3) AS direct FROM pictures a, pictures b WHERE a.id = 20 AND b.id = 240;

-- a path it is, and its largest edge is what was said
SELECT count(*) = cardinality(s.path) - 1 AS whole, max(a.v <-> b.v) = s.roughest AS largest
	FROM smoothest s, generate_series(1, cardinality(s.path) - 1) i, pictures a, pictures b, edges e
	WHERE a.id = s.path[i] AND b.id = s.path[i + 1] AND ((e.a, e.b) = (a.id, b.id) OR (e.a, e.b) = (b.id, a.id) AND NOT EXISTS (SELECT FROM edges f WHERE (f.a, f.b) = (a.id, b.id)))
	GROUP BY s.path, s.roughest;
-- without edges as rough there is no way
WITH RECURSIVE reached AS (
	SELECT 20 AS node
	UNION
	SELECT CASE r.node WHEN e.a THEN e.b ELSE e.a END FROM reached r JOIN edges e ON r.node IN (e.a, e.b), smoothest s WHERE e.distance < s.roughest)
SELECT count(*) FILTER (WHERE node = 240) AS reaches, count(*) > 1 AS somewhere FROM reached;

DROP TABLE pictures, edges, smoothest;
