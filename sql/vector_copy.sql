-- The binary form, COPY, and large values out of line.
SELECT vector_send('[1,-2.5,0]');
SELECT vector_send('[-0]') AS negative_zero;

CREATE TABLE source (id int, v vector);
INSERT INTO source VALUES (1, '[0,0,0]'), (2, '[1,-0,1e-45]'), (3, NULL), (4, '[3.4028235e38,0.1]'), (5, array_fill(0.25::real, ARRAY[16000])::vector);
CREATE TABLE target (id int, v vector);
\copy source TO 'results/vector.bin' WITH (FORMAT binary)
\copy target FROM 'results/vector.bin' WITH (FORMAT binary)
\copy source TO 'results/vector.txt'
\copy target FROM 'results/vector.txt'
\copy source TO 'results/vector.csv' WITH (FORMAT csv)
\copy target FROM 'results/vector.csv' WITH (FORMAT csv)
SELECT s.id, count(*), bool_and(vector_send(s.v) = vector_send(t.v)) AS same FROM source s JOIN target t USING (id) GROUP BY s.id ORDER BY 1;
CREATE TABLE typed (id int, v vector(3));
\copy typed FROM 'results/vector.bin' WITH (FORMAT binary)

-- binary input that is no vector: header, one row of one field, its bytes
CREATE TABLE received (v vector);
CREATE TABLE received_2 (v vector(2));
-- [1], length 8
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\1\0\0\77\200\0\0\377\377"' WITH (FORMAT binary)
-- no dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\0\377\377"' WITH (FORMAT binary)
-- -1 dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\377\377\0\0\377\377"' WITH (FORMAT binary)
-- 16001 dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\76\201\0\0\377\377"' WITH (FORMAT binary)
-- second number not zero
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\1\0\1\77\200\0\0\377\377"' WITH (FORMAT binary)
-- too short for its dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\2\0\0\77\200\0\0\377\377"' WITH (FORMAT binary)
-- too short for a header
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\3\0\1\0\377\377"' WITH (FORMAT binary)
-- too long
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\11\0\1\0\0\77\200\0\0\0\377\377"' WITH (FORMAT binary)
-- NaN
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\1\0\0\177\300\0\0\377\377"' WITH (FORMAT binary)
-- infinity
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\1\0\0\177\200\0\0\377\377"' WITH (FORMAT binary)
-- other dimensions than the column's
\copy received_2 FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\1\0\0\77\200\0\0\377\377"' WITH (FORMAT binary)
SELECT * FROM received;

-- 16,000 dimensions: stored out of line and not compressed, whole again in every function
CREATE TABLE large (id int, v vector(16000));
INSERT INTO large SELECT n, (SELECT array_agg((i * n) * 7919 % 1009 / 1009::float8 ORDER BY i)::vector FROM generate_series(1, 16000) i) FROM generate_series(1, 5) n;
SELECT attstorage FROM pg_attribute WHERE attrelid = 'large'::regclass AND attname = 'v';
SELECT pg_relation_size(reltoastrelid) >= 5 * 64000 AS out_of_line FROM pg_class WHERE oid = 'large'::regclass;
SELECT id, vector_dims(v), pg_column_size(v) FROM large ORDER BY id;
SELECT a.id, round((a.v <-> b.v)::numeric, 6) AS l2, round((a.v <=> b.v)::numeric, 6) AS cosine FROM large a, large b WHERE b.id = 3 ORDER BY a.v <-> b.v, a.id;
SELECT id, v = (v || '[1]'::vector) FROM large WHERE id = 1;
SELECT id, subvector(v, 15999, 5) FROM large WHERE id = 2;
SELECT (v::text)::vector = v AS text, (v::real[])::vector = v AS array, length(vector_send(v)) FROM large WHERE id = 4;
SELECT vector_dims(avg(v)), vector_dims(sum(v)) FROM large;
SELECT array_agg(id ORDER BY v) FROM large;
SELECT count(*) FROM large a JOIN large b ON a.v = b.v;
CREATE INDEX large_hash ON large USING hash (v);
SET enable_seqscan = off;
SELECT id FROM large WHERE v = (SELECT v FROM large WHERE id = 5);
RESET enable_seqscan;
CREATE INDEX ON large (v);
UPDATE large SET v = v - v WHERE id = 1;
SELECT vector_norm(v) FROM large WHERE id = 1;

DROP TABLE source, target, typed, received, received_2, large;
