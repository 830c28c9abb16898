# Indexes on the types of pgvector (extension pgwarp_pgvector): they return rows in the order of pgvector's own distances.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no pgvector: neither PGVECTOR_SOURCE nor an installed one' if !stage_pgvector();

my $node = PostgreSQL::Test::Cluster->new('types');
$node->init;
configure($node, 'client_min_messages' => 'warning');
$node->start;

sub run_sql { return $node->safe_psql('postgres', "SET search_path = public, pgwarp; $_[0]") }

run_sql('CREATE EXTENSION vector');
plan skip_all => 'halfvec came with pgvector 0.7.0' if run_sql("SELECT to_regtype('public.halfvec') IS NULL") eq 't';
run_sql('CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp; CREATE EXTENSION pgwarp_pgvector');

my %operators = (vector_l2_ops => '<->', vector_ip_ops => '<#>', vector_cosine_ops => '<=>', vector_l1_ops => '<+>');
my @queries = (7, 40, 333, 1200);

# Rows around some centres, so near each other that float32 changes their order; and a few that are not.
run_sql(q{
	SELECT setseed(0.25);
	CREATE TABLE items (id int, kind int, v public.vector(24), h public.halfvec(24));
	INSERT INTO items SELECT i, i % 5, ARRAY(
			SELECT (0.3 + c.centre[d] + random() * CASE WHEN i % 9 = 0 THEN 0.5 ELSE 3e-7 END)::real FROM generate_series(1, 24) d)
		FROM generate_series(1, 1500) i
			JOIN (SELECT n, ARRAY(SELECT random() + n * 0 FROM generate_series(1, 24)) centre FROM generate_series(0, 5) n) c ON c.n = i % 6;
	UPDATE items SET h = v::public.halfvec(24)});

# The distances of the nearest rows, as pgvector computes them, by a plan of this kind.
sub nearest
{
	my ($column, $operator, $query, $limit, $sequential) = @_;
	my $settings = $sequential ? 'SET enable_indexscan = off' : 'SET enable_seqscan = off; SET enable_sort = off';
	return run_sql("$settings; SELECT array_agg(d) FROM (SELECT $column $operator (SELECT $column FROM items WHERE id = $query) AS d
		FROM items ORDER BY $column $operator (SELECT $column FROM items WHERE id = $query) $limit) s");
}

# Whether the index's answers equal those of a sequential scan.
sub check_exact
{
	my ($name) = @_;
	for my $class (sort keys %operators)
	{
		for my $column ('v', 'h')
		{
			my $index_class = $column eq 'h' ? $class =~ s/vector/halfvec/r : $class;
			run_sql("DROP INDEX IF EXISTS items_index; CREATE INDEX items_index ON items USING exact ($column public.$index_class)") if !$name;
			for my $query (@queries)
			{
				for my $limit ('LIMIT 1', 'LIMIT 10', 'LIMIT 300', '')
				{
					is(nearest($column, $operators{$class}, $query, $limit, 0), nearest($column, $operators{$class}, $query, $limit, 1),
						"$index_class$name: query $query $limit");
				}
			}
		}
	}
	return;
}
check_exact('');

# An index that takes the operator for a canonical one has another order: float32 decides in the tests above.
run_sql(q{CREATE OPERATOR CLASS canonical_ops FOR TYPE public.vector USING exact AS OPERATOR 1 <=> (public.vector, public.vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal), FUNCTION 2 pgwarp_element_float32(internal);
	DROP INDEX items_index; CREATE INDEX items_index ON items USING exact (v canonical_ops)});
isnt(nearest('v', '<=>', 7, 'LIMIT 300', 0), nearest('v', '<=>', 7, 'LIMIT 300', 1), 'rows are nearer than float32 tells apart');
run_sql('DROP OPERATOR CLASS canonical_ops USING exact CASCADE');

