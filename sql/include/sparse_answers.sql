-- sparse vectors, queries, and answers by the indexes of a table against those of a sort
-- vectors of up to 30 of 200 elements, low ones more frequent; some are empty, NULL, equal, or have negative elements
CREATE FUNCTION made_vector(seed integer) RETURNS sparsevec AS $$
	SELECT CASE WHEN seed % 41 = 0 THEN NULL WHEN seed % 37 = 0 THEN '{}/200'::sparsevec
			ELSE ('{' || string_agg(place || ':' || value, ',' ORDER BY place) || '}/200')::sparsevec END
		FROM (SELECT 1 + abs(hashint4(seed * 100 + i)) % (1 + abs(hashint4(seed * 100 + i + 500000)) % 200) AS place,
				max((1 + abs(hashint4(seed * 100 + i + 900000)) % 16 - CASE WHEN i % 5 = 0 THEN 12.5 ELSE 0 END) / 4) AS value
			FROM generate_series(1, 1 + seed % 30) i GROUP BY 1) n
$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE items (id integer PRIMARY KEY, kind integer, v sparsevec(200));
INSERT INTO items SELECT i, i % 10, made_vector(i) FROM generate_series(1, 1500) i;
INSERT INTO items SELECT 1500 + i, i % 10, made_vector(i * 3) FROM generate_series(1, 100) i;
ANALYZE items;
CREATE TABLE queries (id integer, q sparsevec);
INSERT INTO queries SELECT i, made_vector(i * 131) FROM generate_series(1, 12) i;
INSERT INTO queries VALUES (13, '{}/200'), (14, '{200:1}/200'), (15, '{1:-1,2:-2,3:-3}/200'), (16, '{1:1e30,7:1e-30}/200'), (17, NULL), (18, (SELECT ('{' || string_agg(i || ':' || i / 10.0, ',') || '}/200')::sparsevec FROM generate_series(1, 200) i));

-- answers by an index, and by a sort
CREATE FUNCTION set_plan(by_index boolean) RETURNS void AS $$
	SELECT set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name
$$ LANGUAGE sql;
CREATE FUNCTION distances(q sparsevec, operator text, k integer, by_index boolean, condition text) RETURNS float8[] AS $$
DECLARE
	found float8[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT v %1$s $1 AS d FROM items WHERE %2$s ORDER BY v %1$s $1 LIMIT %3$s) n', operator, condition, k) INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION compared(k integer, condition text DEFAULT 'true', OUT queries bigint, OUT found bigint, OUT wrong bigint) AS $$
	SELECT count(*), sum(cardinality(a)), count(*) FILTER (WHERE a IS DISTINCT FROM b)
		FROM (SELECT distances(q, o, k, true, condition) AS a, distances(q, o, k, false, condition) AS b
			FROM queries, unnest(ARRAY['<->', '<#>', '<=>', '<+>']) o OFFSET 0) n
$$ LANGUAGE sql;
