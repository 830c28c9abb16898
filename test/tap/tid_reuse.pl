# Rows that are removed between the search and the fetch, and others that get their addresses: a cursor never returns a
# row that its snapshot doesn't see, nor a row with another's distance. On the primary and on a standby.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_cluster('tid_reuse', 'autovacuum' => 'off', 'jit' => 'off', 'max_wal_senders' => 4);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('tid_reuse_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub sql { return $primary->safe_psql('postgres', @_) }

# Row i lies at i on a line. A third of the rows is deleted, and others were never committed: all of them are still in
# the index, and VACUUM may remove them whatever snapshots there are.
my $rows = 1500;
sub prepare
{
	my ($index) = @_;
	sql("DROP TABLE IF EXISTS items, asked;
		CREATE TABLE items (id int, note text, v vector(4));
		ALTER TABLE items ALTER note SET STORAGE PLAIN;
		INSERT INTO items SELECT i, 'old', ARRAY[i, 0, 0, 0]::real[]::vector FROM generate_series(1, $rows) i;
		CREATE INDEX items_v ON items USING $index;
		INSERT INTO items SELECT i, 'late', ARRAY[i, 0, 0, 0]::real[]::vector FROM generate_series($rows + 1, $rows + 200) i;
		-- the first row that is fetched, whose page stays pinned: VACUUM has nothing to do there
		INSERT INTO items VALUES (-1, repeat('x', 8090), '[0.1,0,0,0]');
		CREATE TABLE asked AS SELECT i AS id, ARRAY[i * 41 + 0.2, 0.3, 0, 0]::real[]::vector AS v FROM generate_series(0, 29) i;
		ANALYZE;
		VACUUM items");
	sql("BEGIN; INSERT INTO items SELECT i, 'aborted', ARRAY[i % 90, 0.01, 0, 0]::real[]::vector FROM generate_series(1, 300) i; ROLLBACK");
	sql('DELETE FROM items WHERE id % 3 = 0');
	return;
}

my $scan = "SELECT id, left(note, 8), round((v <-> '[0.1,0,0,0]')::numeric, 5) FROM items ORDER BY v <-> '[0.1,0,0,0]'";

# Changes of the rows while the cursor is open. They include rows that its snapshot sees, except for a cursor of a
# standby: the primary doesn't know of its snapshot, and removes them.
my $insert = 'INSERT INTO items SELECT i, %s, ARRAY[i %% 500 + %g, 0.2, 0, 0]::real[]::vector FROM generate_series(%d, %d) i';
my $vacuum = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) items';
my %meanwhile = (
	'removed' => sub { sql($vacuum) },
	'reused' => sub {
		my ($own) = @_;
		sql($vacuum);
		sql(sprintf $insert, "'new'", 0.5, 10001, 10800);
		sql(q{UPDATE items SET v = '[7,7,7,7]', note = 'moved' WHERE id % 3 = 1 AND id < 200}) if $own;
	},
	'reused and merged' => sub {
		my ($own) = @_;
		sql($vacuum);
		sql(sprintf $insert, "'new'", 0.5, 10001, 10800);
		sql(q{CALL pgwarp_merge('items_v')});
		if ($own)
		{
			sql(q{DELETE FROM items WHERE note = 'new' AND id % 2 = 0});
			sql($vacuum);
		}
		sql(sprintf $insert, "'newer'", 0.7, 20001, 20400);
	});

# Addresses in use that belonged to other rows before.
sub reused_addresses
{
	return sql("SELECT count(*) FROM items WHERE id > 10000 AND ctid < (SELECT max(ctid) FROM items WHERE note = 'late')");
}

