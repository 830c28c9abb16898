# CREATE INDEX of pqtree on a table that is large enough for a sample: the engine is trained on it, and encodes rows as
# they come.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'builds on a GPU gather their rows' if ($ENV{PGWARP_DEVICE} // '') eq 'cuda';

my $rows = 140000;
my $node = new_cluster('streamed_build', max_worker_processes => 12, max_parallel_maintenance_workers => 4);
sub sql { return $node->safe_psql('postgres', @_) }

# Rows of one page are alike, and pages differ. Every tenth row is no vector, and a part of the rows is dead.
sql(qq{SELECT setseed(0.25);
	CREATE TABLE items (id int, v vector(8)) WITH (autovacuum_enabled = off, parallel_workers = 3);
	INSERT INTO items SELECT i, CASE WHEN i % 10 > 0 THEN ARRAY[i / 20000, i / 4000 % 5, random(), random(), random(), random(), random(), random()]::real[]::vector END
		FROM generate_series(1, $rows) i;
	DELETE FROM items WHERE id > 130000});
my $live = 130000;

# Builds items_v; returns the server's messages.
sub create
{
	my ($workers, $rest) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; SET max_parallel_maintenance_workers = $workers; CREATE INDEX items_v ON items USING pqtree $rest");
	is($rc, 0, "CREATE INDEX ... $rest, with $workers workers") or diag $err;
	return $err;
}

# The arrays, without what is random in each build.
sub arrays
{
	my $bytes = slurp_file(index_pages($node, 'items_v'));
	return join '', map { substr($bytes, $_ * 8192 + 10, 8192 - 10 - 24) } 1 .. length($bytes) / 8192 - 2;
}

my (%pages, %calibrations);
for my $workers (0, 3)
{
	my $err = create($workers, '(v)');
	my ($sampled, $about) = $err =~ /training on a sample of (\d+) rows of about (\d+)/;
	cmp_ok($sampled // 0, '>', 8000, "$workers workers: a sample") or diag $err;
	cmp_ok(abs($about - 0.9 * $live), '<', 0.05 * $live, "$workers workers: about $about rows");
	my ($launched) = $err =~ /using (\d+) parallel workers/;
	is($launched // 0, $workers, "$workers workers collect rows");
	is(sql("SELECT live_rows FROM pgwarp_check('items_v', true)"), $live, "$workers workers: the index is whole");
	cmp_ok(sql("SELECT pgwarp_recall('items_v', 10, 200)"), '>=', 0.94, "$workers workers: recall as asked for");
	$pages{$workers} = arrays();
	$calibrations{$workers} = sql("SELECT calibration FROM pgwarp_index_info('items_v')");
	sql('DROP INDEX items_v');
}
ok($pages{0} eq $pages{3}, 'the same arrays with and without workers');
is($calibrations{0}, $calibrations{3}, 'and the same calibration');

# The sample does not count: the statistics of the table show the one scan that any CREATE INDEX is.
sub scans { return sql('SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = \'items\'') =~ /(\d+)\|(\d+)/ }
my %counts;
for my $method ('btree (id)', 'pqtree (v)')
{
	my @before = scans();
	my ($rc, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; SET max_parallel_maintenance_workers = 0; CREATE INDEX items_v ON items USING $method; SELECT pg_stat_force_next_flush()");
	my @after = scans();
	$counts{$method} = join ' ', $after[0] - $before[0], $after[1] - $before[1];
	like($err, qr/training on a sample/, 'the build samples') if $method =~ /pqtree/;
	sql('DROP INDEX items_v');
}
like($counts{'btree (id)'}, qr/^1 \d{6}$/, 'a btree index counts one scan');
is($counts{'pqtree (v)'}, $counts{'btree (id)'}, 'pqtree counts the same');

# A tenth of the rows is too few for a sample, and so are none. Codes alone, an expression, and a build beside writers.
my $err = create(0, '(v) WHERE id <= 13000');
unlike($err, qr/training on a sample/, 'a small partial index gathers its rows');
is(sql("SELECT live_rows FROM pgwarp_check('items_v', true)"), 13000, 'and is whole');
sql('DROP INDEX items_v');
create(0, '(v) WHERE id < 0');
is(sql("SELECT rows FROM pgwarp_index_info('items_v')"), 0, 'an index of no rows');
sql('DROP INDEX items_v');
$err = create(3, '(((v + v)::vector(8))) WITH (refine = none)');
like($err, qr/training on a sample/, 'an expression is sampled');
my $nearest = 'SELECT id FROM items ORDER BY (v + v)::vector(8) <-> (SELECT v + v FROM items WHERE id = 77777) LIMIT 1';
is(sql("SET enable_seqscan = off; $nearest"), 77777, 'and found');
sql('DROP INDEX items_v');

# The view of progress tells the sample from the rows.
sql(q{CREATE FUNCTION phase_at(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN
		IF id % 1000 = 7 THEN PERFORM pg_stat_clear_snapshot(); RAISE NOTICE 'phase: %', (SELECT phase FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid()); END IF;
		RETURN id;
	END $$});
$err = create(0, '(v) WHERE phase_at(id) > 0');
my %phases = map { $_ => 1 } $err =~ /phase: building index: ([a-z]+ [a-z]+)/g;
is(join(', ', sort keys %phases), 'reading rows, sampling rows', 'phases') or diag $err;
sql('DROP INDEX items_v');

my $sum = 'SELECT sum(id) FROM (SELECT id FROM items WHERE v IS NOT NULL ORDER BY v <-> (SELECT v FROM items WHERE id = 5) LIMIT 200) n';
my $expected = sql("SET enable_indexscan = off; $sum");
sql('CREATE INDEX CONCURRENTLY items_v ON items USING pqtree (v)');
is(sql("SELECT live_rows FROM pgwarp_check('items_v', true)"), $live, 'concurrently: whole');
is(sql("SET enable_seqscan = off; SET pgwarp.pqtree_candidates = 1000000; $sum"), $expected, 'concurrently: the nearest rows');
sql('DROP INDEX items_v');

# Statements that end in the midst, in the sample, the training or the rows, leave nothing behind.
my $cut = 0;
for my $most (50, 100, 150, 200, 300, 400)
{
	my ($rc) = $node->psql('postgres', "SET statement_timeout = $most; CREATE INDEX items_v ON items USING pqtree (v)");
	$cut++ if $rc != 0;
	sql('DROP INDEX IF EXISTS items_v');
	ok($node->poll_query_until('postgres', 'SELECT coalesce(max(builds), 0) = 0 FROM pgwarp_status'), "$most ms: the engine has no build");
}
cmp_ok($cut, '>', 0, "$cut builds ran into a timeout");
create(2, '(v)');
is(sql("SELECT live_rows FROM pgwarp_check('items_v', true)"), $live, 'the next build is whole');

done_testing();
