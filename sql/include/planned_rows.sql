-- The number of rows that the planner expects of a statement.
CREATE FUNCTION planned_rows(statement text) RETURNS float8 AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
	RETURN plan->0->'Plan'->>'Plan Rows';
END
$$ LANGUAGE plpgsql;