# Ask by a cursor whose first row is fetched before, the others after it happens.
sub ask
{
	my ($node, $name, $index, $query, $plan, $happens) = @_;
	prepare($index);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my $session = $node->background_psql('postgres');
	$session->query_safe('SET enable_seqscan = off; SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET pgwarp.iterative = relaxed; BEGIN ISOLATION LEVEL REPEATABLE READ');
	$session->query_safe('SET LOCAL enable_indexscan = off') if $plan =~ /Only/;
	like($session->query_safe("EXPLAIN (COSTS OFF) $query"), $plan, "$name: the plan");
	$session->query_safe("DECLARE answer CURSOR FOR $query");
	my $answer = $session->query_safe('FETCH 1 FROM answer');
	$meanwhile{$happens}->($node == $primary);
	cmp_ok(reused_addresses(), '>', 100, "$name: addresses are used again") if $happens =~ /reused/;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	$answer .= "\n" . $session->query_safe('FETCH ALL FROM answer');
	# The same snapshot, by the table alone.
	$session->query_safe('SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL pgwarp.knn_batch = off');
	my $expected = $session->query_safe($query =~ /knn_search/ ? $scan : $query);
	# Approximate searches may find rows late.
	($answer, $expected) = map { join "\n", sort split /\n/ } $answer, $expected if $index =~ /ivfadc|pqtree|graph/ && $query !~ /asked/;
	cmp_ok(scalar(split /\n/, $expected), '>', 100, "$name: many rows");
	is($answer, $expected, "$name: what the snapshot sees, and nothing else");
	$session->query_safe('COMMIT');
	$session->quit;
	return;
}

my $only = "SELECT id, round((v <-> '[0.1,0,0,0]')::numeric, 5) FROM items ORDER BY v <-> '[0.1,0,0,0]'";
my $join = 'SELECT asked.id AS a, n.id, left(note, 8), round(d::numeric, 5) FROM asked CROSS JOIN LATERAL
	(SELECT id, note, v <-> asked.v AS d FROM items ORDER BY v <-> asked.v LIMIT 7) n';
my $search = "SELECT id, left(note, 8), round(distance::numeric, 5) FROM knn_search('items_v', ARRAY['[0.1,0,0,0]']::vector[], 3000) JOIN items ON items.ctid = tid";
my $approximate = 'ivfadc (v) WITH (lists = 20)';
for my $node ($primary, $standby)
{
	my $where = $node->name =~ /standby/ ? 'standby, ' : '';
	for my $happens ('removed', 'reused', 'reused and merged')
	{
		ask($node, "${where}exact, $happens", 'exact (v)', $scan, qr/Index Scan using items_v/, $happens);
		ask($node, "${where}index-only, $happens", 'exact (v) INCLUDE (id)', $only, qr/Index Only Scan using items_v/, $happens);
		ask($node, "${where}ivfadc, index-only, $happens", 'ivfadc (v) INCLUDE (id) WITH (lists = 20, refine = full)', $only, qr/Index Only Scan using items_v/, $happens);
		ask($node, "${where}ivfadc, $happens", $approximate, $scan, qr/Index Scan using items_v/, $happens);
		ask($node, "${where}ivfadc without vectors, $happens", 'ivfadc (v) WITH (lists = 20, refine = none)', $scan, qr/Index Scan using items_v/, $happens);
		ask($node, "${where}pqtree, index-only, $happens", 'pqtree (v) INCLUDE (id) WITH (refine = full)', $only, qr/Index Only Scan using items_v/, $happens);
		ask($node, "${where}pqtree without vectors, $happens", 'pqtree (v) WITH (refine = none)', $scan, qr/Index Scan using items_v/, $happens);
		ask($node, "${where}graph, index-only, $happens", 'graph (v) INCLUDE (id)', $only, qr/Index Only Scan using items_v/, $happens);
		ask($node, "${where}graph of bits, $happens", 'graph (v) WITH (vectors = bits)', $scan, qr/Index Scan using items_v/, $happens);
		ask($node, "${where}join, $happens", 'exact (v)', $join, qr/KnnBatch/, $happens);
		ask($node, "${where}join, index-only, $happens", 'exact (v) INCLUDE (id, note)', $join, qr/KnnBatch.*Index Only Scan/s, $happens);
		ask($node, "${where}knn_search, $happens", 'exact (v)', $search, qr/Tid Scan/, $happens);
	}
}
unlike(slurp_file($_->logfile), qr/(ERROR|PANIC): /, $_->name . ': not an error') for $primary, $standby;
$standby->stop;
$primary->stop;
done_testing();
