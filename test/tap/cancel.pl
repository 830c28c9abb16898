# Cancel, statement_timeout and a killed client end a search and a build at once, and the engine serves on.
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

my $node = new_cluster('cancel');
load_grid($node, 'items', 2000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
my $engine = wait_for_engine($node, 'items');
my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 1';

my ($rc, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off; SET pgwarp.fault = 2; SET statement_timeout = 100; $search");
if ($err =~ /built without fault points/)
{
	plan skip_all => 'the engine was built without fault points';
}
like($err, qr/statement timeout/, 'a search that takes long obeys statement_timeout');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, 'the next search is answered');

# Start psql in the background on a statement, and return the harness and its backend's pid.
sub start_statement
{
	my ($name, $sql) = @_;
	my ($stdin, $stdout, $stderr) = ('', '', '');
	my $handle = IPC::Run::start(
		[ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres') . " application_name=$name", '-c', 'SET enable_seqscan = off', '-c', 'SET pgwarp.fault = 2', '-c', $sql ],
		'<', \$stdin, '>', \$stdout, '2>', \$stderr, IPC::Run::timeout(60));
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$name' AND leader_pid IS NULL AND query NOT LIKE 'SET%' AND state = 'active'");
	usleep(200_000);
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = '$name' AND leader_pid IS NULL");
	return ($handle, $pid, \$stderr);
}

# pg_cancel_backend and pg_terminate_backend during a search.
for my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	my ($handle, $pid, $stderr) = start_statement($how, $search);
	my $start = time;
	$node->safe_psql('postgres', "SELECT $how($pid)");
	$handle->finish;
	# By itself it would end after ten seconds.
	cmp_ok(time - $start, '<', 5, "$how ends a search at once");
	like($$stderr, qr/canceling statement due to user request|terminating connection/, "$how: says so");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, "$how: others are served");
}

# A client that vanishes during a search.
{
	my ($handle, $pid) = start_statement('vanished', $search);
	$handle->kill_kill;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, 'killed client: others are served');
}

# The same for a build, long enough to be caught.
$node->safe_psql('postgres', q{
	SELECT setseed(0.25);
	CREATE TABLE big (v vector(128));
	INSERT INTO big SELECT ARRAY(SELECT random() FROM generate_series(1, 128) d WHERE i > 0)::real[]::vector FROM generate_series(1, 40000) i});
($rc, $out, $err) = $node->psql('postgres', 'SET statement_timeout = 150; CREATE INDEX big_v ON big USING ivfadc (v) WITH (lists = 2000, opq = on)');
like($err, qr/statement timeout/, 'a build obeys statement_timeout');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, 'searches go on after a cancelled build');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'big_v'"), 0, 'no index is left');
{
	my ($handle, $pid, $stderr) = start_statement('build', 'CREATE INDEX big_v ON big USING ivfadc (v) WITH (lists = 2000, opq = on)');
	my $start = time;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	$handle->finish;
	cmp_ok(time - $start, '<', 5, 'a terminated build ends at once');
	like($$stderr, qr/terminating connection/, 'and says so');
}
is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, 'searches go on after a terminated build');
is(engine_pid($node), $engine, 'it was one engine all the time');

# Builds of sets, documents and signatures of sets, in whatever phase: within a second, of which a busy machine gets two.
$node->safe_psql('postgres', q{
	CREATE TABLE sets AS SELECT ARRAY(SELECT hashint4(i * 1000 + d) & 1048575 FROM generate_series(1, 100) d) AS tags FROM generate_series(1, 60000) i;
	CREATE TABLE documents AS SELECT array_to_tsvector(ARRAY(SELECT DISTINCT 'w' || e % 5000 FROM unnest(tags[1:40]) e)) AS words FROM sets});
for my $columns ('sets USING matchcount (tags)', 'sets USING matchcount (tags int4_array_jaccard_ops)', 'documents USING matchcount (words tsvector_bm25_ops)',
	'sets USING matchcount (tags int4_array_minhash_ops)')
{
	my $build = "CREATE INDEX sets_tags ON $columns";
	my $whole = time;
	$node->safe_psql('postgres', "BEGIN; $build; ROLLBACK");
	$whole = time - $whole;
	my ($cancelled, $latest) = (0, 0);
	for my $share (0.1, 0.3, 0.5, 0.7)
	{
		my $timeout = int(1 + $whole * $share * 1000);
		my $start = time;
		($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = $timeout; BEGIN; $build; ROLLBACK");
		next if $err !~ /statement timeout/;
		++$cancelled;
		my $late = time - $start - $timeout / 1000;
		$latest = $late if $late > $latest;
	}
	cmp_ok($cancelled, '>=', 2, "$columns: $cancelled builds of some $whole s were cancelled");
	cmp_ok($latest, '<', 2, "$columns: cancelled builds ended within $latest s");
}
{
	my ($handle, $pid, $stderr) = start_statement('sets', 'CREATE INDEX sets_tags ON sets USING matchcount (tags int4_array_minhash_ops)');
	my $start = time;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$handle->finish;
	cmp_ok(time - $start, '<', 2, 'pg_cancel_backend ends a build of signatures at once');
	like($$stderr, qr/canceling statement due to user request/, 'and says so');
}
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'sets_tags'"), 0, 'no index of sets is left');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, 'searches go on after cancelled builds of sets');
is(engine_pid($node), $engine, 'it is still one engine');

# VACUUM's merge: after a timeout at any moment the session goes on outside of a transaction.
$node->safe_psql('postgres', q{
	CREATE TABLE grown (id int, v vector(128));
	INSERT INTO grown SELECT 0, v FROM big LIMIT 3000;
	CREATE INDEX grown_v ON grown USING graph (v);
	INSERT INTO grown SELECT 1, v FROM big LIMIT 20000});
my $ended = 0;
for my $timeout (100, 200, 300, 500, 800, 1200)
{
	($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = $timeout; VACUUM grown;\nRESET statement_timeout;\nSELECT 'goes on';\nROLLBACK;\nSELECT 'still';",
		on_error_stop => 0);
	next if $err !~ /canceling statement/;
	$ended++ if $err =~ /cleaning up index/;
	is($out, "goes on\nstill", "a session goes on after a VACUUM that took longer than $timeout ms");
	last if $ended;
}
is($ended, 1, 'a merge in VACUUM was cancelled') or diag($err);
is($node->safe_psql('postgres', "SELECT live_rows FROM pgwarp_check('grown_v', true)"), 23000, 'and the index is whole');

$node->stop;
done_testing();
