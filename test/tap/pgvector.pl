# pgwarp beside pgvector in one database, with either library loaded first.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no pgvector: neither PGVECTOR_SOURCE nor an installed one' if !stage_pgvector();

my $node = PostgreSQL::Test::Cluster->new('company');
$node->init;
configure($node, 'client_min_messages' => 'warning');
# LOAD and session_preload_libraries look along a path of their own.
chomp(my $libraries = `pg_config --pkglibdir`);
$node->append_conf('postgresql.conf', "dynamic_library_path = '$ENV{PGWARP_DESTDIR}$libraries:\$libdir'") if $ENV{PGWARP_DESTDIR};
$node->start;

# pgvector has the names of its types in public.
$node->safe_psql('postgres', 'CREATE EXTENSION vector');
my ($rc, $out, $err) = $node->psql('postgres', 'CREATE EXTENSION pgwarp');
like($err, qr/ERROR:  type "vector" already exists in schema "public"/, 'one schema has no room for both');
like($err, qr/DETAIL:  It belongs to extension "vector"\..*HINT:  Create pgwarp in another schema: .*CREATE EXTENSION pgwarp SCHEMA pgwarp; then CREATE EXTENSION pgwarp_pgvector/s, 'which is said, with a hint');

sub fill
{
	my ($database, $version) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $database") if $database ne 'postgres';
	$node->safe_psql($database, "CREATE EXTENSION IF NOT EXISTS vector; CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp $version;
		CREATE TABLE items (id int, v pgwarp.vector(3), h pgwarp.halfvec(3), theirs public.vector(3));
		INSERT INTO items SELECT i, ARRAY[i, i % 7, -i]::real[], ARRAY[i, i % 7, -i]::real[], ARRAY[i, i % 7, -i]::real[] FROM generate_series(1, 300) i");
	return;
}

# Statements of sessions in which the libraries were loaded in this order.
sub check_session
{
	my ($database, $name, @libraries) = @_;
	my $session = join ' ', map { "LOAD '$_';" } @libraries;
	$session .= ' SET search_path = pgwarp, public; SET enable_seqscan = off; SET enable_sort = off;';
	for my $index ('items_v ON items USING exact (v)', 'items_ip ON items USING ivfadc (v vector_ip_ops) WITH (lists = 1)', 'items_g ON items USING graph (v vector_cosine_ops)',
		'items_h ON items USING exact (h halfvec_l2_ops)', 'items_theirs ON items USING ivfflat (theirs public.vector_l2_ops) WITH (lists = 1)')
	{
		my ($short) = $index =~ /^(\w+)/;
		is($node->psql($database, "$session DROP INDEX IF EXISTS $short; CREATE INDEX $index"), 0, "$name: CREATE INDEX $short");
	}
	is($node->safe_psql($database, "$session SELECT string_agg(id || v::text, ' ') FROM (SELECT id, v FROM items ORDER BY v <-> '[40,5,-39.5]' LIMIT 2) s"), '40[40,5,-40] 39[39,4,-39]', "$name: ORDER BY");
	is($node->safe_psql($database, "$session SELECT string_agg(id || h::text, ' ') FROM (SELECT id, h FROM items ORDER BY h <-> '[40,5,-39.5]' LIMIT 2) s"), '40[40,5,-40] 39[39,4,-39]', "$name: of halves");
	is($node->safe_psql($database, "$session SELECT string_agg(id || theirs::text, ' ') FROM (SELECT id, theirs FROM items ORDER BY theirs OPERATOR(public.<->) '[40,5,-39.5]'::public.vector LIMIT 2) s"), '40[40,5,-40] 39[39,4,-39]', "$name: pgvector's own index");
	like($node->safe_psql($database, "$session EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY v <-> '[1,1,1]' LIMIT 2"), qr/Index Scan using items_v/, "$name: EXPLAIN");
	like($node->safe_psql($database, "$session EXPLAIN (ANALYZE, COSTS OFF) SELECT n.id FROM items i CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> i.v LIMIT 2) n"), qr/KnnBatch.*Index Scan using items_v/s, "$name: a batched join");
	is($node->safe_psql($database, "$session SELECT string_agg(distance::text, ' ') FROM knn_search('items_v', ARRAY['[1,1,-1]'::vector], 2)"), '0 1.7320508075688772', "$name: knn_search");
	is($node->safe_psql($database, "$session SELECT string_agg(distance::text, ' ') FROM knn_search('items_h', 'SELECT h FROM items WHERE id = 1', 2)"), '0 1.7320508075688772', "$name: knn_search by a query");
	is($node->safe_psql($database, "$session SELECT count(*) FROM knn_graph('items_h', 2)"), 600, "$name: knn_graph");
	is($node->safe_psql($database, "$session SELECT count(*) FROM kmeans('items', 'v', 3)"), 3, "$name: kmeans");
	is($node->safe_psql($database, "$session SELECT concat_ws(' ', avg(v), sum(h), v + v, l2_normalize(v), v = v) FROM items WHERE id = 1 GROUP BY v"),
		'[1,1,-1] [1,1,-1] [2,2,-2] [0.57735026,0.57735026,-0.57735026] t', "$name: functions");
	is($node->safe_psql($database, "$session SELECT live_rows FROM pgwarp_check('items_g', true)"), 300, "$name: pgwarp_check");
	my ($code, $stdout, $stderr) = $node->psql($database, "$session CREATE INDEX ON items USING exact (theirs)");
	like($stderr, qr/data type public.vector has no (?:default )?operator class for access method "exact"/, "$name: pgvector's type is not taken for pgwarp's");
	return;
}

my %versions = (postgres => '', old => "VERSION '0.1.0'");
for my $database ('postgres', 'old')
{
	fill($database, $versions{$database});
	check_session($database, "$database, pgvector first", 'vector', 'pgwarp');
	check_session($database, "$database, pgwarp first", 'pgwarp', 'vector');
}
$node->safe_psql('old', 'ALTER EXTENSION pgwarp UPDATE');
check_session('old', 'updated, pgvector first', 'vector', 'pgwarp');

# The bytes of a value are the same for both, and so is what they make of it; pgvector adds up in single precision.
sub check_values
{
	my ($type, $values) = @_;
	my ($text, $equal, $close) = $node->safe_psql('postgres', "CREATE CAST (public.$type AS pgwarp.$type) WITHOUT FUNCTION; CREATE CAST (pgwarp.$type AS public.$type) WITHOUT FUNCTION;
		CREATE TABLE values_$type AS SELECT theirs, theirs::text::pgwarp.$type AS ours FROM ($values) s (theirs);
		SELECT bool_and(theirs::pgwarp.${type}::text = theirs::text AND ours::public.${type}::text = theirs::text AND pgwarp.${type}_send(theirs::pgwarp.$type) = public.${type}_send(theirs)) FROM values_$type;
		SELECT bool_and(pgwarp.${type}_cmp(a.ours, b.ours) = public.${type}_cmp(a.theirs, b.theirs)) FROM values_$type a, values_$type b;
		SELECT bool_and(coalesce(abs(o - t) <= 1e-5 * greatest(abs(o), 1), false)) FROM values_$type a, values_$type b,
			LATERAL (VALUES (a.ours OPERATOR(pgwarp.<->) b.ours, a.theirs OPERATOR(public.<->) b.theirs), (a.ours OPERATOR(pgwarp.<#>) b.ours, a.theirs OPERATOR(public.<#>) b.theirs),
				(nullif(a.ours OPERATOR(pgwarp.<=>) b.ours, 'NaN'), nullif(a.theirs OPERATOR(public.<=>) b.theirs, 'NaN')), (a.ours OPERATOR(pgwarp.<+>) b.ours, a.theirs OPERATOR(public.<+>) b.theirs)) d (o, t)
			WHERE o IS NOT NULL OR t IS NOT NULL") =~ /^(.*)\n(.*)\n(.*)$/;
	is($text, 't', "$type: the same bytes");
	is($equal, 't', "$type: the same order");
	is($close, 't', "$type: the same distances");
	return;
}
my $elements = "(i * 7919 + d * d * 31) % 1009 / 64.0 - 8";
check_values($_, "SELECT array_agg($elements ORDER BY d)::public.${_} FROM generate_series(0, 49) i, generate_series(1, 20) d GROUP BY i") for 'vector', 'halfvec';
check_values('sparsevec', "SELECT ('{' || coalesce(string_agg(d * 50 || ':' || $elements, ',') FILTER (WHERE (i * 13 + d * 7) % 20 < i % 10), '') || '}/1000')::public.sparsevec FROM generate_series(0, 49) i, generate_series(1, 20) d GROUP BY i");

# Restored by sessions that have pgvector first.
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-F', 'custom', '-f', $dump, $node->connstr('postgres') ], 'pg_dump');
for my $first ('vector', 'pgwarp')
{
	$node->safe_psql('postgres', "CREATE DATABASE after_$first; ALTER DATABASE after_$first SET session_preload_libraries = $first");
	$node->command_ok([ 'pg_restore', '-e', '-j', '2', '-d', $node->connstr("after_$first"), $dump ], "pg_restore -j2, $first first");
	is($node->safe_psql("after_$first", 'SET search_path = pgwarp, public; SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> \'[40,5,-39.5]\' LIMIT 1'), 40, "$first first: the restored index answers");
}
$node->stop;
done_testing();
