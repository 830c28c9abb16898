# knn_search, knn_graph and kmeans beside other sessions: what a snapshot doesn't see, cancels, bounded memory, an
# engine that dies, and a standby.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('functions');
load_grid($node, 'items', 20000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v); CREATE TABLE queries AS SELECT v FROM items WHERE id <= 200');
my $zeros = q{SELECT count(*) FROM knn_search('items_v', 'SELECT v FROM queries', 3) WHERE distance = 0};
my $all = q{SELECT count(*), count(DISTINCT s.tid) = (SELECT count(DISTINCT i.ctid) FROM items i JOIN knn_search('items_v', 'SELECT v FROM queries', 3) t ON t.tid = i.ctid)
	FROM knn_search('items_v', 'SELECT v FROM queries', 3) s};

# rows of other transactions
my $writer = $node->background_psql('postgres');
my $reader = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_safe('BEGIN; INSERT INTO items SELECT 50000 + id, v FROM items WHERE id <= 200');
is($node->safe_psql('postgres', $zeros), '200', 'uncommitted rows are not found');
is($writer->query_safe($zeros), '400', 'but by their own transaction');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe($zeros), '200', 'a snapshot taken before the commit');
$writer->query_safe('COMMIT');
is($reader->query_safe($zeros), '200', 'sees them no more afterwards');
is($node->safe_psql('postgres', $zeros), '400', 'a new one does');
$writer->query_safe('BEGIN; DELETE FROM items WHERE id > 50000');
is($node->safe_psql('postgres', $zeros), '400', 'rows that are being deleted are found');
is($writer->query_safe($zeros), '200', 'but not by who deletes them');
$writer->query_safe('ROLLBACK; BEGIN; INSERT INTO items SELECT 60000 + id, v FROM items WHERE id <= 200; ROLLBACK');
is($node->safe_psql('postgres', $zeros), '400', 'rolled back rows are not found');
$writer->query_safe('DELETE FROM items WHERE id > 50000');
is($reader->query_safe($zeros), '200', 'an old snapshot is still itself');
$reader->query_safe('COMMIT');
$node->safe_psql('postgres', 'VACUUM items');
is($node->safe_psql('postgres', $zeros), '200', 'dead rows are not found after VACUUM');
is($node->safe_psql('postgres', $all), '600|t', 'every tid is a row');

# an index that is newer than the snapshot, over broken HOT chains
$node->safe_psql('postgres', 'CREATE TABLE chains (id int, v vector(2)) WITH (fillfactor = 50); INSERT INTO chains SELECT i, ARRAY[i, i]::vector(2) FROM generate_series(1, 50) i');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM chains');
$node->safe_psql('postgres', 'UPDATE chains SET v = v * v; CREATE INDEX chains_v ON chains USING exact (v)');
my $refused = $reader->query(q{SELECT count(*) FROM knn_search('chains_v', ARRAY['[1,1]'::vector], 3)});
is($refused, '', 'an index over chains that the snapshot would see broken is refused');
like($reader->{stderr}, qr/too new for this transaction/, 'with a reason');
$reader->{stderr} = '';
$reader->query_safe('ROLLBACK');
is($node->safe_psql('postgres', q{SELECT count(*) FROM knn_search('chains_v', ARRAY['[1,1]'::vector], 3)}), '3', 'a new transaction uses it');

# serializable: two searches and two inserts that miss one another
my $insert = 'INSERT INTO chains VALUES (%d, \'[%d,0]\')';
my $search = q{SELECT count(*) FROM knn_search('chains_v', ARRAY['[1,1]'::vector], 3)};
for my $session ($writer, $reader) { $session->query_safe("BEGIN ISOLATION LEVEL SERIALIZABLE; $search"); }
$writer->query_safe(sprintf($insert, 100, 100));
$reader->query_safe(sprintf($insert, 101, 101));
$writer->query_safe('COMMIT');
$reader->query('COMMIT');
like($reader->{stderr}, qr/could not serialize access/, 'write skew is noticed');
$reader->{stderr} = '';

# cancels
for my $statement (
	q{SELECT count(*) FROM knn_graph('items_v', 50)},
	q{SELECT count(*) FROM (SELECT knn_graph('items_v', 50)) s},
	q{SELECT count(*) FROM knn_search('items_v', 'SELECT v FROM items', 50)},
	q{SELECT count(*) FROM kmeans('items', 'v', 5000, 1000, 1, 20000)})
{
	# A GPU is through with the clusters within some milliseconds.
	my $timeout = $statement =~ /kmeans/ ? '5ms' : '50ms';
	my (undef, undef, $err) = $node->psql('postgres', "SET statement_timeout = '$timeout'; $statement");
	like($err, qr/canceling statement due to statement timeout/, "cancelled: $statement");
}
is($node->safe_psql('postgres', $zeros), '200', 'searches go on');

# memory
sub private_kb
{
	my ($pid) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;
	return $kb;
}
$reader->query_safe('SET pgwarp.verify_results = off');
my $backend = $reader->query_safe('SELECT pg_backend_pid()');
my $stream = q{SELECT count(*) FROM (SELECT knn_graph('items_v', 20, 0, %d) AS edge OFFSET 0) s};
$reader->query_safe(sprintf($stream, 100));
my $before = private_kb($backend);
is($reader->query_safe(sprintf($stream, 100000)), '400000', 'four hundred thousand edges');
cmp_ok(private_kb($backend) - $before, '<', 8 * 1024, 'do not stay in memory');
$before = private_kb($backend);
is($reader->query_safe(q{SELECT count(*) FROM knn_search('items_v', 'SELECT v FROM items', 20)}), '400000', 'nor does knn_search');
cmp_ok(private_kb($backend) - $before, '<', 16 * 1024, 'beyond work_mem');

# the engine dies
my $engine = engine_pid($node);
kill 'KILL', $engine;
is($reader->query_safe($zeros), '200', 'a killed engine is started again for knn_search');
isnt(engine_pid($node), $engine, 'another one');
kill 'KILL', engine_pid($node);
is($reader->query_safe(q{SELECT count(*) FROM knn_graph('items_v', 3)}), '60000', 'and for knn_graph');
kill 'KILL', engine_pid($node);
is($reader->query_safe(q{SELECT count(*) FROM kmeans('items', 'v', 10)}), '10', 'and for kmeans');
is($node->safe_psql('postgres', 'SELECT DISTINCT builds FROM pgwarp_status'), '0', 'no build is left behind');

$writer->quit;
$reader->quit;

# a standby
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('functions_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $zeros), '200', 'a standby searches');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM knn_graph('items_v', 3)}), '60000', 'has a graph');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM kmeans('items', 'v', 10)}), '10', 'and clusters');
$standby->stop;
$node->stop;
done_testing();
