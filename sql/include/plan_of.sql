-- A plan as PostgreSQL 15 shows it: later ones mark disabled nodes, and name the values of InitPlans.
CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		CONTINUE WHEN line ~ '^ *Disabled: true$';
		line := regexp_replace(line, '(InitPlan \d+) \(returns \$\d+\)', '\1');
		RETURN NEXT replace(replace(line, '(InitPlan 1).col1', '$0'), '(InitPlan 2).col1', '$1');
	END LOOP;
END $$;
