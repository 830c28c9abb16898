# A graph whose rows are replaced by merges alone, with the same rows in every run: it finds as much as one that is built
# now, takes about as much time, and is hardly ever built anew.
#   PGWARP_CHURN=full   100,000 rows of 128 dimensions; else 6,000, of 32 dimensions
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use List::Util qw(max min);
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $full = ($ENV{PGWARP_CHURN} // '') eq 'full';
my ($rows, $dimensions, $parts) = $full ? (100_000, 128, 20) : (6_000, 32, 10);
my $node = new_cluster('graph_churn', 'autovacuum' => 'off', 'jit' => 'off', 'shared_buffers' => '512MB', 'max_wal_size' => '4GB',
	'synchronous_commit' => 'off', 'max_parallel_workers_per_gather' => 0, 'maintenance_work_mem' => '256MB');
sub sql { return $node->safe_psql('postgres', join(' ', @_)) }

# Rows around a surface of twelve dimensions.
sql("CREATE TABLE basis AS SELECT l, ARRAY(SELECT sin(d * l * 1.7 + l) FROM generate_series(1, $dimensions) d)::vector($dimensions) v FROM generate_series(1, 12) l;
	CREATE FUNCTION drawn(id int) RETURNS vector LANGUAGE sql VOLATILE AS \$\$
		SELECT sum(v * array_fill((random() + random() + random() - 1.5)::real, ARRAY[$dimensions])::vector) FROM basis WHERE id IS NOT NULL \$\$;
	CREATE TABLE items (id int PRIMARY KEY, v vector($dimensions)) WITH (fillfactor = 90);
	SELECT setseed(0.1);
	CREATE TABLE queries AS SELECT id, drawn(id) v FROM generate_series(1, 300) id;
	INSERT INTO items SELECT id, drawn(id) FROM generate_series(1, $rows) id;
	CREATE INDEX items_exact ON items USING exact (v);
	CREATE INDEX items_graph ON items USING graph (v)");

# Mean share of the ten nearest rows that an index finds.
sub recall
{
	my ($index, $settings) = @_;
	return sql($settings, "SELECT round(avg((a.tid IS NOT NULL)::int), 4) FROM knn_search('items_exact', (SELECT array_agg(v ORDER BY id) FROM queries), 10) e
		LEFT JOIN knn_search('$index', (SELECT array_agg(v ORDER BY id) FROM queries), 10) a USING (query, tid)");
}
# Milliseconds of 300 searches, the best of some rounds.
sub search_times
{
	my ($settings, @indexes) = @_;
	my %best;
	for my $round (1 .. 7)
	{
		for my $index (@indexes)
		{
			my $time = sql($settings, "SET pgwarp.verify_results = off; CREATE TEMP TABLE t (ms float8); DO \$\$
				DECLARE
					begun timestamptz;
				BEGIN
					PERFORM count(*) FROM queries q, knn_search('$index', ARRAY[q.v], 10);
					begun := clock_timestamp();
					PERFORM count(*) FROM queries q, knn_search('$index', ARRAY[q.v], 10);
					INSERT INTO t SELECT extract(epoch FROM clock_timestamp() - begun) * 1000;
				END \$\$; SELECT ms FROM t");
			$best{$index} = min($time, $best{$index} // $time);
		}
	}
	return map { $best{$_} } @indexes;
}

my %merges;
# The work of merges, by their debug messages.
sub maintain
{
	my ($command) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; $command");
	is($rc, 0, $command) or diag $err;
	note $1 if $err =~ /(a recall of .*)/;
	$merges{$1}++ while $err =~ /items_graph.*?was (appended|built anew|written anew)/g;
	return;
}
my $built_size = sql("SELECT pg_relation_size('items_graph')");
my $compared_size = 0;
for my $round (1 .. 3 * $parts)
{
	sql("SELECT setseed(0.3 + $round * 0.001); UPDATE items SET v = drawn(id) WHERE id % $parts = $round % $parts");
	maintain('VACUUM (INDEX_CLEANUP ON) items');
	maintain("CALL pgwarp_merge('items_graph')");
	$compared_size = max($compared_size, sql("SELECT pg_relation_size('items_graph')"));
	note "round $round: " . sql("SELECT rows, dead_rows, options, calibration->'changed_rows', jsonb_path_query_array(calibration->'curve', '\$[0 to 8].recall.\"10\"') FROM pgwarp_index_info('items_graph')")
		if $full || $round % $parts == 0;
}
note 'merges: ' . join(', ', map { "$merges{$_} $_" } sort keys %merges);
cmp_ok($merges{'appended'} // 0, '>', $parts, 'most merges append');
cmp_ok($merges{'built anew'} // 0, '<=', 1, 'the graph is hardly ever built anew');
cmp_ok($compared_size, '<=', 2.5 * $built_size, sprintf 'it is at most %.2f times as large as at first', $compared_size / $built_size);
is(sql("SELECT live_rows FROM pgwarp_check('items_graph', true)"), $rows, 'it is whole, and every row can be reached');

sql("CREATE INDEX fresh ON items USING graph (v)");
for my $settings ('SET pgwarp.graph_ef_search = 24;', 'SET pgwarp.recall = 0.95;', 'SET pgwarp.recall = 0.99;')
{
	my ($recall, $fresh) = map { recall($_, $settings) } 'items_graph', 'fresh';
	cmp_ok($recall, '>=', $fresh - 0.01, "$settings recall $recall, of a fresh index $fresh");
	my ($time, $fresh_time) = search_times($settings, 'items_graph', 'fresh');
	note sprintf '%s %.1f ms, a fresh index %.1f ms: %.2f times', $settings, $time, $fresh_time, $time / $fresh_time;
}
is(sql("SELECT calibration->>'renewed_by' FROM pgwarp_index_info('items_graph')"), 'merge', 'merges measure recall');
cmp_ok(sql("SELECT calibration->'changed_rows' FROM pgwarp_index_info('items_graph')"), '<=', 0.3 * $rows, 'and have done so lately');

# Rows on a line, and then many anywhere, among which searches need much more effort: built anew, once.
my $easy = 'array_fill((random() + 0 * id)::real, ARRAY[128])::vector(128)';
my $hard = 'ARRAY(SELECT random() FROM generate_series(1, 128) WHERE id IS NOT NULL)::real[]::vector(128)';
sql("DROP TABLE items; CREATE TABLE items (id int, v vector(128));
	SELECT setseed(0.9); INSERT INTO items SELECT id, $easy FROM generate_series(1, 3000) id;
	CREATE INDEX items_graph ON items USING graph (v)");
sub effort { return sql("SELECT min((p->>'effort')::int) FROM pgwarp_index_info('items_graph'), jsonb_array_elements(calibration->'curve') p WHERE (p->'recall'->>'10')::float >= 0.95") }
my @efforts = effort();
for my $step ([ 3001, 4100, $easy, 'appended' ], [ 4101, 6100, $hard, 'built anew' ], [ 6101, 6200, $hard, 'appended' ])
{
	my ($first, $last, $row, $expected) = @$step;
	%merges = ();
	sql("SELECT setseed(0.8); INSERT INTO items SELECT id, $row FROM generate_series($first, $last) id");
	maintain("CALL pgwarp_merge('items_graph')");
	push @efforts, effort();
	is(join(', ', map { "$merges{$_} $_" } sort keys %merges), "1 $expected", "rows to $last: $expected");
	is(sql("SELECT options ? 'built_effort' FROM pgwarp_index_info('items_graph')"), $last == 4100 ? 't' : 'f', 'what the build needed is known once recall was measured again') if $last < 6200;
}
note "efforts for 0.95: @efforts";
cmp_ok($efforts[1], '<', 1.5 * $efforts[0], 'rows on a line need little effort');
cmp_ok($efforts[2], '>', $efforts[0], 'rows anywhere more');
$node->stop;
done_testing();
