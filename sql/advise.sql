-- advice before an index is built
SET client_min_messages = warning;

-- Warnings that the machine decides are left out: those of the engine and of workers.
CREATE FUNCTION advice(relation regclass, "column" name, operator text DEFAULT NULL,
	OUT method text, OUT operator_class text, OUT ordered_by text, OUT is_exact boolean, OUT rows bigint, OUT dimensions integer,
	OUT numbers boolean, OUT statement text, OUT warnings text)
	RETURNS SETOF record LANGUAGE sql AS $$
	SELECT a.method, a.operator_class, a.ordered_by, a.is_exact, a.rows, a.dimensions,
		a.index_bytes > 0 AND a.engine_bytes + a.gpu_bytes > 0 AND a.build_time > interval '0' AND a.compared_rows > 0,
		a.statement,
		(SELECT string_agg(w, '; ') FROM unnest(a.warnings) w WHERE w !~ 'GPU|CPU|engine|max_parallel')
	FROM pgwarp_advise($1, $2, $3) a ORDER BY a.method, a.operator_class $$;

CREATE TABLE advised (id integer, v vector(32), h halfvec(32), b bit(64), t text, a integer[], d tsvector);
INSERT INTO advised SELECT i, ARRAY(SELECT sin(i * j) FROM generate_series(1, 32) j)::vector, ARRAY(SELECT cos(i * j) FROM generate_series(1, 32) j)::halfvec,
	lpad(((i * 37) % 4096)::bit(12)::text, 64, '01')::bit(64), 'row number ' || i, ARRAY[i, i + 1, i % 7], to_tsvector('simple', 'row number ' || i)
	FROM generate_series(1, 5000) i;
ANALYZE advised;

-- every type that has an index, by its default distance and by others
SELECT * FROM advice('advised', 'v');
SELECT method, operator_class, statement FROM advice('advised', 'v', '<=>');
SELECT method, operator_class, statement FROM advice('advised', 'v', '<+>');
SELECT method, operator_class, dimensions, numbers, statement FROM advice('advised', 'h', '<#>');
SELECT method, operator_class, ordered_by, dimensions, numbers, statement FROM advice('advised', 'b');
SELECT * FROM advice('advised', 't');
SELECT method, operator_class, is_exact, numbers, statement FROM advice('advised', 'a', '<%>');
SELECT method, operator_class, is_exact, numbers, statement FROM advice('advised', 'd', '<&>');

-- Few enough rows to compare them all: the exact method is recommended, and comes first.
SELECT method, recommended FROM pgwarp_advise('advised', 'v') WITH ORDINALITY WHERE recommended OR ordinality = 1;
-- fewer: none is
CREATE TABLE few AS SELECT id, v FROM advised WHERE id <= 100;
ANALYZE few;
SELECT bool_or(recommended) FROM pgwarp_advise('few', 'v');
SELECT DISTINCT warnings FROM advice('few', 'v');

-- The size that is foretold is the size of the index.
CREATE FUNCTION build_error(relation regclass, "column" name, operator text DEFAULT NULL)
	RETURNS TABLE (method text, operator_class text, within_a_fifth boolean) LANGUAGE plpgsql AS $$
DECLARE
	foretold record;
	built regclass;
BEGIN
	FOR foretold IN SELECT a.* FROM pgwarp_advise($1, $2, $3) a ORDER BY a.method, a.operator_class LOOP
		EXECUTE replace(foretold.statement, 'INDEX ON', 'INDEX advised_index ON');
		built := 'advised_index';
		method := foretold.method;
		operator_class := foretold.operator_class;
		within_a_fifth := foretold.index_bytes BETWEEN 0.8 * pg_relation_size(built) AND 1.2 * pg_relation_size(built);
		RETURN NEXT;
		DROP INDEX advised_index;
	END LOOP;
END $$;
SELECT * FROM build_error('advised', 'v');
SELECT * FROM build_error('advised', 'v', '<=>');
SELECT * FROM build_error('advised', 'h');
SELECT * FROM build_error('advised', 'b');
SELECT * FROM build_error('advised', 't');
SELECT * FROM build_error('advised', 'a', '<%>');
SELECT * FROM build_error('advised', 'd', '<&>');

