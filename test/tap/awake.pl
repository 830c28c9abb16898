# A session with so frequent searches that engine and backend poll for each other: cancels and timeouts end a polling
# wait as well, the engine may be killed, and both sleep when no more searches come.
# Needs an engine built with PGWARP_FAULTS (fault 2 = a search that sleeps).
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_cluster('awake');
load_grid($node, 'items', 2000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
my $engine = wait_for_engine($node, 'items');
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION ask_often(times int) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
	DECLARE
		q vector := (SELECT v FROM items WHERE id = 7);
		best int;
		right_ones bigint := 0;
	BEGIN
		FOR i IN 1 .. times LOOP
			SELECT id INTO best FROM items ORDER BY v <-> q LIMIT 1;
			right_ones := right_ones + (best = 7)::int;
		END LOOP;
		RETURN right_ones;
	END $$});
my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 1';

# Start an endless row of searches in the background, and return the harness and its backend's pid.
sub start_asking
{
	my ($name, $times) = @_;
	my ($stdin, $stdout, $stderr) = ('', '', '');
	my $handle = IPC::Run::start(
		[ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres') . " application_name=$name", '-c', "SELECT ask_often($times)" ],
		'<', \$stdin, '>', \$stdout, '2>', \$stderr, IPC::Run::timeout(120));
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$name' AND state = 'active'");
	usleep(300_000);
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = '$name'");
	return ($handle, $pid, \$stdout, \$stderr);
}

is($node->safe_psql('postgres', 'SELECT ask_often(3000)'), 3000, 'all answers are right');

# A search that takes long, after many that didn't.
my ($rc, $out, $err) = $node->psql('postgres',
	"SELECT ask_often(500); SET enable_seqscan = off; SET pgwarp.fault = 2; SET statement_timeout = 100; $search");
SKIP:
{
	skip 'the engine was built without fault points', 1 if $err =~ /built without fault points/;
	like($err, qr/statement timeout/, 'the wait for it obeys statement_timeout');
}

for my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	my ($handle, $pid, $stdout, $stderr) = start_asking($how, 2_000_000_000);
	my $start = time;
	$node->safe_psql('postgres', "SELECT $how($pid)");
	$handle->finish;
	cmp_ok(time - $start, '<', 5, "$how ends searches in a row at once");
	like($$stderr, qr/canceling statement due to user request|terminating connection/, "$how: says so");
}
is(engine_pid($node), $engine, 'it was one engine all the time');

# A backend that polls for a reply notices that the engine is gone.
{
	my ($handle, $pid, $stdout, $stderr) = start_asking('killed', 20000);
	kill 'KILL', $engine;
	$handle->finish;
	is($$stdout, "20000\n", 'killed meanwhile: all answers are right');
	is($$stderr, '', 'killed meanwhile: nobody is told');
	isnt(engine_pid($node), $engine, 'by another engine');
}

# Seconds of processor time that a process has had.
sub processor_time
{
	my ($pid) = @_;
	my @fields = split / /, slurp_file("/proc/$pid/stat") =~ s/^.*\) //sr;
	return ($fields[11] + $fields[12]) / 100;
}

{
	my $session = $node->background_psql('postgres');
	is($session->query_safe('SELECT ask_often(3000)'), 3000, 'a session asks often, and then no more');
	my @waiting = (engine_pid($node), $session->query_safe('SELECT pg_backend_pid()'));
	usleep(100_000);
	my @before = map { processor_time($_) } @waiting;
	usleep(2_000_000);
	my @used = map { processor_time($waiting[$_]) - $before[$_] } 0, 1;
	cmp_ok($used[0], '<', 0.2, 'the engine sleeps');
	cmp_ok($used[1], '<', 0.2, 'the session sleeps');
	$session->quit;
}

$node->stop;
done_testing();
