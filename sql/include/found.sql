-- answers agree with the sequential scan

CREATE TABLE items (id integer PRIMARY KEY, kind integer, v vector(8));
INSERT INTO items
	SELECT i, i % 10, ARRAY[sin(i), cos(1.7 * i), sin(2.3 * i + 1), cos(0.31 * i), sin(0.77 * i), cos(5.1 * i), sin(3.3 * i), cos(0.013 * i)]::vector(8)
	FROM generate_series(1, 3000) i;

-- how many of the nearest rows of some queries an index scan finds, and whether they come in order
CREATE FUNCTION found(operator text, k integer, condition text DEFAULT 'true') RETURNS TABLE (rows bigint, hits bigint, ordered boolean) AS $$
DECLARE
	query vector(8);
	ids integer[];
	distances double precision[];
	truth integer[];
	statement text := format('SELECT array_agg(id), array_agg(d) FROM (SELECT id, v %1$s $1 AS d FROM items WHERE %2$s ORDER BY v %1$s $1 LIMIT %3$s) n',
		operator, condition, k);
BEGIN
	rows := 0; hits := 0; ordered := true;
	FOR query IN SELECT v FROM items WHERE id % 300 = 7 LOOP
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_sort = off;
		EXECUTE statement INTO ids, distances USING query;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_sort = on;
		EXECUTE statement INTO truth USING query;
		rows := rows + cardinality(ids);
		hits := hits + (SELECT count(*) FROM unnest(ids) a JOIN unnest(truth) b ON a = b);
		ordered := ordered AND distances = (SELECT array_agg(d ORDER BY d) FROM unnest(distances) d);
	END LOOP;
	RETURN NEXT;
END
$$ LANGUAGE plpgsql;
-- an approximate method is asked for nearly all
CREATE FUNCTION found_share(operator text, k integer, condition text DEFAULT 'true') RETURNS TABLE (rows bigint, enough boolean, ordered boolean) AS $$
	SELECT rows, hits >= 0.9 * rows, ordered FROM found(operator, k, condition)
$$ LANGUAGE sql;
