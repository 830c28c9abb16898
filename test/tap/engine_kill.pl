# The engine killed while idle, searching, loading and building: no session is lost and answers are right.
use strict;
use warnings FATAL => 'all';

use Cwd qw(realpath);
use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_cluster('kill');
load_grid($node, 'items', 20000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
my $query = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 7) LIMIT 10';
my $truth = $node->safe_psql('postgres', "SET enable_indexscan = off; $query");
my $engine = wait_for_engine($node, 'items');
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# Idle: a session with an open connection goes on, and so does a new one.
my $session = $node->background_psql('postgres');
$session->query_safe('SET enable_seqscan = off');
my $backend = $session->query_safe('SELECT pg_backend_pid()');
is($session->query_safe($query), $truth, 'answer before');
my $last = engine_pid($node);
for my $round (1 .. 3)
{
	kill 'KILL', $last;
	is($session->query_safe($query), $truth, "round $round: killed while idle, the session is answered");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $query"), $truth, "round $round: so is a new one");
	my $now = engine_pid($node);
	isnt($now, $last, "round $round: by another engine");
	$last = $now;
}
is($session->query_safe('SELECT pg_backend_pid()'), $backend, 'it is the same session');

# The answer would differ without a delta row or a tombstone.
$session->query_safe('INSERT INTO items SELECT 100007, v FROM items WHERE id = 7; DELETE FROM items WHERE id % 3 = 0');
$session->query_safe('VACUUM items');
$truth = $node->safe_psql('postgres', "SET enable_indexscan = off; $query");
kill 'KILL', engine_pid($node);
my %expected = map { $_ => 1 } split /\n/, $truth;
my @got = split /\n/, $session->query_safe($query);
is(scalar(grep { $expected{$_} } @got), 10, 'delta and tombstones are loaded again');
$session->quit;

# Killed while sessions search and load: the sessions only wait longer.
my $script = $node->basedir . '/search.sql';
append_to_file($script, "SET enable_seqscan = off;\nSET pgwarp.engine_timeout = '60s';\n"
	. "\\set i random(1, 20000)\nSELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 3 * :i / 3 + 1 OR id = 1 LIMIT 1) LIMIT 5;\n");
my ($in, $out, $err) = ('', '', '');
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 12, '-f', $script, $node->connstr('postgres') ],
	'<', \$in, '>', \$out, '2>', \$err, IPC::Run::timeout(120));
my $kills = 0;
for (1 .. 3)
{
	usleep(1_000_000);
	# Each session has had an answer by then: a search fails after two deaths of the engine.
	$node->poll_query_until('postgres', 'SELECT sum(searches) > 200 FROM pgwarp_status') or die 'no searches';
	my $pid = eval { engine_pid($node) };
	$kills += kill 'KILL', $pid if $pid;
}
$pgbench->finish;
cmp_ok($kills, '>=', 2, 'the engine was killed under load');
my ($transactions) = $out =~ /actually processed: (\d+)/;
cmp_ok($transactions, '>', 200 * $kills, "$transactions transactions went on meanwhile");
unlike($err, qr/ERROR|aborted/, 'no query of pgbench failed') or diag($err);
like($out, qr/number of failed transactions: 0 |number of transactions actually processed: [1-9]/, 'pgbench went through');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $query") ne '', 1, 'searches are answered');

# A new launcher begins without the pauses that grew with the deaths so far.
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'");

# During a load that takes a while.
$node->safe_psql('postgres', 'CREATE TABLE wide (id int, v vector(1000));
	INSERT INTO wide SELECT i, (SELECT array_agg(hashint8(i::bigint * 1009 + d) % 1000) FROM generate_series(1, 1000) d)::real[]::vector
	FROM generate_series(1, 5000) i;
	CREATE INDEX wide_v ON wide USING exact (v)');
my $wide = 'SELECT id FROM wide ORDER BY v <-> (SELECT v FROM wide WHERE id = 5) LIMIT 3';
my $data_dir = realpath($node->data_dir);
my $wide_truth = $node->safe_psql('postgres', "SET enable_indexscan = off; $wide");
for my $round (1 .. 4)
{
	kill 'KILL', engine_pid($node);
	my ($o, $e) = ('', '');
	my $psql = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres'), '-c', 'SET enable_seqscan = off', '-c', $wide ],
		'<', \undef, '>', \$o, '2>', \$e, IPC::Run::timeout(60));
	usleep(20_000 * $round);
	for my $proc (glob '/proc/[0-9]*')
	{
		my $name = eval { slurp_file("$proc/cmdline") } // '';
		my $cwd = readlink("$proc/cwd") // '';
		kill 'KILL', substr($proc, 6) if $name =~ /pgwarp-engine/ && $cwd eq $data_dir;
	}
	$psql->finish;
	chomp $o;
	is($o, $wide_truth, "round $round: killed while an index is loaded");
	is($e, '', "round $round: no error");
}

# An engine that dies closes its connections one after the other. A search that comes to repeat itself in this moment
# is not the cause of the death: it meets no second one. Its first turn finds the index to be loaded.
my $load_library = "SELECT FROM pgwarp_index_info('items_v'); SET enable_seqscan = off;";
wait_for_engine($node, 'items');
my (undef, undef, $steps) = $node->psql('postgres', "$load_library SET client_min_messages = debug2; $query");
SKIP:
{
	my ($sent) = reverse($steps =~ /message point (\d+): request sent/g);
	skip 'the library was built without fault points', 1 unless defined $sent;
	my $twice;
	for (1 .. 20)
	{
		wait_for_engine($node, 'items');
		my $log_end = -s $node->logfile;
		my ($rc, $found, $message) = $node->psql('postgres', "$load_library SET pgwarp.fault_message = $sent; SET pgwarp.fault_turn = 2; $query");
		# The reply to the first request may be faster than the engine's death.
		next unless slurp_file($node->logfile, $log_end) =~ /killed \d+ at turn 2/;
		$twice = $rc == 0 ? $found : $message;
		last;
	}
	is($twice, $node->safe_psql('postgres', "SET enable_indexscan = off; $query"), 'killed before a search is repeated');
}

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the server never restarted');
unlike(slurp_file($node->logfile), qr/terminating any other active server processes|PANIC/, 'no crash restart');
$node->stop;
done_testing();
