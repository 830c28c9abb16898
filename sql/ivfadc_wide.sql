SET client_min_messages = warning;
SET enable_seqscan = off;

-- more dimensions than a rotation is learnt for: with opq it is random, and kept as signs

CREATE TABLE wide (id integer PRIMARY KEY, v vector(3000));
INSERT INTO wide
	SELECT i, (SELECT array_agg(sin(0.37 * i + 0.11 * i * j * j) / sqrt(j)) FROM generate_series(1, 3000) j)::vector(3000)
	FROM generate_series(1, 60) i;
CREATE INDEX wide_index ON wide USING ivfadc (v) WITH (opq = on, refine = none, subquantizers = 100);
SELECT options->>'opq' AS opq FROM pgwarp_index_info('wide_index');

-- fewer rows than codewords: codes lose nothing
SELECT count(*) FROM wide w, LATERAL (SELECT id FROM wide ORDER BY v <-> w.v LIMIT 1) n WHERE n.id = w.id;
DELETE FROM wide WHERE id % 2 = 0;
INSERT INTO wide SELECT id + 100, v + v FROM wide WHERE id < 10;
VACUUM wide;
SELECT count(*) FROM wide w, LATERAL (SELECT id FROM wide ORDER BY v <-> w.v LIMIT 1) n WHERE n.id = w.id;
SELECT pgwarp_release('wide_index');
SELECT count(*) FROM wide w, LATERAL (SELECT id FROM wide ORDER BY v <-> w.v LIMIT 1) n WHERE n.id = w.id;
REINDEX INDEX wide_index;
SELECT count(*) FROM wide w, LATERAL (SELECT id FROM wide ORDER BY v <-> w.v LIMIT 1) n WHERE n.id = w.id;
DROP TABLE wide;
