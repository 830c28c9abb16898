\echo Use "CREATE EXTENSION pgwarp_pgvector" to load this file. \quit

-- Each extension may be in any schema, so every name is made with the schema in which that extension's objects are.

DO $bridge$
DECLARE
	ours name;   -- the schema of pgwarp's objects
	theirs name; -- the schema of pgvector's
	made record;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	SELECT min(n.nspname) FILTER (WHERE e.extname = 'pgwarp'), min(n.nspname) FILTER (WHERE e.extname = 'vector')
		INTO ours, theirs
		FROM pg_extension e
			JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
			JOIN pg_type t ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND t.typname = 'halfvec'
			JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE e.extname IN ('pgwarp', 'vector');
	IF theirs IS NULL THEN
		RAISE EXCEPTION 'pgwarp_pgvector needs pgvector 0.7.0 or later'
			USING ERRCODE = 'feature_not_supported', HINT = 'ALTER EXTENSION vector UPDATE;';
	END IF;
	IF to_regprocedure(format('%I.pgwarp_element_float32(internal)', ours)) IS NULL THEN
		RAISE EXCEPTION 'pgwarp_pgvector needs pgwarp 0.2.0 or later'
			USING ERRCODE = 'feature_not_supported', HINT = 'ALTER EXTENSION pgwarp UPDATE;';
	END IF;

	-- support function 3 of the operator classes: how pgvector's operators compute

	EXECUTE format($$CREATE FUNCTION %I.pgwarp_arithmetic_float32(internal) RETURNS integer
		AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE$$, ours);

	-- Operator classes: for each of pgwarp's one of the same name, with pgvector's type and operator. They are where
	-- pgvector's own are, since that is where its users look for the names. Those for bit have no arithmetic of their
	-- own: numbers of bits are exact.

	FOR made IN
		SELECT o.opcname, m.amname, t.typname, t.typname IN ('vector', 'halfvec', 'sparsevec') AS is_vector, o.opcdefault, p.oprname,
			s.amproc::regprocedure::text AS metric, k.amproc::regprocedure::text AS element
		FROM pg_extension e
			JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
			JOIN pg_opclass o ON d.classid = 'pg_opclass'::regclass AND d.objid = o.oid
			JOIN pg_am m ON m.oid = o.opcmethod
			JOIN pg_type t ON t.oid = o.opcintype
			JOIN pg_amop a ON a.amopfamily = o.opcfamily AND a.amoplefttype = o.opcintype AND a.amoppurpose = 'o'
			JOIN pg_operator p ON p.oid = a.amopopr
			JOIN pg_amproc s ON s.amprocfamily = o.opcfamily AND s.amproclefttype = o.opcintype AND s.amprocnum = 1
			JOIN pg_amproc k ON k.amprocfamily = o.opcfamily AND k.amproclefttype = o.opcintype AND k.amprocnum = 2
		WHERE e.extname = 'pgwarp'
			AND (t.typname IN ('vector', 'halfvec', 'sparsevec')
				AND t.typnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = ours)
				OR t.oid = 'bit'::regtype)
		ORDER BY t.typname DESC, m.oid, o.oid
	LOOP
		EXECUTE format('CREATE OPERATOR CLASS %1$I.%2$I %3$s FOR TYPE %4$s USING %5$I AS
			OPERATOR 1 %1$I.%6$s (%4$s, %4$s) FOR ORDER BY pg_catalog.float_ops,
			FUNCTION 1 %7$s, FUNCTION 2 %8$s',
			theirs, made.opcname, CASE WHEN made.opcdefault AND made.is_vector THEN 'DEFAULT' END,
			CASE WHEN made.is_vector THEN format('%I.%I', theirs, made.typname) ELSE 'pg_catalog."bit"' END,
			made.amname, made.oprname, made.metric, made.element)
			|| CASE WHEN made.is_vector
				THEN format(', FUNCTION 3 %I.pgwarp_arithmetic_float32(internal)', ours) ELSE '' END;
	END LOOP;

	-- casts: the types have the same layout

	FOR made IN SELECT type FROM unnest(ARRAY['vector', 'halfvec', 'sparsevec']) AS type LOOP
		EXECUTE format('CREATE CAST (%I.%I AS %I.%I) WITHOUT FUNCTION AS ASSIGNMENT', theirs, made.type, ours, made.type);
		EXECUTE format('CREATE CAST (%I.%I AS %I.%I) WITHOUT FUNCTION AS ASSIGNMENT', ours, made.type, theirs, made.type);
	END LOOP;

	-- functions that take vectors

	FOR made IN SELECT type FROM unnest(ARRAY['vector', 'halfvec']) AS type LOOP
		EXECUTE format($$CREATE FUNCTION %1$I.knn_search(index regclass, queries %2$I.%3$I[], k integer)
			RETURNS TABLE (query integer, tid tid, distance double precision)
			AS 'MODULE_PATHNAME', 'pgwarp_knn_search_array' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000$$,
			ours, theirs, made.type);
		EXECUTE format($$COMMENT ON FUNCTION %I.knn_search(regclass, %I.%I[], integer) IS
			'the k nearest rows of each query, as one batch'$$, ours, theirs, made.type);
	END LOOP;

	EXECUTE format($$CREATE FUNCTION %1$I.matchcount_estimate(index regclass, query %2$I.vector, k integer DEFAULT 10,
		OUT tid tid,
		OUT similarity double precision,
		OUT error double precision)
		RETURNS SETOF record
		AS 'MODULE_PATHNAME', 'pgwarp_estimate_similarity' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000$$,
		ours, theirs);
	EXECUTE format($$COMMENT ON FUNCTION %I.matchcount_estimate(regclass, %I.vector, integer) IS
		'the rows that agree with a query on most hash functions, and the similarities that this tells'$$, ours, theirs);

	-- kmeans() returns pgwarp's type
	FOR made IN SELECT centroids FROM unnest(ARRAY[ours, theirs]) AS centroids LOOP
		EXECUTE format($$CREATE FUNCTION %1$I.nearest_centroid(%2$I.vector, %3$I.vector[]) RETURNS integer
			AS 'MODULE_PATHNAME', 'pgwarp_nearest_centroid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE$$,
			ours, theirs, made.centroids);
		EXECUTE format($$COMMENT ON FUNCTION %I.nearest_centroid(%I.vector, %I.vector[]) IS
			'position of the nearest vector in an array, from 1'$$, ours, theirs, made.centroids);
	END LOOP;
END
$bridge$;
