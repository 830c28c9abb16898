-- The halfvec type: text form, rounding, type modifiers, layout, casts.
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

-- what is taken, and the shortest form of what it became
SELECT '[1,2,3]'::halfvec, '[-1,+2,.5,5.,1e3,-1E-3]'::halfvec, E' \t\n[ 1 , 2\n] '::halfvec, '[0x10,0x1p-2]'::halfvec, '[0,-0,-0.0]'::halfvec;
SELECT '[0.1,0.3333333,123.456,2049,65503]'::halfvec AS rounded;

-- to the nearest half, ties to even
SELECT '[2048,2049,2050,2051,2052,2053]'::halfvec AS ties, '[1.00048828125,1.000488282,1.00146484375,-1.00048828125]'::halfvec AS ties_of_one;
-- the largest half is 65504; from halfway to the next power of two on, there is none
SELECT '[65504,65519,65519.99,-65504,-65519.99]'::halfvec AS largest;
-- subnormals: the smallest is 2^-24, half of it goes to zero
SELECT '[6.1035156e-05,6.0975552e-05,5.9604645e-08,2.9802322e-08,2.9802326e-08,8.9406967e-08,-2.9802322e-08,1e-30]'::halfvec AS small;
SELECT halfvec_send('[5.9604645e-08,6.0975552e-05,6.1035156e-05,1,65504,-0,-2.9802322e-08]');

-- every half that there is: back and forth through text, float and arrays
CREATE TABLE halves AS SELECT bits, ('[' || (CASE WHEN bits >= 32768 THEN '-' ELSE '' END) || trim(to_char(
	CASE WHEN bits >> 10 & 31 = 0 THEN (bits & 1023) * 2::numeric ^ -24 ELSE (1024 + (bits & 1023)) * 2::numeric ^ ((bits >> 10 & 31) - 25) END,
	'999990.99999999999999999999999999999999')) || ']')::halfvec AS v
	FROM generate_series(0, 65535) bits WHERE bits >> 10 & 31 < 31;
SELECT count(*), bool_and(halfvec_send(v) = '\x00010000'::bytea || substr(int4send(bits), 3)) AS right,
	bool_and(halfvec_send(v::text::halfvec) = halfvec_send(v)) AS text, bool_and(halfvec_send(v::vector::halfvec) = halfvec_send(v)) AS vector,
	bool_and(halfvec_send(v::real[]::halfvec) = halfvec_send(v)) AS array, bool_and(v::vector::text = v::text) AS same_text,
	count(DISTINCT v) AS different FROM halves;
DROP TABLE halves;

-- what is refused
SELECT input, error_of(format('SELECT %L::halfvec', input)) FROM unnest(ARRAY[
	'', '[', '[]', '[,', '[1', '[1,', '[1,]', '[1 2]', '1,2,3', '[1,2,3]9', '[1][2]', '[[1]]', '[hello,1]', '[1a]', '[NULL]',
	'[NaN,1]', '[nan]', '[Infinity,1]', '[-inf]', '[65520]', '[1,-65520]', '[1e5]', '[4e38,1]', '[-1e999]']) AS input;
SELECT '[1,2'::halfvec;

-- type modifiers
SELECT '[1,2,3]'::halfvec(3), '[1,2,3]'::vector::halfvec(3), ARRAY[1,2]::halfvec(2);
SELECT statement, error_of(statement) FROM unnest(ARRAY[
	$$SELECT '[1,2,3]'::halfvec(2)$$,
	$$SELECT '[1,2,3]'::halfvec::halfvec(2)$$,
	$$SELECT '[1,2,3]'::vector::halfvec(2)$$,
	$$SELECT '[1,2,3]'::halfvec::vector(2)$$,
	$$SELECT ARRAY[1,2,3]::halfvec(2)$$,
	$$SELECT '[1]'::halfvec(0)$$,
	$$SELECT '[1]'::halfvec(16000)$$,
	$$SELECT '[1]'::halfvec(16001)$$,
	$$SELECT '[1]'::halfvec(3, 2)$$,
	$$SELECT '[1]'::halfvec('a')$$]) AS statement;
