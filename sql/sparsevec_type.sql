-- The sparsevec type: text form, type modifiers, layout, casts.
\pset null '(null)'
SET extra_float_digits = 1;
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(' | ', SQLSTATE, left(SQLERRM, 90), nullif(detail, ''));
END $$;

-- what is taken, in any order and with zeros, and the shortest form of what it became
SELECT '{1:1.5,3:2}/5'::sparsevec, '{}/1'::sparsevec, '{ }/ 7'::sparsevec, E' \t\n{ 2 : 1 ,\n+1 :-2 }\x0B/\f4 '::sparsevec AS blanks;
SELECT '{9:1,2:+2,5:.5,1:5.,7:1e3,3:-1E-3}/9'::sparsevec AS sorted, '{1:0,2:-0,3:0.0,4:1}/4'::sparsevec AS zeros, '{1:0x10,2:0x1p-2}/2'::sparsevec AS hexadecimal;
SELECT '{1:0.1,2:0.3333333,3:123.456,4:3.4028235e38,5:1.1754944e-38,6:1e-45,7:-3.4028235e38}/7'::sparsevec AS floats;
SELECT '{1:1,1000000000:2}/1000000000'::sparsevec AS wide;
SELECT '{16000:1}/16000'::sparsevec::text = '{16000:1}/16000' AS same;

-- what is refused
SELECT input, error_of(format('SELECT %L::sparsevec', input)) FROM unnest(ARRAY[
	'', ' ', '{', '{}', '{}/', '{}/a', '{}/2a', '{}/3 3', '{}3', '{}/0', '{}/-1', '{}/1000000001', '{}/99999999999999999999', '1:1}/2', '[1]',
	'{1', '{1:', '{1:1', '{1:1,', '{1:1,}/2', '{,}/2', '{,1:1}/2', '{:1}/2', '{1 1}/2', '{1:1 2:1}/2', '{1:a}/2', '{1:1a}/2', '{a:1}/2', '{1.5:1}/2', '{1:}/2', '{1:1}2', '{1:1}/2}', '{{1:1}}/2',
	'{1:NULL}/1', '{1:NaN}/1', '{1:nan}/1', '{1:Infinity}/1', '{1:-inf}/1', '{1:4e38}/1', '{1:-1e999}/1', '{1:1e-46}/1', '{1:-1e-400}/1',
	'{0:1}/2', '{-1:1}/2', '{3:1}/2', '{4294967297:1}/2', '{-99999999999999999999:1}/2', '{0:0,1:1}/2', '{1:1,1:1}/2', '{2:1,1:1,2:3}/2']) AS input;
SELECT '{1:1,2:2'::sparsevec;
-- up to 16,000 elements, and as many in the text
SELECT error_of(format('SELECT %L::sparsevec', '{' || (SELECT string_agg(i || ':1', ',') FROM generate_series(1, n) i) || '}/20000')) FROM unnest(ARRAY[16000, 16001]) n;

-- type modifiers
SELECT '{1:2}/3'::sparsevec(3), '{1:2}/3'::sparsevec::sparsevec(3), '[1,0,2]'::vector::sparsevec(3), ARRAY[1,0]::sparsevec(2);
SELECT statement, error_of(statement) FROM unnest(ARRAY[
	$$SELECT '{1:2}/3'::sparsevec(2)$$,
	$$SELECT '{1:2}/3'::sparsevec::sparsevec(2)$$,
	$$SELECT '[1,2,3]'::vector::sparsevec(2)$$,
	$$SELECT '[1,2,3]'::halfvec::sparsevec(2)$$,
	$$SELECT '{1:2}/3'::sparsevec::vector(2)$$,
	$$SELECT '{1:2}/3'::sparsevec::halfvec(2)$$,
	$$SELECT ARRAY[1,2,3]::sparsevec(2)$$,
	$$SELECT '{}/1'::sparsevec(0)$$,
	$$SELECT '{}/1000000000'::sparsevec(1000000000)$$,
	$$SELECT '{}/1'::sparsevec(1000000001)$$,
	$$SELECT '{}/1'::sparsevec(3, 2)$$,
	$$SELECT '{}/1'::sparsevec('a')$$]) AS statement;
SELECT typname, typlen, typbyval, typalign, typstorage, typcategory FROM pg_type WHERE oid IN ('sparsevec'::regtype, 'sparsevec[]'::regtype) ORDER BY 1;
SELECT pg_column_size('{}/1000000000'::sparsevec), pg_column_size('{1:1}/2'::sparsevec), pg_column_size(array_fill(1, ARRAY[16000])::sparsevec);
CREATE TABLE typed (s sparsevec(5));
SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'typed'::regclass AND attname = 's';
DROP TABLE typed;

