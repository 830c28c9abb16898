-- Sets as values of four types, their indexes, and comparisons of answers by an index with those of a scan.
-- the same sets as values of the four types: with duplicates, NULL elements, several dimensions, empty ones, NULL
CREATE FUNCTION made_set(seed integer) RETURNS integer[] AS $$
	SELECT CASE WHEN seed % 41 = 0 THEN NULL WHEN seed % 37 = 0 THEN '{}' WHEN seed % 19 = 0 THEN ARRAY[[e[1], e[2]], [e[1], 5]]
			WHEN seed % 5 = 0 THEN e || ARRAY[NULL, e[1]] ELSE e END
		FROM (SELECT array_agg((seed * i * 7919 + i * i * (seed % 7)) % (20 + i * 9) - 30) AS e FROM generate_series(1, seed % 13 + 1) i) n
$$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION wide(integer[]) RETURNS bigint[] AS 'SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY(SELECT e * 4294967311 FROM unnest($1) e) END' LANGUAGE sql IMMUTABLE;
CREATE FUNCTION words(integer[]) RETURNS text[] AS $$SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY(SELECT CASE WHEN e = 5 THEN '' ELSE 'é' || e END FROM unnest($1) e) END$$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION document(integer[]) RETURNS tsvector AS $$SELECT CASE WHEN $1 IS NOT NULL THEN array_to_tsvector(ARRAY(SELECT DISTINCT 'w' || e FROM unnest($1) e WHERE e IS NOT NULL)) END$$ LANGUAGE sql IMMUTABLE;
CREATE TABLE items (id integer PRIMARY KEY, kind integer, i4 int4[], i8 int8[], t text[], d tsvector);
INSERT INTO items SELECT i, i % 10, s, wide(s), words(s), document(s) FROM generate_series(1, 1500) i, made_set(i) s;
CREATE TABLE queries (i4 int4[], i8 int8[], t text[], d tsvector);
INSERT INTO queries SELECT s, wide(s), words(s), document(s) FROM generate_series(1, 30) i, made_set(i * 131) s;
INSERT INTO queries SELECT s, wide(s), words(s), document(s)
	FROM (VALUES ('{}'::int4[]), ('{1000}'), ('{5}'), ('{NULL}'), (NULL), (ARRAY(SELECT generate_series(-30, 120)))) v (s);
