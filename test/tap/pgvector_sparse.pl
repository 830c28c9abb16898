# Indexes on pgvector's own sparsevec (extension pgwarp_pgvector), by each method that has them: rows come in the order of
# pgvector's distances, which are added up in single precision.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no pgvector: neither PGVECTOR_SOURCE nor an installed one' if !stage_pgvector();

my $node = PostgreSQL::Test::Cluster->new('sparse');
$node->init;
configure($node, 'client_min_messages' => 'warning');
$node->start;

sub run_sql { return $node->safe_psql('postgres', "SET search_path = public, pgwarp; $_[0]") }

run_sql('CREATE EXTENSION vector');
plan skip_all => 'sparsevec came with pgvector 0.7.0' if run_sql("SELECT to_regtype('public.sparsevec') IS NULL") eq 't';
run_sql('CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp; CREATE EXTENSION pgwarp_pgvector');

my %operators = (sparsevec_l2_ops => '<->', sparsevec_ip_ops => '<#>', sparsevec_cosine_ops => '<=>', sparsevec_l1_ops => '<+>');
my @methods = split /\n/, run_sql("SELECT DISTINCT a.amname FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod JOIN pg_namespace n ON n.oid = o.opcnamespace
	WHERE o.opcname = 'sparsevec_l2_ops' AND n.nspname = 'public' AND a.amhandler::text LIKE '%pgwarp%' ORDER BY 1");
is("@methods", 'exact matchcount', 'the methods');
is(run_sql("SELECT count(*) FILTER (WHERE o.opcdefault) || ' ' || count(*) || ' ' || bool_and(amvalidate(o.oid)) FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod
	WHERE o.opcintype = 'public.sparsevec'::regtype AND a.amhandler::text LIKE '%pgwarp%'"), '2 8 true', 'their operator classes');

# Rows around some centres, so near each other that float32 changes their order; and a few that are not. The distances of a
# query's nearest rows by pgvector's operator, by an index or by a sort.
run_sql(q{
	SELECT setseed(0.25);
	CREATE TABLE items (id int, kind int, v public.sparsevec(600));
	INSERT INTO items SELECT i, i % 5, ('{' || string_agg(place || ':' || (0.3 + c.values[place] + random() * CASE WHEN i % 9 = 0 THEN 0.5 ELSE 3e-7 END)::real, ',' ORDER BY place) || '}/600')::public.sparsevec
		FROM generate_series(1, 1200) i
			JOIN (SELECT n, ARRAY(SELECT random() + n * 0 FROM generate_series(1, 600)) AS values FROM generate_series(0, 5) n) c ON c.n = i % 6,
			generate_series(1 + i % 6, 600, 5 + i % 3) place
		GROUP BY i;
	CREATE TABLE queries (id int, q public.sparsevec);
	INSERT INTO queries SELECT id, v FROM items WHERE id IN (7, 40, 333, 1200);
	INSERT INTO queries VALUES (-1, '{}/600'), (-2, '{600:1}/600'), (-3, '{1:-1,2:-2,3:1e-30}/600'), (-4, NULL);
	CREATE FUNCTION nearest(q public.sparsevec, relation text, operator text, row_limit text, condition text, by_index boolean) RETURNS float8[] AS $$
	DECLARE
		found float8[];
	BEGIN
		PERFORM set_config(name, (by_index = (name = 'enable_indexscan'))::text, true) FROM unnest(ARRAY['enable_indexscan', 'enable_seqscan', 'enable_sort', 'enable_bitmapscan']) name;
		EXECUTE format('SELECT array_agg(d) FROM (SELECT v OPERATOR(public.%1$s) $1 AS d FROM %2$I WHERE %3$s ORDER BY v OPERATOR(public.%1$s) $1 LIMIT %4$s) n', operator, relation, condition, row_limit) INTO found USING q;
		RETURN found;
	END
	$$ LANGUAGE plpgsql;
	CREATE FUNCTION compared(relation text, operator text, condition text, OUT answers bigint, OUT wrong bigint) AS $$
		SELECT count(*), count(*) FILTER (WHERE nearest(q, relation, operator, l, condition, true) IS DISTINCT FROM nearest(q, relation, operator, l, condition, false))
			FROM queries, unnest(ARRAY['1', '10', '300', 'ALL']) l
	$$ LANGUAGE sql});

# Whether the index's answers equal those of a sequential scan.
sub check_answers
{
	my ($name, $class, %other) = @_;
	my $table = $other{table} // 'items';
	my $condition = $other{condition} // 'true';
	my ($answers, $wrong) = split /\|/, run_sql("SELECT answers, wrong FROM compared('$table', '$operators{$class}', \$c\$$condition\$c\$)");
	is($wrong, 0, "$name, $class: $answers answers where $condition");
	return;
}

for my $method (@methods)
{
	for my $class (sort keys %operators)
	{
		run_sql("DROP INDEX IF EXISTS items_index; CREATE INDEX items_index ON items USING $method (v public.$class)");
		like(run_sql("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v $operators{$class} '{1:1}/600' LIMIT 5"), qr/Index Scan using items_index/, "$method, $class: EXPLAIN");
		check_answers($method, $class);
	}
}

# An index that takes the operator for a canonical one has another order: float32 decides in the tests above.
run_sql(q{CREATE OPERATOR CLASS canonical_ops FOR TYPE public.sparsevec USING exact AS OPERATOR 1 <=> (public.sparsevec, public.sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal), FUNCTION 2 pgwarp_element_sparse(internal);
	DROP INDEX items_index; CREATE INDEX items_index ON items USING exact (v canonical_ops)});
isnt(run_sql("SELECT wrong FROM compared('items', '<=>', 'true')"), 0, 'rows are nearer than float32 tells apart');
run_sql('DROP OPERATOR CLASS canonical_ops USING exact CASCADE');

# Rows of norms beyond those of the build, of what float32 cannot compute, without elements, and NULL; deletes, merges, a restart.
run_sql(q{INSERT INTO queries SELECT i, ('{3:1e' || i || ',9:1e' || i || '}/600')::public.sparsevec FROM unnest(ARRAY[-40, -25, -10, 15, 25, 38]) i});
for my $method (@methods)
{
	for my $class (sort keys %operators)
	{
		run_sql(qq{DROP INDEX IF EXISTS items_index; DELETE FROM items WHERE id > 1200; VACUUM items;
			CREATE INDEX items_index ON items USING $method (v public.$class, kind);
			INSERT INTO items SELECT i, i % 5, ('{' || (SELECT string_agg(p || ':' || i + p * 1e-3 + random() * 1e-2, ',') FROM generate_series(1, 24) p) || '}/600')::public.sparsevec FROM generate_series(1201, 1300) i;
			INSERT INTO items SELECT i, i % 5, ('{3:1e' || i - 1400 || ',9:1e' || i - 1400 || ',70:-1e' || i - 1400 || '}/600')::public.sparsevec FROM generate_series(1358, 1438) i;
			INSERT INTO items VALUES (1500, 0, '{}/600'), (1501, 0, NULL), (1502, 3, '{}/600')});
		check_answers("$method, inserted", $class);
		run_sql('DELETE FROM items WHERE id % 7 = 3 AND id > 1200; VACUUM items');
		run_sql("CALL pgwarp_merge('items_index')");
		check_answers("$method, merged", $class);
		$node->restart if $class eq 'sparsevec_ip_ops';
		check_answers("$method, later", $class, condition => 'kind = 3');
		check_answers("$method, later", $class, condition => "v OPERATOR(public.$operators{$class}) \$1 < 3 AND kind IN (0, 3)");
		is(run_sql("SELECT live_rows FROM pgwarp_check('items_index', true)"), run_sql('SELECT count(*) FROM items'), "$method, $class: pgwarp_check");
	}
}

# Many dimensions, and as many elements as a row may have.
run_sql(q{DROP INDEX items_index; CREATE TABLE wide (id int, v public.sparsevec(1000000000));
	INSERT INTO wide SELECT n, ('{' || (SELECT string_agg(i * 60000 + n || ':' || (0.1 + (i * 7919 + n % 3) % 1009 / 64.0), ',') FROM generate_series(1, CASE WHEN n % 4 = 0 THEN 16000 ELSE 40 END) i) || '}/1000000000')::public.sparsevec FROM generate_series(1, 12) n;
	INSERT INTO wide SELECT id + 100, v FROM wide;
	CREATE TABLE others AS SELECT * FROM queries; DELETE FROM queries; INSERT INTO queries SELECT id, v FROM wide WHERE id IN (3, 4, 8)});
for my $method (@methods)
{
	for my $class (sort keys %operators)
	{
		run_sql("DROP INDEX IF EXISTS wide_v; CREATE INDEX wide_v ON wide USING $method (v public.$class)");
		check_answers("$method, many elements", $class, table => 'wide');
	}
}
run_sql('DELETE FROM queries; INSERT INTO queries SELECT * FROM others');

# Joins, partitions, rows within a bound, advice.
for my $method (@methods)
{
	run_sql("CREATE INDEX items_index ON items USING $method (v public.sparsevec_l2_ops)");
	my $join = 'SELECT i.id, n.d FROM items i CROSS JOIN LATERAL (SELECT v <-> i.v AS d FROM items ORDER BY v <-> i.v LIMIT 20) n WHERE i.id < 60';
	like(run_sql("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) $join"), qr/KnnBatch.*Index.*Scan using items_index/s, "$method: KnnBatch");
	is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $join"), run_sql("SET enable_indexscan = off; $join"), "$method: its answers");
	my $q = "'" . run_sql('SELECT v FROM items WHERE id = 333') . "'::public.sparsevec";
	my $bound = run_sql("SELECT max(d) FROM (SELECT v <-> $q AS d FROM items ORDER BY 1 LIMIT 40) s");
	my $within = "SELECT count(*) FROM items WHERE v <-> $q <= $bound";
	is(run_sql("SET enable_seqscan = off; $within"), run_sql("SET enable_indexscan = off; $within"), "$method: rows within a bound that is the distance of one");
	for my $class (sort keys %operators)
	{
		run_sql("DROP TABLE IF EXISTS parts; CREATE TABLE parts (LIKE items) PARTITION BY HASH (id);
			CREATE TABLE part0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE part1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
			INSERT INTO parts SELECT * FROM items; CREATE INDEX ON parts USING $method (v public.$class)");
		my $query = "SELECT array_agg(d) FROM (SELECT v $operators{$class} $q AS d FROM parts ORDER BY v $operators{$class} $q LIMIT 60) s";
		like(run_sql("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) $query"), qr/KnnPartitions/, "$method, $class: KnnPartitions");
		is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $query"), run_sql("SET enable_indexscan = off; $query"), "$method, $class: rows of partitions");
	}
	run_sql('DROP INDEX items_index');
}
is(run_sql("SELECT string_agg(method || ' ' || operator_class || ' ' || is_exact, ', ' ORDER BY method) FROM pgwarp_advise('items', 'v', '<#>')"), 'exact sparsevec_ip_ops true, matchcount sparsevec_ip_ops true', 'pgwarp_advise');

# Distances that single precision cannot express: NaN sorts after infinity, and before all where the order is reversed.
run_sql(q{CREATE TABLE huge AS SELECT ('{' || (SELECT string_agg(j || ':' || (CASE i % 6 WHEN 0 THEN 3e38 * (1 - 2 * (j % 2)) WHEN 1 THEN -3e38 WHEN 2 THEN 3e38 WHEN 3 THEN 1e-30 ELSE i % 5 + j END)::real, ',') FROM generate_series(1, 16) j) || '}/40')::public.sparsevec(40) AS v
	FROM generate_series(1, 60) i; INSERT INTO huge VALUES (NULL), ('{}/40')});
for my $method (@methods)
{
	for my $class (sort keys %operators)
	{
		run_sql("DROP INDEX IF EXISTS huge_v; CREATE INDEX huge_v ON huge USING $method (v public.$class)");
		for my $query ('array_fill(3e38::real, ARRAY[40])', 'array_fill(1::real, ARRAY[40])')
		{
			my $distance = "(v $operators{$class} (" . run_sql("SELECT quote_literal(${query}::public.sparsevec)") . '::public.sparsevec))';
			for my $order ($distance, "-$distance DESC", "1 - $distance DESC NULLS LAST")
			{
				my $value = $order =~ s/ DESC.*//r;
				my $sorted = "SELECT string_agg(d::text, ' ') FROM (SELECT $value AS d FROM huge ORDER BY $order) s";
				is(run_sql("SET enable_seqscan = off; $sorted"), run_sql("SET enable_indexscan = off; $sorted"), "$method, overflow: ORDER BY " . $order =~ s/\{.*\}/.../r);
			}
		}
	}
}
$node->stop;
done_testing();