# Norms beyond those of the build, and rows beyond what float32 can compute.
for my $class (sort keys %operators)
{
	my $operator = $operators{$class};
	run_sql(qq{DROP INDEX IF EXISTS items_index; DELETE FROM items WHERE id > 1500;
		CREATE INDEX items_index ON items USING exact (v public.$class);
		INSERT INTO items SELECT i, 0, ARRAY(SELECT i + d * 1e-3 + random() * 1e-2 FROM generate_series(1, 24) d)::real[] FROM generate_series(1501, 1700) i;
		INSERT INTO items SELECT i, 0, array_fill((10.0 ^ (i - 1800))::real, ARRAY[24]) FROM generate_series(1765, 1837) i;
		INSERT INTO items VALUES (1900, 0, array_fill(0, ARRAY[24])), (1901, 0, NULL)});
	for my $query (7, 1600, 1700, 1770, 1790, 1820, 1836)
	{
		for my $limit ('LIMIT 10', 'LIMIT 100', '')
		{
			is(nearest('v', $operator, $query, $limit, 0), nearest('v', $operator, $query, $limit, 1), "$class, of far norms: query $query $limit");
		}
	}
	run_sql('DELETE FROM items WHERE id % 7 = 3 AND id > 1500; VACUUM items');
	run_sql("CALL pgwarp_merge('items_index')");
	is(nearest('v', $operator, 1600, 'LIMIT 100', 0), nearest('v', $operator, 1600, 'LIMIT 100', 1), "$class: after a merge");
	$node->restart if $class eq 'vector_ip_ops';
	is(nearest('v', $operator, 1600, '', 0), nearest('v', $operator, 1600, '', 1), "$class: and later");
	is(run_sql("SELECT live_rows FROM pgwarp_check('items_index', true)"), run_sql('SELECT count(*) FROM items'), "$class: pgwarp_check");
}
run_sql('DELETE FROM items WHERE id > 1500; VACUUM items');

# A table that a parallel build reads.
run_sql(q{CREATE TABLE wide AS SELECT * FROM items CROSS JOIN generate_series(1, 20); ALTER TABLE wide ALTER v TYPE public.vector(24);
	SET max_parallel_maintenance_workers = 2; SET min_parallel_table_scan_size = 0; CREATE INDEX wide_ip ON wide USING exact (v public.vector_ip_ops)});
is(run_sql("SET enable_seqscan = off; SET enable_sort = off; SELECT array_agg(d) FROM (SELECT v <#> (SELECT v FROM items WHERE id = 7) d FROM wide ORDER BY v <#> (SELECT v FROM items WHERE id = 7) LIMIT 200) s"),
	run_sql("SET enable_indexscan = off; SELECT array_agg(d) FROM (SELECT v <#> (SELECT v FROM items WHERE id = 7) d FROM wide ORDER BY v <#> (SELECT v FROM items WHERE id = 7) LIMIT 200) s"), 'a parallel build');
run_sql('DROP TABLE wide');