ALTER TABLE queries ADD n integer GENERATED ALWAYS AS IDENTITY;
ANALYZE items, queries;
CREATE FUNCTION common(anyarray, anyarray) RETURNS bigint AS 'SELECT count(*) FROM (SELECT unnest($1) INTERSECT SELECT unnest($2)) n (e) WHERE e IS NOT NULL' LANGUAGE sql;
CREATE FUNCTION united(anyarray, anyarray) RETURNS bigint AS 'SELECT count(*) FROM (SELECT unnest($1) UNION SELECT unnest($2)) n (e) WHERE e IS NOT NULL' LANGUAGE sql;
-- answers by an index, and by a sort or a scan
CREATE FUNCTION set_plan(by_index boolean) RETURNS void AS $$
	SELECT set_config(name, (by_index = (name = 'enable_indexscan'))::text, true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name
$$ LANGUAGE sql;
CREATE FUNCTION distances(col text, op text, q queries, k integer, by_index boolean, condition text) RETURNS float8[] AS $$
DECLARE
	found float8[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(d) FROM (SELECT %1$s %2$s ($1).%1$s AS d FROM items WHERE %3$s ORDER BY %1$s %2$s ($1).%1$s LIMIT %4$s) n', col, op, condition, k)
		INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION rows_within(col text, op text, q queries, bound text, by_index boolean) RETURNS integer[] AS $$
DECLARE
	found integer[];
BEGIN
	PERFORM set_plan(by_index);
	EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM items WHERE %1$s %2$s ($1).%1$s %3$s OFFSET 0) n', col, op, bound) INTO found USING q;
	RETURN found;
END
$$ LANGUAGE plpgsql SET enable_sort = on;
CREATE FUNCTION compared(col text, op text, k integer, condition text DEFAULT 'true', OUT queries bigint, OUT wrong bigint) AS $$
	SELECT count(*), count(*) FILTER (WHERE distances(col, op, q, k, true, condition) IS DISTINCT FROM distances(col, op, q, k, false, condition)) FROM queries q
$$ LANGUAGE sql;
-- the distances of all rows to the queries, computed once for each state of the table
CREATE TABLE truths (col text, op text, n integer, d float8[], ids integer[]);
CREATE FUNCTION scan_all(columns text[]) RETURNS void AS $$
DECLARE
	col text;
	op text;
BEGIN
	PERFORM set_plan(false);
	TRUNCATE truths;
	FOR col, op IN SELECT c, o FROM unnest(columns) c, unnest(ARRAY['<&>', '<%>']) o LOOP
		EXECUTE format('INSERT INTO truths SELECT %1$L, %2$L, n, array_agg(distance), array_agg(id)
			FROM (SELECT q.n, i.id, i.%1$s %2$s q.%1$s AS distance FROM queries q, items i ORDER BY 1, 3) m GROUP BY n', col, op);
	END LOOP;
END
$$ LANGUAGE plpgsql;
CREATE FUNCTION truth_within(truth truths, bound text) RETURNS integer[] AS $$
	SELECT array_agg(id ORDER BY id)
		FROM (SELECT nullif(trim('''' FROM split_part(bound, ' ', 2)), 'NULL')::float8 AS value, bound ~ '=' AS closed OFFSET 0) b, unnest(truth.d, truth.ids) u (d, id)
		WHERE CASE WHEN closed THEN d <= value ELSE d < value END
$$ LANGUAGE sql;
CREATE FUNCTION bounded(of_col text, of_op text, bound text, OUT found bigint, OUT wrong bigint) AS $$
	SELECT sum(cardinality(w)), count(*) FILTER (WHERE w IS DISTINCT FROM truth_within(truth, bound))
		FROM truths truth JOIN queries q USING (n), rows_within(of_col, of_op, q, bound, true) w WHERE col = of_col AND op = of_op
$$ LANGUAGE sql;
CREATE FUNCTION all_compared(columns text[] DEFAULT '{i4,i8,t,d}', OUT col text, OUT op text, OUT wrong bigint) RETURNS SETOF record AS $$
	SELECT scan_all(columns);
	SELECT truth.col, truth.op, sum((SELECT count(*) FROM unnest(ARRAY[1, 10, 3000]) k
					WHERE distances(truth.col, truth.op, q, k, true, 'true') IS DISTINCT FROM truth.d[1:k])
				+ (SELECT count(*) FROM unnest(CASE truth.op WHEN '<&>' THEN ARRAY['<= -2', '< -3'] ELSE ARRAY['<= 0.5', '< 0.8'] END) bound
					WHERE rows_within(truth.col, truth.op, q, bound, true) IS DISTINCT FROM truth_within(truth, bound)))::bigint
		FROM truths truth JOIN queries q USING (n) GROUP BY truth.col, truth.op ORDER BY 1, 2
$$ LANGUAGE sql;
CREATE INDEX items_i4 ON items USING matchcount (i4);
CREATE INDEX items_i8 ON items USING matchcount (i8);
CREATE INDEX items_t ON items USING matchcount (t);
CREATE INDEX items_d ON items USING matchcount (d);
CREATE INDEX items_i4_jaccard ON items USING matchcount (i4 int4_array_jaccard_ops);
CREATE INDEX items_i8_jaccard ON items USING matchcount (i8 int8_array_jaccard_ops);
CREATE INDEX items_t_jaccard ON items USING matchcount (t text_array_jaccard_ops);
CREATE INDEX items_d_jaccard ON items USING matchcount (d tsvector_jaccard_ops);