-- casts: there and back, zeros of either sign go
SELECT '[0,1.5,0,-2,-0]'::vector::sparsevec, '[0,1.5,0,-2,-0]'::halfvec::sparsevec, '{2:1.5,4:-2}/5'::sparsevec::vector, '{2:1.5,4:-2}/5'::sparsevec::halfvec;
SELECT '{0,70,-1}'::int[]::sparsevec AS int, '{0.1,0,-0}'::real[]::sparsevec AS float4, '{0.1,1e-300}'::float8[]::sparsevec AS float8, '{0.1,0.00,2049}'::numeric[]::sparsevec AS numeric, '{0,0}'::int[]::sparsevec AS zeros;
SELECT '{1:1.0001,2:65519,3:1e-9}/3'::sparsevec::halfvec AS rounded;
SELECT nnz, bool_and(s::vector = v AND s::vector::sparsevec = s AND v::sparsevec::text = s::text) AS same FROM (
	SELECT nnz, ('{' || (SELECT string_agg(i * 7 % 101 || ':' || i - 50.5, ',') FROM generate_series(1, nnz) i) || '}/101')::sparsevec AS s,
		(SELECT array_agg(coalesce(x, 0) ORDER BY n) FROM generate_series(1, 101) n LEFT JOIN (SELECT i * 7 % 101 AS n, i - 50.5 AS x FROM generate_series(1, nnz) i) e USING (n))::vector AS v
	FROM unnest(ARRAY[1, 2, 50, 100]) nnz) t GROUP BY nnz ORDER BY 1;
SELECT statement, error_of(statement) FROM unnest(ARRAY[
	$$SELECT '{1:65520}/2'::sparsevec::halfvec$$,
	$$SELECT '{}/16001'::sparsevec::vector$$,
	$$SELECT '{}/16001'::sparsevec::halfvec$$,
	$$SELECT '{1e300}'::float8[]::sparsevec$$,
	$$SELECT '{0,Infinity}'::real[]::sparsevec$$,
	$$SELECT '{NaN}'::float8[]::sparsevec$$,
	$$SELECT '{NaN}'::numeric[]::sparsevec$$,
	$$SELECT '{1,NULL}'::int[]::sparsevec$$,
	$$SELECT '{}'::real[]::sparsevec$$,
	$$SELECT '{{1,2}}'::real[]::sparsevec$$,
	$$SELECT array_fill(0, ARRAY[16001])::sparsevec$$,
	$$SELECT array_fill(1, ARRAY[16001])::sparsevec$$,
	$$SELECT ARRAY['1']::text[]::sparsevec$$,
	$$SELECT '{1:1}/2'::sparsevec::real[]$$]) AS statement;

-- a vector or halfvec is taken for a sparsevec implicitly, the other ways are assignments
CREATE TABLE assigned (s sparsevec(2), v vector(2), h halfvec(2));
INSERT INTO assigned VALUES ('[1,0]'::vector, '{2:4}/2'::sparsevec, '{2:6}/2'::sparsevec), (ARRAY[1,2], NULL, NULL), ('[0,3]'::halfvec, NULL, NULL);
SELECT * FROM assigned;
SELECT s <-> v AS sparse, v <-> h AS halves, s <-> h AS sparse_and_half, s = v AS equal FROM assigned WHERE v IS NOT NULL;
INSERT INTO assigned (s) VALUES ('[1,2,3]'::vector);
INSERT INTO assigned (v) VALUES ('{}/3'::sparsevec);
PREPARE nearest(vector) AS SELECT s <-> $1 AS distance FROM assigned ORDER BY 1;
EXECUTE nearest('[1,5]');
DROP TABLE assigned;
-- vectors among themselves stay vectors
SELECT pg_typeof('[1,2]'::vector || '[3]'), '[1,2]'::vector <-> '[4,6]' AS l2, '[1,2]'::vector = '[1,2]' AS equal, l2_norm('[3,4]'::halfvec);
SELECT l2_norm('[3,4]'::vector), vector_norm('[3,4]'::vector);

-- every function over sparsevecs is immutable, strict and safe in parallel
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE ('sparsevec'::regtype = ANY (p.proargtypes) OR p.prorettype = 'sparsevec'::regtype)
	AND p.prokind = 'f' AND NOT (p.provolatile = 'i' AND p.proisstrict AND p.proparallel = 's');
SELECT o.oprname, o.oprcode, c.oprname AS commutator, n.oprname AS negator, o.oprrest, o.oprjoin, o.oprcanhash, o.oprcanmerge
FROM pg_operator o LEFT JOIN pg_operator c ON c.oid = o.oprcom AND c.oprcom = o.oid
	LEFT JOIN pg_operator n ON n.oid = o.oprnegate AND n.oprnegate = o.oid
WHERE o.oprleft = 'sparsevec'::regtype AND o.oprright = 'sparsevec'::regtype ORDER BY o.oprname COLLATE "C";
SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext FROM pg_cast
WHERE castsource = 'sparsevec'::regtype OR casttarget = 'sparsevec'::regtype ORDER BY castsource::regtype::text COLLATE "C", casttarget::regtype::text COLLATE "C";
DROP FUNCTION error_of;
