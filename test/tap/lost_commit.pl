# A crash that loses an asynchronous commit: whatever the old engine saw, answers come from what recovery kept.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

my $node = new_cluster('lost', 'synchronous_commit' => 'off', 'wal_writer_delay' => '10s', 'restart_after_crash' => 'on');
load_grid($node, 'items', 1000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v); CHECKPOINT');
my $marker = 'array_fill(777, ARRAY[16])::vector';
my $search = "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> $marker LIMIT 1";
my $lost = 0;

for my $round (1 .. 5)
{
	my $id = 100_000 + $round;
	# Commit without waiting for the log, let the engine see the row, stop the engine where it is, crash the server.
	$node->safe_psql('postgres', "INSERT INTO items VALUES ($id, $marker); $search");
	my $engine = engine_pid($node);
	my $backend = $node->background_psql('postgres');
	my $pid = $backend->query_safe('SELECT pg_backend_pid()');
	my $log_end = -s $node->logfile;
	kill 'STOP', $engine;
	kill 'KILL', $pid;
	eval { $backend->quit };
	# Until the server has noticed, it answers as before.
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $log_end);
	usleep_until_up();
	kill 'CONT', $engine;

	my $kept = $node->safe_psql('postgres', "SET enable_indexscan = off; SELECT count(*) FROM items WHERE id = $id");
	$lost++ if $kept eq '0';
	my $nearest = $node->safe_psql('postgres', $search);
	my $truth = $node->safe_psql('postgres', "SET enable_indexscan = off; SELECT id FROM items ORDER BY v <-> $marker LIMIT 1");
	is($nearest, $truth, "round $round: the answer is what recovery kept" . ($kept eq '0' ? ' (the commit was lost)' : ''));
	# The tid of a lost row is used again: the old engine's copy of it must not be believed.
	$node->safe_psql('postgres', "INSERT INTO items VALUES ($id + 1000, array_fill(-777, ARRAY[16])::vector)");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> array_fill(-777, ARRAY[16])::vector LIMIT 1"),
		$node->safe_psql('postgres', "SET enable_indexscan = off; SELECT id FROM items ORDER BY v <-> array_fill(-777, ARRAY[16])::vector LIMIT 1"),
		"round $round: rows after the crash are found");
	$node->safe_psql('postgres', "DELETE FROM items WHERE id >= 100000");
}
diag("$lost of 5 commits were lost");

# Wait until the server answers again after its crash restart.
sub usleep_until_up
{
	for (1 .. 300)
	{
		return if $node->psql('postgres', 'SELECT 1') == 0;
		Time::HiRes::usleep(100_000);
	}
	die 'the server did not come back';
}

$node->stop;
done_testing();
