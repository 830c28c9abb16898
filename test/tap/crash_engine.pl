# The engine killed again and again under a mixed load: statements go on or fail with an error that says so, and no
# answer is ever wrong. PGWARP_TORTURE=full: 50 times.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TortureLoad;

my $node = new_cluster('crash_engine', 'jit' => 'off', 'autovacuum_naptime' => '1s', 'max_wal_size' => "'64MB'", 'deadlock_timeout' => '100ms',
	'max_worker_processes' => 16, 'restart_after_crash' => 'on');
my @writers = create_items($node, 4);
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my ($committed, $kills) = (0, 0);

# Kill the engine when it has been there for this long, in microseconds, and a little more; before it is killed, the load
# goes on as await_load() says. Returns whether there was one within a while.
sub kill_engine
{
	my ($load, $lived, @awaited) = @_;
	for (1 .. 2000)
	{
		if (my @there = server_processes($node, engine => 1))
		{
			run_load($load, $lived + int(rand(400_000)));
			await_load($load, @awaited) if @awaited;
			return 1 if kill 'KILL', @there;
		}
		run_load($load, 10_000);
	}
	return 0;
}

my $rounds = torture_size(1, 10);
for my $round (1 .. $rounds)
{
	my $load = start_load($node, @writers);
	# One life in each round is long enough for any device to answer, on any machine.
	for my $kill (1 .. 5) { $kills += kill_engine($load, $kill == 3 ? (2_500_000, 2, 21) : 0) }
	cut_load($node);
	my $name = "round $round";
	end_load($load, $name);
	my ($kept) = check_rows($node, $name, @writers);
	check_indexes($node, $name);
	drop_leftovers($node);
	$committed += $kept;
	# A new launcher begins without the pauses that grew with the engine's deaths.
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'");
}
is($kills, 5 * $rounds, "the engine was killed $kills times");
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the server never restarted');
unlike(slurp_file($node->logfile), qr/terminating any other active server processes|PANIC|TRAP|wrong distance|wrong included/, 'the log tells of nothing worse');
cmp_ok($committed, '>', 20 * $rounds, "$committed transactions went through");
cmp_ok(searched_times(), '>', $rounds, searched_times() . ' searches were compared with the table meanwhile');
note "$kills engines killed: $committed transactions kept, " . searched_times() . ' searches compared, ' . refused_times() . ' refused';
$node->stop;
done_testing();
