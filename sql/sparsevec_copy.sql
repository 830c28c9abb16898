-- The binary form of sparse vectors, COPY, and large values out of line.
SELECT sparsevec_send('{1:1,3:-2.5}/3'), sparsevec_send('{}/1000000000') AS wide;

CREATE TABLE source (id int, s sparsevec);
INSERT INTO source VALUES (1, '{}/3'), (2, '{1:1,3:1e-45}/3'), (3, NULL), (4, '{1:3.4028235e38,1000000000:0.1}/1000000000'), (5, array_fill(0.25::real, ARRAY[16000])::sparsevec);
CREATE TABLE target (id int, s sparsevec);
\copy source TO 'results/sparsevec.bin' WITH (FORMAT binary)
\copy target FROM 'results/sparsevec.bin' WITH (FORMAT binary)
\copy source TO 'results/sparsevec.txt'
\copy target FROM 'results/sparsevec.txt'
\copy source TO 'results/sparsevec.csv' WITH (FORMAT csv)
\copy target FROM 'results/sparsevec.csv' WITH (FORMAT csv)
SELECT s.id, count(*), bool_and(sparsevec_send(s.s) = sparsevec_send(t.s)) AS same FROM source s JOIN target t USING (id) GROUP BY s.id ORDER BY 1;
CREATE TABLE typed (id int, s sparsevec(3));
\copy typed FROM 'results/sparsevec.bin' WITH (FORMAT binary)

-- binary input that is no sparsevec: header, one row of one field, its bytes
CREATE TABLE received (s sparsevec);
CREATE TABLE received_2 (s sparsevec(2));
-- {2:1}/3, length 20
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\77\200\0\0\377\377"' WITH (FORMAT binary)
-- no dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\0\0\0\0\0\0\0\0\0\0\0\0\377\377"' WITH (FORMAT binary)
-- 1,000,000,001 dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\73\232\312\1\0\0\0\0\0\0\0\0\377\377"' WITH (FORMAT binary)
-- -1 elements
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\0\0\0\3\377\377\377\377\0\0\0\0\377\377"' WITH (FORMAT binary)
-- 16,001 elements
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\0\1\0\0\0\0\76\201\0\0\0\0\377\377"' WITH (FORMAT binary)
-- more elements than dimensions
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\0\0\0\3\0\0\0\4\0\0\0\0\377\377"' WITH (FORMAT binary)
-- third number not zero
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\0\0\0\3\0\0\0\0\0\0\0\1\377\377"' WITH (FORMAT binary)
-- other dimensions than the column's
\copy received_2 FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\14\0\0\0\3\0\0\0\0\0\0\0\0\377\377"' WITH (FORMAT binary)
-- index 3 of 3, from 0
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\3\77\200\0\0\377\377"' WITH (FORMAT binary)
-- index -1
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\377\377\377\377\77\200\0\0\377\377"' WITH (FORMAT binary)
-- indices 1 and 0
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\34\0\0\0\3\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\77\200\0\0\77\200\0\0\377\377"' WITH (FORMAT binary)
-- indices 1 and 1
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\34\0\0\0\3\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\1\77\200\0\0\77\200\0\0\377\377"' WITH (FORMAT binary)
-- zeros of both signs, NaN, infinity
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\200\0\0\0\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\177\300\0\0\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\24\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\177\200\0\0\377\377"' WITH (FORMAT binary)
-- too short for its elements, too short for a header, too long
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\20\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\10\0\0\0\3\0\0\0\1\377\377"' WITH (FORMAT binary)
\copy received FROM PROGRAM 'printf "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\15\0\0\0\3\0\0\0\0\0\0\0\0\0\377\377"' WITH (FORMAT binary)
SELECT * FROM received;

-- 16,000 elements: stored out of line and not compressed, whole again in every function
CREATE TABLE large (id int, s sparsevec(1000000));
INSERT INTO large SELECT n, ('{' || (SELECT string_agg(i * 61 || ':' || (i * n) * 7919 % 1009 + 1, ',') FROM generate_series(1, 16000) i) || '}/1000000')::sparsevec FROM generate_series(1, 3) n;
SELECT attstorage FROM pg_attribute WHERE attrelid = 'large'::regclass AND attname = 's';
SELECT pg_relation_size(reltoastrelid) >= 3 * 128000 AS out_of_line FROM pg_class WHERE oid = 'large'::regclass;
SELECT id, pg_column_size(s), pg_column_size(s::text::sparsevec) FROM large ORDER BY id;
SELECT a.id, round((a.s <-> b.s)::numeric, 6) AS l2, round((a.s <=> b.s)::numeric, 6) AS cosine, a.s = b.s AS equal, sparsevec_hash(a.s) = sparsevec_hash(b.s) AS hashes FROM large a, large b WHERE b.id = 3 ORDER BY 2, 1;
-- short values in rows have headers of one byte
CREATE TABLE short (id int, c "char", s sparsevec);
INSERT INTO short SELECT i, 'a', ('{' || i || ':1}/10')::sparsevec FROM generate_series(1, 10) i;
SELECT id, s <-> '{3:1}/10' AS l2, l2_normalize(s), s::vector FROM short ORDER BY 2, 1 LIMIT 3;
DROP TABLE source, target, typed, received, received_2, large, short;
