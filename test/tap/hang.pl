# A device that hangs: the engine ends itself and is started again within seconds, the search that hung is refused, and
# sessions on other indexes go on without an error. Needs an engine built with PGWARP_FAULTS (fault 4 = a search whose
# device does not answer for a minute).
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_cluster('hang');

# The number of engines that began to serve since the server started.
sub engines_started
{
	my $started = () = slurp_file($node->logfile) =~ /pgwarp-engine: serving on/g;
	return $started;
}

load_grid($node, 'items', 2000);
load_grid($node, 'others', 2000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v); CREATE INDEX others_v ON others USING exact (v)');
wait_for_engine($node, 'items');
my $engines = engines_started();
my $search = 'SELECT id FROM %1$s ORDER BY v <-> (SELECT v FROM %1$s WHERE id = 3) LIMIT 1';
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# Sessions on the other index, all the time.
my $script = $node->basedir . '/search.sql';
append_to_file($script, sprintf("$search;\n", 'others'));
my ($out, $err) = ('', '');
my $pgbench = do
{
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c pgwarp.engine_timeout=60s';
	IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 14, '-f', $script, $node->connstr('postgres') ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(60));
};

# The time of one hang, until another engine serves.
my ($in, $hung_out, $hung_err) = ('SET enable_seqscan = off; SET pgwarp.fault = 4; ' . sprintf($search, 'items') . ';', '', '');
my $began = time;
my $hung = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres'), '-c', $in ],
	'<', \undef, '>', \$hung_out, '2>', \$hung_err, IPC::Run::timeout(60));
# The log shows it: a request to the next engine may wait for a thread that hangs in the same search, sent again.
usleep(50_000) while engines_started() == $engines && time - $began < 30;
# Three of them are the deadline of a wait. Where other work fills the processors, starting an engine takes longer.
my ($load) = slurp_file('/proc/loadavg') =~ /^(\S+)/;
my $most = $load > 4 ? 15 : 5;
cmp_ok(time - $began, '<', $most, "another engine serves within $most seconds, at a load of $load");
$hung->finish;
cmp_ok(time - $began, '<', 15, 'the search that hung ends');
like($hung_err, qr/ERROR:.*engine/i, 'with an error');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; ' . sprintf($search, 'items')), 3, 'its index is served');

$pgbench->finish;
unlike($err, qr/ERROR|aborted/, 'no session on the other index met an error') or diag($err);
my ($transactions) = $out =~ /actually processed: (\d+)/;
cmp_ok($transactions, '>', 100, "$transactions searches went on meanwhile");
my $log = slurp_file($node->logfile);
like($log, qr/pgwarp-engine: the device does not answer/, 'the log says why');
like($log, qr/quarantin/, 'an index whose searches hang twice is quarantined');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $postmaster, 'the server did not restart');

$node->stop;
done_testing();
