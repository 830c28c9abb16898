# A hundred thousand searches in one statement: the backend and the engine end as large as they were.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('rescan');
load_grid($node, 'items', 2000);
$node->safe_psql('postgres', 'ALTER TABLE items ALTER id SET NOT NULL; CREATE INDEX items_v ON items USING ivfadc (v)');

# Memory of its own, without the buffer pool.
sub private_kb
{
	my ($pid) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;
	return $kb;
}

my $session = $node->background_psql('postgres');
$session->query_safe('SET enable_seqscan = off; SET enable_memoize = off; SET pgwarp.verify_results = off');
my $backend = $session->query_safe('SELECT pg_backend_pid()');
my $statement = 'SELECT count(*), max(n.id) > 1000 FROM generate_series(1, %d) g,
	LATERAL (SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = g %% 2000 + 1) LIMIT 3) n';
is($session->query_safe(sprintf($statement, 30000)), '90000|t', 'thirty thousand searches');
my $engine = engine_pid($node);
my ($backend_kb, $engine_kb) = (private_kb($backend), private_kb($engine));
is($session->query_safe(sprintf($statement, 100000)), '300000|t', 'a hundred thousand searches');
is(engine_pid($node), $engine, 'by the same engine');

cmp_ok(private_kb($backend) - $backend_kb, '<', 4 * 1024, 'the backend did not grow');
cmp_ok(private_kb($engine) - $engine_kb, '<', 4 * 1024, 'nor did the engine');
$session->quit;
$node->stop;
done_testing();
