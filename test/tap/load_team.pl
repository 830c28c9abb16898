# A large index is loaded by several processes at once, and again when the engine is restarted.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# 80 MB of vectors: sums of two out of 200.
my $table = "CREATE TABLE seeds AS SELECT i, (SELECT array_agg(hashint8(i::bigint * 1009 + d) % 1000) FROM generate_series(1, 1000) d)::real[]::vector AS v
	FROM generate_series(1, 200) i;
	CREATE TABLE items (id int PRIMARY KEY, v vector(1000));
	INSERT INTO items SELECT a.i * 1000 + b.i, a.v + b.v FROM seeds a, seeds b WHERE b.i > a.i AND b.i <> 200;
	CREATE INDEX items_v ON items USING exact (v)";
my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 5006) LIMIT 3';
my $resident = "SELECT count(*) = 1 FROM pgwarp_status WHERE index = 'items_v'::regclass AND NOT loading";
my $release = "SELECT pgwarp_release('items_v')";

my $node = new_cluster('team', max_worker_processes => 16, 'pgwarp.load_workers' => 4, log_min_messages => 'debug1');
$node->safe_psql('postgres', $table);
my $truth = $node->safe_psql('postgres', "SET enable_indexscan = off; $search");
my $log = -s $node->logfile;

sub answer
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off; $search");
	return $err ne '' ? $err : $out;
}
sub logged
{
	my ($what) = @_;
	return slurp_file($node->logfile, $log) =~ $what;
}
sub kill_and_wait
{
	my $engine = engine_pid($node);
	kill 'KILL', $engine;
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM (SELECT DISTINCT engine_pid FROM pgwarp_status) s WHERE engine_pid <> $engine");
	return;
}

is(answer(), $truth, 'loaded');
ok(logged(qr/loading index "items_v" with 2 helpers/), 'by a team');
for my $round (1 .. 3)
{
	$node->safe_psql('postgres', $release);
	is(answer(), $truth, "round $round: loaded again");
}

# Helpers that are ended, at whatever moment: the answer comes all the same.
{
	my $hunter = $node->background_psql('postgres');
	$hunter->query_until(qr/start/, q{\echo start
		DO $$ BEGIN FOR i IN 1 .. 1500 LOOP
			PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgwarp load helper';
			PERFORM pg_stat_clear_snapshot(), pg_sleep(0.001); END LOOP; END $$;
});
	for my $round (1 .. 6)
	{
		$node->safe_psql('postgres', $release);
		is(answer(), $truth, "round $round: without its helpers");
	}
	$hunter->quit;
}

# The engine that is killed meanwhile.
for my $round (1 .. 4)
{
	$node->safe_psql('postgres', $release);
	my $engine = engine_pid($node);
	my ($out, $err) = ('', '');
	my $psql = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres'), '-c', 'SET enable_seqscan = off', '-c', $search ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(60));
	usleep(15_000 * $round);
	kill 'KILL', $engine;
	$psql->finish;
	chomp $out;
	is("$out$err", $truth, "round $round: the engine is killed during the load");
}

# The searching session reports a damaged page, also when a helper has found it.
{
	$node->safe_psql('postgres', $release);
	my $pages = index_pages($node, 'items_v');
	my $half = int((-s $pages) / 8192 / 2) * 8192 + 4000;
	$node->stop;
	flip_bytes($pages, $half, 4);
	$node->start;
	like(answer(), qr/index "items_v" .*(corrupt|damaged|not the one)|corrupt/i, 'a damaged page is an error');
	$node->stop;
	flip_bytes($pages, $half, 4);
	$node->start;
	is(answer(), $truth, 'and mended, it is none');
}

# After a restart the engine loads its former indexes before the first search.
kill_and_wait();
ok($node->poll_query_until('postgres', $resident), 'loaded without a search');
is(answer(), $truth, 'and answers');
$node->safe_psql('postgres', $release);
kill_and_wait();
usleep(500_000);
is($node->safe_psql('postgres', $resident), 'f', 'what was released is not loaded');
is(answer(), $truth, 'until it is searched');
$node->append_conf('postgresql.conf', 'pgwarp.load_at_start = off');
$node->reload;
kill_and_wait();
usleep(500_000);
is($node->safe_psql('postgres', $resident), 'f', 'nor is anything without pgwarp.load_at_start');
$node->append_conf('postgresql.conf', 'pgwarp.load_at_start = on');
$node->reload;
is(answer(), $truth, 'it answers then, too');

# Dropped indexes and databases are forgotten.
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', "CREATE EXTENSION pgwarp; $table; SET enable_seqscan = off; $search");
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'pgwarp load%'");
$node->safe_psql('postgres', 'DROP INDEX items_v; DROP DATABASE other');
$log = -s $node->logfile;
kill_and_wait() for 1 .. 4;
# The started processes write their errors a little later.
for my $try (1 .. 100) { last if (() = slurp_file($node->logfile, $log) =~ /FATAL/g) >= 2; usleep(100_000) }
ok(!logged(qr/ERROR|PANIC/), 'an index and a database that were dropped are no errors');
is(() = slurp_file($node->logfile, $log) =~ /FATAL/g, 2, 'but two attempts to find the database');
unlike(slurp_file($node->logfile), qr/terminating any other active server processes|PANIC/, 'no crash restart');
$node->stop;
done_testing();
