-- Casts between vectors and arrays.
SELECT ARRAY[1,2,3]::vector, ARRAY[1.5,2,3]::vector AS numeric, ARRAY[1,2,3]::real[]::vector AS float4, ARRAY[1,2,3]::float8[]::vector AS float8, ARRAY[1,2,3]::numeric[]::vector;
SELECT '{1,2,3}'::int[]::vector(3), '{1,2,3}'::real[]::vector(3), '{1,2,3}'::float8[]::vector(3), '{1,2,3}'::numeric[]::vector(3);
SELECT '[1,2,3]'::vector::real[], '[0.1,-0,1e-45]'::vector::real[], array_dims('[1,2,3]'::vector::real[]);
CREATE FUNCTION second(real[]) RETURNS real LANGUAGE sql AS 'SELECT $1[2]';
SELECT ('[5,6,7]'::vector::real[])[2], second('[5,6,7]'::vector) AS implicit;
SELECT '[3:5]={1,2,3}'::int[]::vector AS other_lower_bound;
SELECT '{2147483647,-16777217}'::int[]::vector AS rounded, '{0.1}'::float8[]::vector AS nearest, '{1e-46,-1e-46}'::float8[]::vector AS underflow;

-- dimensions
SELECT '{1,2,3}'::int[]::vector(2);
SELECT '{1,2,3}'::real[]::vector(2);
SELECT '{1,2,3}'::float8[]::vector(2);
SELECT '{1,2,3}'::numeric[]::vector(2);
SELECT '{}'::real[]::vector;
SELECT '{{1,2},{3,4}}'::real[]::vector;
SELECT vector_dims(array_fill(1.5::real, ARRAY[16000])::vector);
SELECT array_fill(1, ARRAY[16001])::vector;
SELECT array_to_vector(array_fill(1::real, ARRAY[16001]), 16001, false);

-- elements
SELECT '{1,NULL}'::int[]::vector;
SELECT '{NULL}'::real[]::vector;
SELECT '{NaN}'::real[]::vector;
SELECT '{1,Infinity}'::real[]::vector;
SELECT '{-Infinity}'::float8[]::vector;
SELECT '{NaN}'::float8[]::vector;
SELECT '{4e38}'::float8[]::vector;
SELECT '{4e38}'::numeric[]::vector;
SELECT '{NaN}'::numeric[]::vector;
SELECT ARRAY['1']::text[]::vector;
SELECT ARRAY[1]::bigint[]::vector;

-- arrays are assigned, not taken implicitly; vectors become arrays implicitly
CREATE TABLE assigned (v vector(3), a real[]);
INSERT INTO assigned VALUES (ARRAY[1,2,3], '[4,5,6]'::vector), ('{1,2,3}'::float8[], NULL), (NULL::real[], NULL);
SELECT * FROM assigned;
INSERT INTO assigned VALUES (ARRAY[1,2]);
SELECT vector_dims(ARRAY[1,2,3]);
SELECT v FROM assigned WHERE v = ARRAY[1,2,3]::real[];
SELECT ARRAY[1,2,3] = ARRAY[1,2,3] AS arrays_still_compare;
PREPARE nearest(real[]) AS SELECT v <-> $1::vector AS distance FROM assigned WHERE v IS NOT NULL;
EXECUTE nearest('{1,2,5}');

-- an array that had NULLs
SELECT (array_remove(ARRAY[1,NULL,2]::real[], NULL))::vector;
DROP TABLE assigned;
DROP FUNCTION second;

-- a cast to dimensions that are known is left out; one to others is not
CREATE TABLE known (v vector(3), w vector, h halfvec(3));
EXPLAIN (VERBOSE, COSTS OFF)
SELECT v::vector::vector(3), h::halfvec::halfvec(3), w::vector(3), v::vector::vector(2) FROM known;
INSERT INTO known VALUES ('[1,2,3]', '[1,2]', '[1,2,3]');
SELECT v::vector::vector(3), h::halfvec::halfvec(3) FROM known;
SELECT w::vector(3) FROM known;
SELECT v::vector::vector(2) FROM known;
CREATE FUNCTION is_rewritten(command text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	file oid := pg_relation_filenode('known');
BEGIN
	EXECUTE command;
	RETURN pg_relation_filenode('known') <> file;
END $$;
SELECT is_rewritten('ALTER TABLE known ALTER v TYPE vector(3) USING v::vector');
SELECT is_rewritten('ALTER TABLE known ALTER v TYPE vector');
SELECT is_rewritten('ALTER TABLE known ALTER v TYPE vector(3)');
DROP FUNCTION is_rewritten;
DROP TABLE known;
