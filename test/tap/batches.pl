# Searches of many sessions as batches, their figures in pgwarp_status, and the waits between sessions.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('batches', max_connections => 40, jit => 'off', enable_seqscan => 'off');
load_grid($node, 'items', 100000);
load_grid($node, 'others', 70000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v); CREATE INDEX others_v ON others USING exact (v); CREATE TABLE queries AS SELECT v FROM items WHERE id <= 3000');

sub status
{
	my ($index, $what) = @_;
	return $node->safe_psql('postgres', "SELECT $what FROM pgwarp_status WHERE index = '$index'::regclass");
}

# alone
my $single = "SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 77) LIMIT 3";
$node->safe_psql('postgres', $single) for 1 .. 3;
is(status('items_v', 'searches, batches, mean_batch_width, max_batch_width'), '3|3|1|1', 'one session: every search is a batch');
is(status('items_v', 'mean_device_ms > 0 AND mean_device_ms = mean_search_ms AND mean_queue_ms > 0 AND mean_answer_ms >= mean_device_ms'), 't', 'its times');

# many sessions at once
my $script = $node->basedir . '/single.sql';
append_to_file($script, "\\set id random(1, 100000)\nSELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = :id) LIMIT 3;\n");
$node->command_ok([ 'pgbench', '-n', '-c', '16', '-j', '1', '-t', '60', '-M', 'prepared', '-f', $script, 'postgres' ], '16 clients');
is(status('items_v', 'searches'), '963', 'each query is counted');
is(status('items_v', 'max_batch_width BETWEEN 2 AND 16 AND mean_batch_width > 1 AND mean_batch_width <= max_batch_width'), 't', 'their searches share batches');
is(status('items_v', 'abs(mean_batch_width * batches - searches) < 0.01 AND mean_search_ms < mean_device_ms'), 't', 'widths add up');
is(status('items_v', 'mean_answer_ms >= mean_device_ms AND mean_answer_ms >= mean_queue_ms'), 't', 'an answer takes as long as its batch, and the queue');

