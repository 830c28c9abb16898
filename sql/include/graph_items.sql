-- A table with an index, and a comparison of the edges that knn_graph returns with a join.
CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(4), note text) WITH (fillfactor = 60, autovacuum_enabled = off);
INSERT INTO items
	SELECT i, i % 10, ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i)]::vector(4), repeat('x', 50)
	FROM generate_series(1, 1500) i;
CREATE INDEX items_index ON items USING exact (v);

-- every row with its nearest others, compared with a join
CREATE FUNCTION compared(index regclass, operator text, k integer, condition text DEFAULT 'true')
RETURNS TABLE (rows bigint, right_distances bigint, right_rows boolean) AS $$
BEGIN
	RETURN QUERY EXECUTE format('
		WITH edges AS (
			SELECT g.*, row_number() OVER (PARTITION BY g.tid ORDER BY g.ordinality) AS rank
			FROM knn_graph($1, $2) WITH ORDINALITY g),
		truth AS (
			SELECT a.ctid AS tid, n.d, n.rank
			FROM items a, LATERAL (SELECT d, row_number() OVER (ORDER BY d) AS rank
				FROM (SELECT b.v %1$s a.v AS d FROM items b WHERE b.ctid <> a.ctid AND %2$s ORDER BY 1 LIMIT $2) ordered) n
			WHERE %3$s),
		checked AS (
			SELECT e.*, a.id <> b.id AND a.v %1$s b.v = e.distance AND %3$s AND %2$s AS is_right
			FROM edges e LEFT JOIN items a ON a.ctid = e.tid LEFT JOIN items b ON b.ctid = e.neighbor)
		SELECT count(*), count(*) FILTER (WHERE c.distance = t.d), bool_and(c.is_right)
		FROM truth t FULL JOIN checked c USING (tid, rank)', operator, replace(condition, '$', 'b.'), replace(condition, '$', 'a.'))
	USING index, k;
END
$$ LANGUAGE plpgsql SET enable_indexscan = off;
