# The server crashes at random moments under a mixed load: after each restart the indexes are whole, and searches find
# all committed rows and no others. PGWARP_TORTURE=full: 20 crashes.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);
use TortureLoad;

my $node = new_cluster('crash', 'jit' => 'off', 'autovacuum_naptime' => '1s', 'max_wal_size' => "'64MB'", 'deadlock_timeout' => '100ms',
	'max_worker_processes' => 16, 'wal_writer_delay' => '10s', 'wal_buffers' => "'16MB'");
my @writers = create_items($node, 4);
my ($committed, $lost) = (0, 0);

# Kills the postmaster, whose end the other processes notice by themselves, or all processes at once.
sub crash
{
	my ($round) = @_;
	if ($round % 2 == 0)
	{
		$node->stop('immediate');
		return 'immediate stop';
	}
	$node->kill9;
	return 'SIGKILL';
}

# Waits until no process of the old server is left, nor its engine. A dead postmaster keeps its lock file valid until
# its parent has waited for it.
sub await_end
{
	my ($postmaster) = @_;
	my $tries = 0;
	usleep(50_000) while (server_processes($node, engine => 0) || server_processes($node, engine => 1)) && ++$tries < 1200;
	usleep(50_000) while kill(0, $postmaster) && ++$tries < 1200;
	return $tries < 1200;
}

my $rounds = torture_size(3, 20);
for my $round (1 .. $rounds)
{
	my $postmaster = $node->safe_psql('postgres', "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)");
	# Two of four writers wait for the log; in every third round none does, so that commits are lost.
	$writers[$_]{asynchronous} = $_ < 2 || $round % 3 == 0 for 0 .. $#writers;
	my $load = start_load($node, @writers);
	run_load($load, 400_000 + int(rand(1_600_000)));
	my $name = "crash $round (" . crash($round) . ')';
	end_load($load, $name);
	ok(await_end($postmaster), "$name: every process ended, the engine too");
	$node->start;
	my ($kept, $gone) = check_rows($node, $name, @writers);
	check_indexes($node, $name);
	note "$name: $kept transactions kept, $gone asynchronous ones lost";
	$committed += $kept;
	$lost += $gone;
	drop_leftovers($node);
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|inconsistent page|terminated by signal 11|wrong distance|wrong included/, 'the log tells of nothing worse');
cmp_ok($committed, '>', 20 * $rounds, "$committed transactions went through");
cmp_ok(searched_times(), '>', 5 * $rounds, searched_times() . ' searches were compared with the table under load');
note "$rounds crashes: $committed transactions kept, $lost asynchronous ones lost, " . searched_times() . ' searches compared';
$node->stop;
done_testing();
