# How the engine comes up and goes down: with and without preloading, asked for by many at once, reconfigured, stopped in
# every mode, its launcher killed, and when it can't be had at all.
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
use TortureLoad;

my $query = 'SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 7) LIMIT 1';

# Processes of the engine whose working directory is the node's.
sub engines
{
	my ($node) = @_;
	my $data_dir = realpath($node->data_dir);
	my @found;
	for my $proc (glob '/proc/[0-9]*')
	{
		my $name = eval { slurp_file("$proc/cmdline") } // '';
		my $cwd = readlink("$proc/cwd") // '';
		push @found, substr($proc, 6) if $name =~ /pgwarp-engine/ && $cwd eq $data_dir;
	}
	return @found;
}

sub no_engine_left
{
	my ($node, $name) = @_;
	my $deadline = time + 60;
	usleep(20_000) while engines($node) && time < $deadline;
	is(scalar(engines($node)), 0, $name);
	return;
}

# Kill the launcher, and wait for the restart of the server that this takes.
sub kill_launcher
{
	my ($node) = @_;
	my $log_end = -s $node->logfile;
	kill 'KILL', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'");
	await_restart($node, $log_end);
	return;
}

sub make_items
{
	my ($node) = @_;
	load_grid($node, 'items', 1000);
	$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
	return;
}

# Not preloaded, and a hundred sessions at once are the first to need it.
my $node = new_cluster('plain', 'max_connections' => 130, 'restart_after_crash' => 'on');
make_items($node);
$node->restart;
is(scalar(engines($node)), 0, 'without preloading no engine runs until one is needed');
my $script = $node->basedir . '/search.sql';
append_to_file($script, "SET enable_seqscan = off;\nSET pgwarp.engine_timeout = '60s';\nSELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 7) LIMIT 1;\n");
my ($stdout, $stderr) = run_command([ 'pgbench', '-n', '-c', 100, '-j', 2, '-t', 2, '-f', $script, $node->connstr('postgres') ]);
like($stdout, qr{number of transactions actually processed: 200/200}, 'a hundred sessions are answered');
unlike($stderr, qr/ERROR|aborted/, 'none with an error') or diag($stderr);
is(scalar(engines($node)), 1, 'by one engine');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'"), 1, 'of one launcher');
is($node->safe_psql('postgres', 'SELECT DISTINCT engine_starts FROM pgwarp_status'), 1, 'started once');

# A reload restarts the engine only when its own settings changed.
my $first = engine_pid($node);
$node->reload;
usleep(500_000);
is($node->safe_psql('postgres', $query), 7, 'answered after a reload');
is(engine_pid($node), $first, 'a reload without changes leaves the engine alone');
$node->append_conf('postgresql.conf', "pgwarp.engine_threads = 1\npgwarp.engine_memory = '256MB'");
$node->reload;
my $deadline = time + 60;
usleep(50_000) while (join(',', engines($node)) eq $first && time < $deadline);
is($node->safe_psql('postgres', $query), 7, 'answered after the settings changed');
isnt(engine_pid($node), $first, 'by a new engine');
is($node->safe_psql('postgres', 'SELECT DISTINCT memory_allowed FROM pgwarp_status'), 256 * 1024 * 1024, 'with the new memory');
# The CPU device reports its number of threads, a GPU its name.
like($node->safe_psql('postgres', 'SELECT DISTINCT device FROM pgwarp_status'), qr/\b1 thread|^cuda/, 'and the new threads');

