# Sessions without common shared memory: it has a name of its own in each build, and where the server has no shared
# memory left, searches, INSERT and merges go on, with one engine for all. The second part needs a build with
# PGWARP_FAULTS.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('shared_memory');
load_grid($node, 'items', 500);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
wait_for_engine($node, 'items');
my $search = 'SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 3) LIMIT 1';

SKIP:
{
	skip 'shared memory has another place there', 1 if $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
	like($node->safe_psql('postgres', "SELECT string_agg(name, ', ') FROM pg_shmem_allocations WHERE name LIKE 'pgwarp%'"),
		qr/pgwarp \S+ slot of \d+ bytes/, 'two builds never take the same memory for theirs');
}

# A library that is preloaded has its memory reserved: these servers load it with the first session that needs it.
$node->append_conf('postgresql.conf', 'pgwarp.fault_shared_memory = on');
$node->restart;
is($node->safe_psql('postgres', $search), 3, 'no shared memory left: a search is answered');
if (slurp_file($node->logfile) !~ /no shared memory left for this session/)
{
	$node->stop;
	done_testing();
	exit;
}
my $engine = engine_pid($node);
my @sessions = map { $node->background_psql('postgres') } 1 .. 3;
is($_->query_safe($search), 3, 'so are other sessions') for @sessions;
my $inserted = 1000;
for my $session (@sessions)
{
	$inserted++;
	$session->query_safe("INSERT INTO items VALUES ($inserted, array_fill($inserted, ARRAY[16])::vector)");
	is($session->query_safe("SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = $inserted) LIMIT 1"),
		$inserted, 'INSERT goes on, and its row is found');
}
is(engine_pid($node), $engine, 'one engine serves them all');
kill 'KILL', $engine;
is($_->query_safe($search), 3, 'a new engine is started after its end') for @sessions;
isnt(engine_pid($node), $engine, 'another one');
is($node->safe_psql('postgres', 'VACUUM items; SELECT count(*) FROM items'), 503, 'VACUUM goes on');
$_->quit for @sessions;
$node->stop;
done_testing();
