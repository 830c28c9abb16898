-- The vector type: text form, type modifiers, layout.
\pset null '(null)'
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

-- what is taken
SELECT '[1,2,3]'::vector;
SELECT '[-1,+2,.5,5.,1e3,-1E-3]'::vector;
SELECT E' \t\n\r\013\f[ \t\n\r\013\f1 \t\n\r\013\f, \t\n\r\013\f2 \t\n\r\013\f] \t\n\r\013\f'::vector;
SELECT '[0x10,0x1p-2]'::vector;
SELECT '[0,-0,-0.0]'::vector;

-- shortest form that reads back as the same float
SELECT '[0.1,0.3000001,0.10000000149,1.17549435e-38,3.4028235e38,16777217,1e10,123456.789]'::vector;
SELECT '[1e-45,1.5e-38,-1e-46,1e-46]'::vector;
SELECT count(*), bool_and(v::text::vector = v) AS same
FROM (SELECT ARRAY[random(), -random() * 1e30, random() * 1e-30, 1 / (random() + 1e-9)]::real[]::vector AS v
	FROM generate_series(1, 1000)) s;

-- what is refused
SELECT input, error_of(format('SELECT %L::vector', input)) FROM unnest(ARRAY[
	'', ' ', '[', '[ ', '[]', '[ ]', '[,', '[,]', '[1', '[1,', '[1,]', '[1 2]', '[1,,3]', '[1, ,3]', '[,1]',
	']', '1,2,3', '{1,2,3}', '(1,2)', '[1,2,3]9', '[1] ]', '[1][2]', '[1,2,3', '[[1]]', '[hello,1]', '[1a]', '[a1]',
	'[1;2]', '[1.2.3]', '[--1]', '[1e]', '[0x]', '[''1'']', '[NULL]',
	'[NaN,1]', '[nan]', '[-nan]', '[nan(1)]', '[Infinity,1]', '[-Infinity,1]', '[inf]',
	'[4e38,1]', '[-4e38,1]', '[1e999]', '[1,  -1e999 ]']) AS input;

-- a literal in a statement shows where it is wrong
SELECT '[1,2'::vector;
SELECT 'x'::vector;

-- type modifiers
SELECT '[1,2,3]'::vector(3), '[1]'::vector(1);
SELECT statement, error_of(statement) FROM unnest(ARRAY[
	$$SELECT '[1,2,3]'::vector(2)$$,
	$$SELECT '[1,2,3]'::vector(4)$$,
	$$SELECT '[1,2,3]'::vector::vector(2)$$,
	$$SELECT '[1,2,3]'::vector(3)::vector(2)$$,
	$$SELECT '{"[1,2,3]"}'::vector(2)[]$$,
	$$SELECT '[1]'::vector(0)$$,
	$$SELECT '[1]'::vector(-1)$$,
	$$SELECT '[1]'::vector(16000)$$,
	$$SELECT '[1]'::vector(16001)$$,
	$$SELECT '[1]'::vector(2147483648)$$,
	$$SELECT '[1]'::vector(3, 2)$$,
	$$SELECT '[1]'::vector('a')$$,
	$$SELECT '[1]'::vector()$$]) AS statement;
CREATE TABLE typed (a vector(3), b vector, c vector(2)[]);
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'typed'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO typed VALUES ('[1,2,3]', '[1]', '{"[1,2]","[3,4]"}'), (NULL, '[1,2,3,4]', '{NULL}');
INSERT INTO typed (a) VALUES ('[1,2]');
INSERT INTO typed (c) VALUES ('{"[1,2,3]"}');
UPDATE typed SET a = b;
UPDATE typed SET a = ARRAY[7, 8, 9] WHERE a IS NOT NULL;
SELECT * FROM typed ORDER BY b;
ALTER TABLE typed ALTER b TYPE vector(4);
ALTER TABLE typed ALTER a TYPE vector(4);
ALTER TABLE typed ALTER a TYPE vector;
SELECT unnest('{"[1,2,3]", "[4,5,6]", NULL}'::vector[]);

-- the largest
SELECT vector_dims(('[' || repeat('1,', 15999) || '1]')::vector), vector_dims(('[' || repeat('1,', 15999) || '1]')::vector(16000));
SELECT error_of(format('SELECT %L::vector', '[' || repeat('1,', 16000) || '1]'));

-- layout: a header of four bytes, the dimensions, two bytes of zero, then floats
SELECT typname, typlen, typbyval, typalign, typstorage, typcategory FROM pg_type WHERE oid IN ('vector'::regtype, 'vector[]'::regtype) ORDER BY 1;
SELECT d, pg_column_size(array_fill(1, ARRAY[d])::vector) FROM unnest(ARRAY[1, 3, 128, 16000]) AS d;

-- every function over vectors, but of indexes, is immutable, strict and safe in parallel
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE ('vector'::regtype = ANY (p.proargtypes) OR p.prorettype = 'vector'::regtype)
	AND 'regclass'::regtype <> ALL (p.proargtypes)
	AND p.prokind = 'f' AND NOT (p.provolatile = 'i' AND p.proisstrict AND p.proparallel = 's');

-- operators: commutators and negators agree, both ways
SELECT o.oprname, o.oprcode, c.oprname AS commutator, n.oprname AS negator, o.oprrest, o.oprcanhash, o.oprcanmerge
FROM pg_operator o LEFT JOIN pg_operator c ON c.oid = o.oprcom AND c.oprcom = o.oid
	LEFT JOIN pg_operator n ON n.oid = o.oprnegate AND n.oprnegate = o.oid
WHERE o.oprleft = 'vector'::regtype AND o.oprright = 'vector'::regtype ORDER BY o.oprname COLLATE "C";
SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext FROM pg_cast
WHERE castsource = 'vector'::regtype OR casttarget = 'vector'::regtype ORDER BY 1, 2;

DROP TABLE typed;
DROP FUNCTION error_of;