# The process has a session of its own, ends before the server when memory runs out, and inherits no files.
my $pid = engine_pid($node);
my ($session) = slurp_file("/proc/$pid/stat") =~ /\) \S+ \d+ \d+ (\d+)/;
is($session, $pid, 'the engine has a process session of its own');
is(slurp_file("/proc/$pid/oom_score_adj") + 0, 500, 'the engine goes before the server when memory runs out');
my @inherited = grep { (readlink($_) // '') =~ m{/base/|/global/|pg_wal|\.log$|TCP} } glob "/proc/$pid/fd/*";
is(scalar(@inherited), 0, 'the engine has none of the server\'s files open');

# The owner's functions.
is($node->safe_psql('postgres', "SELECT pgwarp_release('items_v')"), 't', 'a resident index is released');
is($node->safe_psql('postgres', "SELECT pgwarp_release('items_v')"), 'f', 'once');
cmp_ok($node->safe_psql('postgres', "SELECT pgwarp_prewarm('items_v')"), '>', 64000, 'and loaded again');
is($node->safe_psql('postgres', "SELECT index || ' ' || rows FROM pgwarp_status"), 'items_v 1000', 'the status shows it');
$node->safe_psql('postgres', 'CREATE ROLE other; GRANT pg_read_all_data TO other');
for my $function ('pgwarp_prewarm', 'pgwarp_release')
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET ROLE other; SELECT $function('items_v')");
	like($err, qr/must be owner/, "$function is the owner's");
	($rc, $out, $err) = $node->psql('postgres', "SELECT $function('items_pkey')");
	like($err, qr/"items_pkey" is not a pgwarp index/, "$function is for our indexes");
}

# A launcher that is stopped comes back with the next search; a killed one makes the server restart.
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'");
no_engine_left($node, 'the engine ends with its launcher');
is($node->safe_psql('postgres', $query), 7, 'answered by the next one');
kill_launcher($node);
is($node->safe_psql('postgres', $query), 7, 'answered after the launcher was killed');
is(scalar(engines($node)), 1, 'by one engine');

# No stop mode leaves an engine behind.
for my $mode ('smart', 'fast', 'immediate')
{
	is($node->safe_psql('postgres', $query), 7, "before stop $mode");
	is(scalar(engines($node)), 1, "an engine runs before stop $mode");
	$node->stop($mode);
	no_engine_left($node, "stop $mode leaves no engine");
	$node->start;
}
is($node->safe_psql('postgres', $query), 7, 'before the postmaster is killed');
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid');
$postmaster =~ s/\n.*//s;
kill 'KILL', $postmaster;
no_engine_left($node, 'the engine ends when the postmaster is killed');
# Until the other processes have noticed, too: they hold the shared memory.
$deadline = time + 60;
usleep(20_000) while server_processes($node, engine => 0) && time < $deadline;
# In a container without an init no process collects dead ones, and the lock files would seem to be held.
my $state = eval { slurp_file("/proc/$postmaster/stat") } // '';
unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock' if $state =~ /\) Z/;
$node->{_pid} = undef;
$node->start;

# No worker slot: plans do without the index, and statements that need no engine work.
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
is($node->safe_psql('postgres', $query), 7, 'without a worker slot the plan is another');
unlike($node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN SELECT id FROM items ORDER BY v <-> '$_' LIMIT 1"), qr/items_v/, 'the planner leaves the index out')
	for '[' . join(',', (1) x 16) . ']';
$node->safe_psql('postgres', 'INSERT INTO items SELECT 5000, v FROM items WHERE id = 7; DELETE FROM items WHERE id = 8');
$node->safe_psql('postgres', 'VACUUM items');
is($node->safe_psql('postgres', 'SELECT engine_pid IS NULL FROM pgwarp_status'), 't', 'the status says that none runs');
my ($rc, $out, $err) = $node->psql('postgres', "SELECT pgwarp_prewarm('items_v')");
like($err, qr/cannot be started.*max_worker_processes/s, 'what needs it says why');
$node->stop;

# Preloaded: the engine runs from the start.
my $preloaded = PostgreSQL::Test::Cluster->new('preloaded');
$preloaded->init;
configure($preloaded, 'shared_preload_libraries' => q{'$libdir/pgwarp'}, 'restart_after_crash' => 'on');
$preloaded->start;
$deadline = time + 60;
usleep(20_000) while !engines($preloaded) && time < $deadline;
is(scalar(engines($preloaded)), 1, 'preloaded: the engine starts with the server');
$preloaded->safe_psql('postgres', 'CREATE EXTENSION pgwarp');
make_items($preloaded);
is($preloaded->safe_psql('postgres', $query), 7, 'preloaded: answered');
kill_launcher($preloaded);
is($preloaded->safe_psql('postgres', $query), 7, 'preloaded: answered after the launcher was killed');
is(scalar(engines($preloaded)), 1, 'preloaded: by one engine');
is($preloaded->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'"), 1, 'preloaded: of one launcher');
$preloaded->stop;
no_engine_left($preloaded, 'preloaded: stop leaves no engine');
done_testing();