SELECT error_of(format('SELECT %L::halfvec', '[' || repeat('1,', 16000) || '1]'));
SELECT typname, typlen, typbyval, typalign, typstorage, typcategory FROM pg_type WHERE oid IN ('halfvec'::regtype, 'halfvec[]'::regtype) ORDER BY 1;
SELECT d, pg_column_size(array_fill(1, ARRAY[d])::halfvec) FROM unnest(ARRAY[1, 3, 128, 16000]) AS d;

-- casts: what a half can't hold is an error, what it can't tell from zero is zero
SELECT '[1.0001,65519,1e-9]'::vector::halfvec, '[0.1,65504]'::halfvec::vector;
SELECT '{1,70,65519}'::int[]::halfvec AS int, '{0.1,-65519.99}'::real[]::halfvec AS float4, '{0.1,1e-300}'::float8[]::halfvec AS float8, '{0.1,2049}'::numeric[]::halfvec AS numeric, '[0.5,2]'::halfvec::real[];
SELECT statement, error_of(statement) FROM unnest(ARRAY[
	$$SELECT '[65520]'::vector::halfvec$$,
	$$SELECT '[1,-3e38]'::vector::halfvec$$,
	$$SELECT '{65520}'::int[]::halfvec$$,
	$$SELECT '{70000.5}'::real[]::halfvec$$,
	$$SELECT '{-1e5}'::float8[]::halfvec$$,
	$$SELECT '{1e300}'::float8[]::halfvec$$,
	$$SELECT '{1e6}'::numeric[]::halfvec$$,
	$$SELECT '{Infinity}'::real[]::halfvec$$,
	$$SELECT '{NaN}'::float8[]::halfvec$$,
	$$SELECT '{1,NULL}'::int[]::halfvec$$,
	$$SELECT '{}'::real[]::halfvec$$,
	$$SELECT '{{1,2}}'::real[]::halfvec$$,
	$$SELECT array_fill(1, ARRAY[16001])::halfvec$$,
	$$SELECT ARRAY['1']::text[]::halfvec$$]) AS statement;

-- a vector is taken for a halfvec implicitly, the other ways are assignments
CREATE TABLE assigned (h halfvec(2), v vector(2), a real[]);
INSERT INTO assigned VALUES ('[1,2]'::vector, '[3,4]'::halfvec, '[5,6]'::halfvec), (ARRAY[1,2], NULL, NULL), ('{0.5,0.1}'::float8[], NULL, NULL);
SELECT * FROM assigned;
SELECT h <-> v AS halves, pg_typeof(h || v), h = v AS equal FROM assigned;
INSERT INTO assigned (h) VALUES ('[1,2,3]'::vector);
INSERT INTO assigned (v) VALUES ('[1,2,3]'::halfvec);
SELECT vector_norm('[1,2]'::halfvec); -- of vectors alone, as in pgvector
PREPARE nearest(vector) AS SELECT h <-> $1 AS distance FROM assigned ORDER BY 1;
EXECUTE nearest('[1,5]');
DROP TABLE assigned;

-- every function over halfvecs is immutable, strict and safe in parallel
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE ('halfvec'::regtype = ANY (p.proargtypes) OR p.prorettype = 'halfvec'::regtype)
	AND p.prokind = 'f' AND NOT (p.provolatile = 'i' AND p.proisstrict AND p.proparallel = 's');
SELECT o.oprname, o.oprcode, c.oprname AS commutator, n.oprname AS negator, o.oprrest, o.oprcanhash, o.oprcanmerge
FROM pg_operator o LEFT JOIN pg_operator c ON c.oid = o.oprcom AND c.oprcom = o.oid
	LEFT JOIN pg_operator n ON n.oid = o.oprnegate AND n.oprnegate = o.oid
WHERE o.oprleft = 'halfvec'::regtype AND o.oprright = 'halfvec'::regtype ORDER BY o.oprname COLLATE "C";
SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext FROM pg_cast
WHERE castsource = 'halfvec'::regtype OR casttarget = 'halfvec'::regtype ORDER BY 1, 2;
DROP FUNCTION error_of;