-- A type without dimensions: they are those of the rows.
CREATE TABLE shapeless (v vector);
INSERT INTO shapeless SELECT v FROM advised;
ANALYZE shapeless;
SELECT method, dimensions, numbers, statement, warnings FROM advice('shapeless', 'v') WHERE method = 'exact';
SELECT * FROM build_error('shapeless', 'v') WHERE method = 'exact';
ALTER TABLE shapeless ALTER v TYPE vector;
INSERT INTO shapeless SELECT '[1,2]' FROM generate_series(1, 5000);
ANALYZE shapeless;
SELECT method, dimensions, numbers, statement, warnings FROM advice('shapeless', 'v') WHERE method = 'exact';
TRUNCATE shapeless;
SELECT method, dimensions, numbers, statement, warnings FROM advice('shapeless', 'v') WHERE method = 'exact';

-- NULLs and zero vectors have no place among the rows.
CREATE TABLE holes AS SELECT (CASE WHEN i % 4 = 0 THEN NULL WHEN i % 4 = 1 THEN ARRAY[0, 0] ELSE ARRAY[i, 1] END)::vector(2) AS v FROM generate_series(1, 800) i;
ANALYZE holes;
SELECT rows, warnings FROM advice('holes', 'v', '<->') WHERE method = 'exact';
SELECT rows, warnings FROM advice('holes', 'v', '<=>') WHERE method = 'exact';

-- storage
CREATE TABLE wide (v vector(1000));
ALTER TABLE wide ALTER v SET STORAGE extended;
SELECT warnings FROM advice('wide', 'v') WHERE method = 'exact';
CREATE TABLE wider (v vector(3000));
ALTER TABLE wider ALTER v SET STORAGE plain;
SELECT warnings FROM advice('wider', 'v') WHERE method = 'exact';

-- rows that nobody has counted
CREATE TABLE uncounted (v vector(2));
INSERT INTO uncounted SELECT h.v FROM holes h, generate_series(1, 5);
SELECT warnings ~ 'guess until' FROM advice('uncounted', 'v') WHERE method = 'exact';

-- partitions together
CREATE TABLE parted (id integer, v vector(32)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (2001);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (2001) TO (9999);
INSERT INTO parted SELECT id, v FROM advised;
ANALYZE parted;
SELECT rows, numbers, statement FROM advice('parted', 'v') WHERE method = 'exact';
-- but a parent's index has its own rows alone
CREATE TABLE parent (v vector(2));
CREATE TABLE child () INHERITS (parent);
INSERT INTO child SELECT v FROM holes;
ANALYZE parent, child;
SELECT rows FROM advice('parent', 'v') WHERE method = 'exact';

-- names that need quotes, and schemas outside of the search path
CREATE SCHEMA "Far away";
CREATE TABLE "Far away"."My items" ("The vector" vector(2));
SELECT statement FROM advice('"Far away"."My items"', 'The vector', '<=>') WHERE method = 'exact';
CREATE DOMAIN embedding AS vector(2) CHECK (VALUE IS NOT NULL);
CREATE TABLE of_domain (v embedding);
SELECT method, statement FROM advice('of_domain', 'v') WHERE method = 'exact';

-- errors
SELECT * FROM pgwarp_advise('advised', 'id');
SELECT * FROM pgwarp_advise('advised', 'v', '<~>');
SELECT * FROM pgwarp_advise('advised', 'w');
SELECT * FROM pgwarp_advise('advised', 'ctid');
SELECT * FROM pgwarp_advise(NULL, 'v');
CREATE VIEW seen AS SELECT v FROM advised;
SELECT * FROM pgwarp_advise('seen', 'v');

-- rights: SELECT on the column, and no row security
CREATE ROLE regress_pgwarp_advised;
SET ROLE regress_pgwarp_advised;
SELECT count(*) FROM pgwarp_advise('advised', 'v');
RESET ROLE;
GRANT SELECT (v) ON advised TO regress_pgwarp_advised;
SET ROLE regress_pgwarp_advised;
SELECT count(*) > 0 FROM pgwarp_advise('advised', 'v');
SELECT count(*) FROM pgwarp_advise('advised', 'h');
RESET ROLE;
ALTER TABLE advised ENABLE ROW LEVEL SECURITY;
SET ROLE regress_pgwarp_advised;
SELECT count(*) FROM pgwarp_advise('advised', 'v');
RESET ROLE;

DROP SCHEMA "Far away" CASCADE;
DROP VIEW seen;
DROP TABLE advised, few, shapeless, holes, wide, wider, uncounted, parted, parent, child, of_domain;
DROP DOMAIN embedding;
DROP FUNCTION advice, build_error;
DROP ROLE regress_pgwarp_advised;