# the same by other methods and of halfvec: the answers in a batch are those of single searches
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET pgwarp.ivfadc_probes = 40; ALTER DATABASE postgres SET pgwarp.graph_ef_search = 400; ALTER DATABASE postgres SET pgwarp.pqtree_candidates = 2000');
for my $kind ([ 'ivfadc', 'vector' ], [ 'pqtree', 'vector' ], [ 'graph', 'vector' ], [ 'exact', 'halfvec' ], [ 'ivfadc', 'halfvec' ], [ 'pqtree', 'halfvec' ], [ 'graph', 'halfvec' ])
{
	my ($method, $type) = @$kind;
	my $name = "${type}_$method";
	$node->safe_psql('postgres', qq{
		CREATE TABLE $name AS SELECT id, v::$type(16) FROM items WHERE id <= 20000;
		CREATE INDEX ${name}_v ON $name USING $method (v);
		CREATE TABLE ${name}_found (id int, ids int[])});
	my $find = "SELECT array_agg(n.id) FROM (SELECT id FROM $name ORDER BY v <-> (SELECT v FROM $name WHERE id = %s) LIMIT 50) n";
	my $alone = $node->safe_psql('postgres', 'SET pgwarp.batch_size = 1; SELECT string_agg(id || (' . sprintf($find, 'q.id') . ")::text, ' ' ORDER BY id) FROM generate_series(1, 200) q (id)");
	my $before = status("${name}_v", 'searches');
	my $path = $node->basedir . "/$name.sql";
	append_to_file($path, "\\set id random(1, 200)\nINSERT INTO ${name}_found VALUES (:id, (" . sprintf($find, ':id') . "));\n");
	$node->command_ok([ 'pgbench', '-n', '-c', '16', '-j', '1', '-t', '60', '-f', $path, 'postgres' ], "$name: 16 clients");
	is(status("${name}_v", 'searches') - $before, 960, "$name: each query is counted");
	is(status("${name}_v", 'max_batch_width BETWEEN 2 AND 16'), 't', "$name: their searches share batches");
	my %alone = map { /^(\d+)(\{.*\})$/ } split / /, $alone;
	my @found = split /\n/, $node->safe_psql('postgres', "SELECT id || ids::text FROM ${name}_found");
	# GPUs may differ in few of the approximate answers.
	my $differ = grep { /^(\d+)(\{.*\})$/ && $2 ne $alone{$1} } @found;
	cmp_ok($differ, '<=', $method ne 'exact' && ($ENV{PGWARP_DEVICE} // '') eq 'cuda' ? 30 : 0, "$name: they find what one alone finds");
}

# one call
$node->safe_psql('postgres', q{SELECT count(*) FROM knn_search('others_v', 'SELECT v FROM queries', 3)});
is(status('others_v', 'searches'), '3000', 'the queries of a call');
is(status('others_v', 'batches <= 3000 / 64 + 1 AND max_batch_width BETWEEN 64 AND 3000'), 't', 'go as wide batches');

# single queries beside a session that asks for as much as it can
$node->safe_psql('postgres', q{
	CREATE FUNCTION latencies(rel text, OUT p99 float8) LANGUAGE plpgsql AS $$
	DECLARE begun timestamptz; took float8[];
	BEGIN
		FOR i IN 1 .. 100 LOOP
			begun := clock_timestamp();
			EXECUTE format('SELECT id FROM %I ORDER BY v <-> $1 LIMIT 3', rel) USING (SELECT v FROM queries LIMIT 1);
			took := took || 1000 * extract(epoch FROM clock_timestamp() - begun)::float8;
		END LOOP;
		SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY t) INTO p99 FROM unnest(took) t;
	END $$});
my %quiet = map { $_ => $node->safe_psql('postgres', "SELECT latencies('$_')") } qw(items others);
my $flood = IPC::Run::start(
	[ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-c', q{SELECT count(*) FROM knn_search('items_v', 'SELECT i.v FROM items i, generate_series(1, 20)', 1)} ],
	'>', \my $flood_out, '2>', \my $flood_err);
$node->poll_query_until('postgres', q{SELECT searches > 4000 FROM pgwarp_status WHERE index = 'items_v'::regclass}) or die 'no flood';
for my $table (qw(others items))
{
	my $before = status('items_v', 'searches');
	my $p99 = $node->safe_psql('postgres', "SELECT latencies('$table')");
	my $wide = status('items_v', 'searches') - $before;
	diag(sprintf "p99 of singles on %s: %.1f ms alone, %.1f ms beside %d other queries", $table, $quiet{$table}, $p99, $wide);
	cmp_ok($wide, '>', 200, 'the flood goes on');
	cmp_ok($p99, '<', 300, "singles on $table do not wait for it");
}
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 20)%' AND pid <> pg_backend_pid()});
$flood->finish;
like($flood_err, qr/canceling statement/, 'the flood was not over');

# an engine that dies between the searches of a partitioned table's scans
$node->safe_psql('postgres', q{
	CREATE TABLE parts (id int, kind int, v vector(16)) PARTITION BY LIST (kind);
	DO $$ BEGIN FOR i IN 0..9 LOOP EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%1$s)', i); END LOOP; END $$;
	INSERT INTO parts SELECT id, id % 10, v FROM items WHERE id <= 2000;
	CREATE INDEX parts_v ON parts USING exact (v)});
my $nearest = q{SELECT array_agg(id) FROM (SELECT id FROM parts ORDER BY v <-> (SELECT v FROM items WHERE id = 5) LIMIT 5) s};
my $expected = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_seqscan = on; $nearest");
my $session = $node->background_psql('postgres');
for my $round (1 .. 3)
{
	is($session->query_safe($nearest), $expected, "round $round: nearest rows of ten partitions");
	is($session->query_safe($nearest), $expected, 'again, by one request');
	like($session->query_safe("EXPLAIN (ANALYZE, COSTS OFF) $nearest"), qr/Requests: 1\s+Searches: 10\s/, 'it says so');
	kill 'KILL', engine_pid($node) if $round < 3;
}
my ($rc, undef, $error) = $node->psql('postgres', "SET pgwarp.fault = 2; SET statement_timeout = 300; $nearest");
like($error, qr/statement timeout/, 'a search of all partitions is cancelled');
is($session->query_safe($nearest), $expected, 'others go on');
$session->quit;

$node->stop;
done_testing();