# Approximate methods: all rows in order, and few missing where rows are not so near each other.
run_sql('CREATE TABLE others AS SELECT id, ARRAY(SELECT random() + id * 0 FROM generate_series(1, 24))::public.vector(24) AS v FROM items; ALTER TABLE others ADD h public.halfvec(24); UPDATE others SET h = v::public.halfvec');
for my $method (split /\n/, run_sql("SELECT DISTINCT a.amname FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod JOIN pg_namespace n ON n.oid = o.opcnamespace
	WHERE o.opcname IN ('vector_l2_ops', 'halfvec_l2_ops') AND n.nspname = 'public' AND a.amhandler::text LIKE '%pgwarp%' AND a.amname <> 'exact' ORDER BY 1"))
{
	for my $class (split /\n/, run_sql("SELECT o.opcname FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod JOIN pg_namespace n ON n.oid = o.opcnamespace
		WHERE n.nspname = 'public' AND a.amname = '$method' AND o.opcintype IN ('public.vector'::regtype, 'public.halfvec'::regtype) ORDER BY 1"))
	{
		my $column = $class =~ /^half/ ? 'h' : 'v';
		my $operator = $operators{ $class =~ s/halfvec/vector/r };
		run_sql("DROP INDEX IF EXISTS items_index; CREATE INDEX items_index ON items USING $method ($column public.$class)");
		my $sorted = "SELECT count(*) || ' ' || count(*) FILTER (WHERE d < before) FROM (SELECT d, lag(d) OVER () AS before FROM (SELECT $column $operator (SELECT $column FROM items WHERE id = 40) AS d
			FROM items ORDER BY $column $operator (SELECT $column FROM items WHERE id = 40) OFFSET 0) s) s";
		is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $sorted"), '1500 0', "$method, $class: all rows, in order");
		run_sql("DROP INDEX IF EXISTS others_index; CREATE INDEX others_index ON others USING $method ($column public.$class)");
		cmp_ok(run_sql("SELECT pgwarp_recall('others_index', 10, 100)"), '>', 0.85, "$method, $class: recall");
	}
}
run_sql('DROP TABLE others');

# Joins, filters, partitions, and functions.
run_sql('DROP INDEX items_index; CREATE INDEX items_index ON items USING exact (v public.vector_l2_ops, kind) INCLUDE (id)');
my $join = 'SELECT i.id, n.d FROM items i CROSS JOIN LATERAL (SELECT v <-> i.v AS d FROM items ORDER BY v <-> i.v LIMIT 20) n WHERE i.id < 60';
like(run_sql("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) $join"), qr/KnnBatch.*Index.*Scan using items_index/s, 'KnnBatch');
is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $join"), run_sql("SET enable_indexscan = off; SELECT i.id, n.d FROM items i CROSS JOIN LATERAL (SELECT v <-> i.v AS d FROM items ORDER BY v <-> i.v LIMIT 20) n WHERE i.id < 60"), 'its answers');
for my $filter ('kind = 3', 'kind IN (1, 2)', 'id % 3 = 1', 'id % 40 = 1', '(v <-> $q) < 0.4', 'id % 3 = 1 AND (v <-> $q) <= 1.2')
{
	my $q = "'" . run_sql('SELECT v FROM items WHERE id = 333') . "'::public.vector";
	my $where = $filter =~ s/\$q/$q/r;
	my $query = "SELECT array_agg(d) FROM (SELECT v <-> $q AS d FROM items WHERE $where ORDER BY v <-> $q LIMIT 50) s";
	is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $query"), run_sql("SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $query"), "rows where $filter");
}
my $only = 'SELECT array_agg(d) FROM (SELECT v <-> (SELECT v FROM items WHERE kind = 0 ORDER BY id LIMIT 1) AS d FROM items ORDER BY 1 LIMIT 50) s';
is(run_sql("VACUUM items; SET enable_seqscan = off; SET enable_sort = off; $only"), run_sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; $only"), 'with included columns, distances are pgvector\'s');
like(run_sql(q{SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]' LIMIT 5}), qr/Index Only Scan/, 'which an index-only scan need not return');
is(run_sql("SELECT count(*) FROM knn_search('items_index', ARRAY(SELECT v FROM items WHERE id < 4 ORDER BY id), 5) WHERE distance < 1"), 15, 'knn_search: vectors');
is(run_sql("SELECT count(*) FROM knn_search('items_index', ARRAY(SELECT h FROM items WHERE id < 4 ORDER BY id), 5)"), 15, 'knn_search: halfvecs');
is(run_sql("SELECT string_agg(distance::text, ' ') FROM knn_search('items_index', 'SELECT v FROM items WHERE id < 3', 1)"), '0 0', 'knn_search: a query');
is(run_sql("SELECT count(*) FROM knn_graph('items_index', 3)"), 4500, 'knn_graph');
is(run_sql("SELECT pgwarp_recall('items_index', 10, 50)"), 1, 'pgwarp_recall');
is(run_sql("SELECT count(DISTINCT nearest_centroid(v, c)) || ' ' || count(DISTINCT nearest_centroid(v, c::public.vector[])) FROM items, (SELECT array_agg(centroid ORDER BY id) c FROM kmeans('items', 'v', 4)) s"), '4 4', 'kmeans and nearest_centroid');
run_sql('CREATE INDEX items_hashes ON items USING matchcount (v public.vector_cosine_ops)');
is(run_sql("SELECT count(*) FROM matchcount_estimate('items_hashes', (SELECT v FROM items WHERE id = 7), 3)"), 3, 'matchcount_estimate');
run_sql('DROP INDEX items_hashes');
for my $operator ('<->', '<#>', '<=>', '<+>')
{
	my ($class) = grep { $operators{$_} eq $operator } keys %operators;
	run_sql("DROP TABLE IF EXISTS parts; CREATE TABLE parts (LIKE items) PARTITION BY HASH (id);
		CREATE TABLE part0 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 0); CREATE TABLE part1 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
		CREATE TABLE part2 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 2); INSERT INTO parts SELECT * FROM items; CREATE INDEX ON parts USING exact (v public.$class)");
	my $q = "'" . run_sql('SELECT v FROM items WHERE id = 40') . "'::public.vector";
	my $query = "SELECT array_agg(d) FROM (SELECT v $operator $q AS d FROM parts ORDER BY v $operator $q LIMIT 60) s";
	like(run_sql("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) $query"), qr/KnnPartitions/, "$operator: KnnPartitions");
	is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $query"), run_sql("SET enable_indexscan = off; $query"), "$operator: rows of partitions");
}

# Distances that single precision cannot express: NaN sorts after infinity, and before all where the order is reversed.
run_sql('DROP TABLE IF EXISTS huge; CREATE TABLE huge (v public.vector(16), id serial)');
run_sql('INSERT INTO huge SELECT (SELECT array_agg((CASE i % 7 WHEN 0 THEN 3e38 * (1 - 2 * (j % 2)) WHEN 1 THEN -3e38 WHEN 2 THEN 3e38 WHEN 3 THEN 1e-30 WHEN 4 THEN 0 ELSE i % 5 + j END)::real ORDER BY j) FROM generate_series(1, 16) j)::public.vector FROM generate_series(1, 70) i; INSERT INTO huge VALUES (NULL)');
run_sql('CREATE TABLE huge_parts (LIKE huge) PARTITION BY HASH (id); CREATE TABLE huge_part0 PARTITION OF huge_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE huge_part1 PARTITION OF huge_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1); INSERT INTO huge_parts SELECT * FROM huge');
for my $index (map { ([ $_, 'exact' ], /ip|cosine/ ? [ $_, 'graph' ] : ()) } sort keys %operators)
{
	my ($class, $method) = @$index;
	run_sql("DROP INDEX IF EXISTS huge_v, huge_parts_v; CREATE INDEX huge_v ON huge USING $method (v public.$class); CREATE INDEX huge_parts_v ON huge_parts USING $method (v public.$class)");
	for my $query ('array_fill(3e38::real, ARRAY[16])', 'array_fill(1::real, ARRAY[16])')
	{
		my $distance = "(v $operators{$class} (" . run_sql("SELECT quote_literal(${query}::public.vector)") . '::public.vector))';
		my $check = sub {
			my ($order, $rows) = @_;
			my $value = $order =~ s/ DESC.*//r;
			my $sorted = "SELECT string_agg(d::text, ' ') FROM (SELECT $value AS d FROM $rows) s";
			is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $sorted"), run_sql("SET enable_indexscan = off; $sorted"), "overflow, $method: $rows");
		};
		# The conditions cut off nothing, some rows, and rows that have no NaN.
		my $order = "1 - $distance DESC";
		$check->($order, $_) for "huge_parts ORDER BY $order LIMIT 30", "huge WHERE id % 3 > 0 ORDER BY $order LIMIT 20", "huge WHERE 1 - $distance > 0.5 ORDER BY $order LIMIT 40";
		like(run_sql("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) SELECT id FROM huge ORDER BY $order LIMIT 3"), qr/KnnOrder.*Index Scan using huge_v/s, "$class serves a reversed order");
		next if $method ne 'exact';
		$check->($_, "huge ORDER BY $_") for $distance, "-$distance DESC", $order, "$order NULLS LAST";
		$check->($distance, "huge WHERE 1 - $distance > 0.5 ORDER BY $distance");
	}
	my $join = "SELECT string_agg(q.id || ':' || n.d, ' ' ORDER BY q.id, n.d) FROM huge q CROSS JOIN LATERAL (SELECT 1 - (i.v $operators{$class} q.v) AS d FROM huge i ORDER BY 1 DESC NULLS LAST LIMIT 12) n WHERE q.id < 15";
	is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $join"), run_sql("SET enable_indexscan = off; $join"), "overflow, $method: a join by $operators{$class}") if $class =~ /ip|cosine/;
}
run_sql('DROP INDEX items_index; CREATE INDEX items_index ON items USING exact (v public.vector_cosine_ops)');
my $similar = q{SELECT string_agg(d::text, ' ') FROM (SELECT 1 - (v <=> (SELECT v FROM items WHERE id = 333)) AS d FROM items ORDER BY 1 DESC NULLS LAST LIMIT 20) s};
is(run_sql("SET enable_seqscan = off; SET enable_sort = off; $similar"), run_sql("SET enable_indexscan = off; $similar"), 'similarities in descending order');
like(run_sql("SET enable_seqscan = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT id FROM items ORDER BY 1 - (v <=> (SELECT v FROM items WHERE id = 333)) DESC NULLS LAST LIMIT 20"), qr/KnnOrder.*Index Scan using items_index on items \(actual rows=20[ .]/s, 'of which the scan reads no more than the plan');

# Bits: pgvector's operators on PostgreSQL's own type.
run_sql("CREATE TABLE words AS SELECT i AS id, (i * 7919 % 65536)::bit(16) AS b FROM generate_series(1, 400) i; CREATE INDEX words_b ON words USING graph (b public.bit_hamming_ops)");
is(run_sql("SET enable_seqscan = off; SET enable_sort = off; SELECT array_agg(d) FROM (SELECT b OPERATOR(public.<~>) B'1010101010101010' AS d FROM words ORDER BY b OPERATOR(public.<~>) B'1010101010101010' LIMIT 20) s"),
	run_sql("SET enable_indexscan = off; SELECT array_agg(d) FROM (SELECT b OPERATOR(public.<~>) B'1010101010101010' AS d FROM words ORDER BY b OPERATOR(public.<~>) B'1010101010101010' LIMIT 20) s"), 'bits');

$node->stop;
done_testing();
