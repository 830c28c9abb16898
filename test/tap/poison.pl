# A request that crashes the engine: one retry, then a clear error for that query alone and a quarantined index.
# Needs an engine built with PGWARP_FAULTS (fault 1 = a search that aborts the engine).
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('poison');
load_grid($node, 'items', 2000);
load_grid($node, 'others', 2000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v); CREATE INDEX others_v ON others USING ivfadc (v)');
my $engine = wait_for_engine($node, 'items');
my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 1';
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

my ($rc, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off; SET pgwarp.fault = 1; $search; RESET pgwarp.fault; $search",
	on_error_stop => 0);
if ($err =~ /built without fault points/)
{
	plan skip_all => 'the engine was built without fault points';
}
like($err, qr/ERROR:.*engine/i, 'the poisonous query gets an error');
unlike($err, qr/server closed the connection/, 'the session is not lost');
is($out, 1, 'the same session goes on');

is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT id FROM others ORDER BY v <-> (SELECT v FROM others WHERE id = 2) LIMIT 1"),
	2, 'another index is served');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), 1, 'the quarantined index is served without the fault');
isnt(engine_pid($node), $engine, 'a new engine answers');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $postmaster, 'the server did not restart');
like(slurp_file($node->logfile), qr/quarantin/, 'the log tells of the quarantine');

$node->stop;
done_testing();
