# Searches without end: neither a session of many statements nor many short sessions leave memory or descriptors behind,
# in the backend or in the engine. PGWARP_TORTURE=full: 100,000 statements and 10,000 sessions.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $full = ($ENV{PGWARP_TORTURE} // '') eq 'full';
my $statements = $full ? 100_000 : 20_000;    # a session of some seconds, in which it is found
my $sessions = $full ? 10_000 : 200;
my $slack_kb = 4 * 1024;    # of allocators; in the full run, 40 bytes a search

my $node = new_cluster('memory', 'jit' => 'off', 'autovacuum' => 'off');

sub sql { return $node->safe_psql('postgres', @_) }

# Tables with rows that came after their indexes: so that delta rows are searched too.
for my $method (methods($node))
{
	load_grid($node, "items_$method", 4000);
	sql(qq{
		CREATE INDEX ON items_$method USING $method (v);
		INSERT INTO items_$method SELECT id + 4000, v FROM items_$method WHERE id <= 3000;
		ANALYZE items_$method;
	});
}
my $script = $node->basedir . '/search.sql';
append_to_file($script, join '', map { qq{
	\\set row random(1, 7000)
	SELECT id FROM items_$_ ORDER BY v <-> (SELECT v FROM items_$_ WHERE id = :row) LIMIT 10;
} } methods($node));

# Private memory of a process, without the buffer pool, and its open descriptors.
sub footprint
{
	my ($pid) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;
	my @descriptors = glob "/proc/$pid/fd/*";
	return { kb => $kb, descriptors => scalar @descriptors };
}

sub flat
{
	my ($before, $after, $name) = @_;
	note "$name: $before->{kb} kB and $before->{descriptors} descriptors before, $after->{kb} kB and $after->{descriptors} after";
	cmp_ok($after->{kb} - $before->{kb}, '<', $slack_kb, "$name: memory is flat");
	cmp_ok($after->{descriptors} - $before->{descriptors}, '<=', 2, "$name: so are open descriptors");
	return;
}

# pgbench with its options; each transaction makes three searches.
sub start_searches
{
	my ($transactions, @options) = @_;
	local $ENV{PGAPPNAME} = 'searches';
	my @command = ('pgbench', '-n', '-t', $transactions, '-f', $script, @options, $node->connstr('postgres'));
	return IPC::Run::start(\@command, '<', \undef, '>', '/dev/null', '2>', $node->basedir . '/pgbench.log');
}

$ENV{PGOPTIONS} = '-c enable_seqscan=off -c pgwarp.verify_results=off';
start_searches(1000)->finish or die slurp_file($node->basedir . '/pgbench.log');    # what a warm engine takes
my $engine = engine_pid($node);
my $plan = sql('EXPLAIN SELECT id FROM items_ivfadc ORDER BY v <-> (SELECT v FROM items_ivfadc WHERE id = 1) LIMIT 10');
like($plan, qr/Index Scan using items_ivfadc_v_idx/, 'the index is searched');

# One session: measured after a tenth of its statements, and near their end.
my $engine_before = footprint($engine);
my $run = start_searches($statements / 2, '-M', 'prepared');
my $done = sub {
	return sql(q{SELECT coalesce(sum(searches), 0)::bigint FROM pgwarp_status});
};
my $first = $done->();
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'searches'}) or die 'no session';
my $backend = sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'searches'});
usleep(100_000) while $done->() < $first + $statements / 10;
my $backend_before = footprint($backend);
my $backend_after = $backend_before;
while (sql("SELECT count(*) FROM pg_stat_activity WHERE pid = $backend") == 1)
{
	my $now = eval { footprint($backend) };
	$backend_after = $now if defined $now && defined $now->{kb};
	usleep(200_000);
}
ok($run->finish, "$statements statements in one session") or diag slurp_file($node->basedir . '/pgbench.log');
cmp_ok($done->() - $first, '>=', $statements * 0.9, 'were searches');
flat($backend_before, $backend_after, 'the backend');
flat($engine_before, footprint($engine), 'the engine');

# Many sessions, each for a transaction.
my $before = footprint($engine);
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : die;
my $postmaster_before = footprint($postmaster);
ok(start_searches($sessions, '-C')->finish, "$sessions sessions") or diag slurp_file($node->basedir . '/pgbench.log');
is(engine_pid($node), $engine, 'the same engine all the time');
flat($before, footprint($engine), 'the engine');
flat($postmaster_before, footprint($postmaster), 'the postmaster');
is(sql(q{SELECT DISTINCT connections < 10 FROM pgwarp_status}), 't', 'no connection is left');
$node->stop;
done_testing();
