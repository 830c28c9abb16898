# knn_search, knn_graph and kmeans beside other sessions: rows that a snapshot doesn't see, cancels, bounded memory, an
# engine that dies, and a standby.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run;
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

# Beside sessions that update in HOT chains and out of them, delete, insert, roll back and vacuum: each snapshot has its
# answers, the same ones from its first to its last statement.
my $snapshots = $ENV{PGWARP_FUNCTIONS_SNAPSHOTS} || 10;
$node->safe_psql('postgres', q{
	CREATE TABLE busy (id int, note int, v vector(4)) WITH (fillfactor = 60, autovacuum_enabled = off);
	SELECT setseed(0.5);
	CREATE FUNCTION random_vector() RETURNS vector LANGUAGE sql VOLATILE AS 'SELECT array_agg(random())::vector(4) FROM generate_series(1, 4)';
	INSERT INTO busy SELECT i, 0, random_vector() FROM generate_series(1, 400) i;
	CREATE TABLE busy_queries AS SELECT i AS id, random_vector() AS v FROM generate_series(1, 40) i;
	CREATE INDEX busy_v ON busy USING exact (v);
	-- answers that are not the rows that a scan of the table finds, and edges that are not
	CREATE FUNCTION wrong_answers() RETURNS bigint LANGUAGE sql VOLATILE AS $$
		WITH found AS (
			SELECT s.*, row_number() OVER (PARTITION BY s.query ORDER BY s.ordinality) AS rank
			FROM knn_search('busy_v', 'SELECT v FROM busy_queries ORDER BY id', 7) WITH ORDINALITY s),
		truth AS (
			SELECT q.id AS query, n.* FROM busy_queries q, LATERAL (
				SELECT d, row_number() OVER (ORDER BY d) AS rank FROM (SELECT b.v <-> q.v AS d FROM busy b ORDER BY 1 LIMIT 7) o) n)
		SELECT count(*) FROM found f FULL JOIN truth t USING (query, rank) LEFT JOIN busy b ON b.ctid = f.tid
			LEFT JOIN busy_queries q ON q.id = query
		WHERE (f.distance = t.d AND b.v <-> q.v = f.distance) IS NOT TRUE $$;
	CREATE FUNCTION wrong_edges() RETURNS bigint LANGUAGE sql VOLATILE AS $$
		WITH found AS (
			SELECT g.*, row_number() OVER (PARTITION BY g.tid ORDER BY g.ordinality) AS rank FROM knn_graph('busy_v', 3) WITH ORDINALITY g),
		truth AS (
			SELECT a.ctid AS tid, n.* FROM busy a, LATERAL (
				SELECT d, row_number() OVER (ORDER BY d) AS rank FROM (SELECT b.v <-> a.v AS d FROM busy b WHERE b.ctid <> a.ctid ORDER BY 1 LIMIT 3) o) n)
		SELECT count(*) FROM found f FULL JOIN truth t USING (tid, rank) LEFT JOIN busy a ON a.ctid = tid LEFT JOIN busy b ON b.ctid = f.neighbor
		WHERE (f.distance = t.d AND a.v <-> b.v = f.distance) IS NOT TRUE $$;
	ALTER FUNCTION wrong_answers() SET enable_indexscan = off;
	ALTER FUNCTION wrong_edges() SET enable_indexscan = off;
	-- what the answers are, to the version of each row
	CREATE FUNCTION answers() RETURNS text LANGUAGE sql VOLATILE AS $$
		SELECT md5(string_agg(format('%s %s %s %s', s.query, s.tid, b.id, b.note), ',' ORDER BY s.query, s.distance))
		FROM knn_search('busy_v', 'SELECT v FROM busy_queries ORDER BY id', 7) s LEFT JOIN busy b ON b.ctid = s.tid $$;
});
my %scripts = (
	churn => q{
		\set id random(1, 400)
		UPDATE busy SET note = note + 1 WHERE id = :id;
		UPDATE busy SET v = v + v WHERE id = 401 - :id AND note % 2 = 1;
		DELETE FROM busy WHERE id = 1000 + :id OR (id = :id AND note % 5 = 4);
		INSERT INTO busy VALUES (1000 + :id, 0, random_vector()), (:id, 0, random_vector());
		BEGIN;
		INSERT INTO busy SELECT 5000 + id, 0, v FROM busy_queries;
		UPDATE busy SET note = -1, v = (SELECT v FROM busy_queries WHERE id = 1) WHERE id = :id;
		DELETE FROM busy WHERE id % 7 = :id % 7;
		ROLLBACK;
	},
	# to truncate the table it would wait for its readers
	vacuum => 'VACUUM (TRUNCATE off) busy;',);
my @churn = ($node->installed_command('pgbench'), '-n', '-c', '2', '-T', '600', '-R', '100', '-h', $node->host, '-p', $node->port);
for my $name (sort keys %scripts)
{
	my $path = $node->basedir . "/$name.sql";
	PostgreSQL::Test::Utils::append_to_file($path, $scripts{$name});
	push @churn, '-f', $path . ($name eq 'vacuum' ? '@1' : '@5');
}
my $churn = IPC::Run::start([ @churn, 'postgres' ], '>', \my $churn_out, '2>', \my $churn_err);
my ($wrong, $moved) = (0, 0);
for (1 .. $snapshots)
{
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $first = $reader->query_safe('SELECT answers()');
	$wrong += $reader->query_safe('SELECT wrong_answers() + wrong_edges()');
	$reader->query_safe('SELECT pg_sleep(0.1)');
	$moved++ if $first ne $reader->query_safe('SELECT answers()');
	$wrong += $reader->query_safe('SELECT wrong_answers() + wrong_edges()');
	$reader->query_safe('COMMIT');
	# read committed: a snapshot for each statement
	$wrong += $reader->query_safe('SELECT wrong_answers() + wrong_edges()') for 1 .. 3;
}
ok($churn->pumpable, 'the writers are still at it') or diag($churn_err);
ok($node->poll_query_until('postgres', q{SELECT n_tup_hot_upd > 100 AND n_tup_upd > n_tup_hot_upd + 100 FROM pg_stat_user_tables WHERE relname = 'busy'}), 'there were updates in HOT chains and out of them');
$churn->signal('TERM');
$churn->finish;
is($wrong, 0, "$snapshots snapshots beside writers: every answer and every edge is right");
is($moved, 0, 'and the same, row version by row version, as long as the snapshot lasts');

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

# Locks: the table comes before the index, as in DROP INDEX, so that neither waits for the other.
$node->safe_psql('postgres', q{CREATE TABLE doors (v vector(2)); INSERT INTO doors SELECT ARRAY[i, i]::vector FROM generate_series(1, 50) i});
for my $call ("pgwarp_recall('doors_v', 1, 10)", "knn_graph('doors_v', 1)", "knn_search('doors_v', 'SELECT v FROM queries_of_doors', 1)", "pgwarp_check('doors_v', true)")
{
	$node->safe_psql('postgres', 'CREATE INDEX doors_v ON doors USING exact (v)');
	my $offset = -s $node->logfile;
	my ($dropper, $caller) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	$dropper->query_safe('BEGIN; LOCK TABLE doors IN ACCESS EXCLUSIVE MODE');
	$caller->query_until(qr/begun/, "\\echo begun\nSELECT count(*) FROM $call;\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE relation = 'doors'::regclass AND NOT granted") or die "$call does not wait";
	$dropper->query('DROP INDEX doors_v; COMMIT');
	$caller->quit;
	$dropper->quit;
	unlike(slurp_file($node->logfile, $offset), qr/deadlock detected/, "$call: no deadlock with DROP INDEX");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS doors_v');
}

# A partition of a partition goes while bm25_query() waits: the statistics are those of the others.
{
	$node->safe_psql('postgres', q{
		CREATE TABLE pages (id int, words tsvector) PARTITION BY RANGE (id);
		CREATE TABLE pages_1 PARTITION OF pages FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);
		CREATE TABLE pages_11 PARTITION OF pages_1 FOR VALUES FROM (0) TO (50);
		CREATE TABLE pages_12 PARTITION OF pages_1 FOR VALUES FROM (50) TO (100);
		INSERT INTO pages SELECT i, repeat('cat ', i % 3)::tsvector FROM generate_series(0, 99) i;
		CREATE INDEX pages_words ON pages USING matchcount (words tsvector_bm25_ops)});
	my ($dropper, $caller) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	$dropper->query_safe('BEGIN; DROP TABLE pages_11');
	my $offset = -s $node->logfile;
	$caller->query_until(qr/begun/, "\\echo begun\nSELECT bm25_query('pages_words', 'cat'::tsvector);\n");
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted") or die 'bm25_query() does not wait';
	$dropper->query_safe('COMMIT');
	like($caller->query("SELECT bm25_query('pages_words', 'cat'::tsvector)::text = bm25_query(indexrelid, 'cat'::tsvector)::text FROM pg_index WHERE indrelid = 'pages_12'::regclass"),
		qr/^t$/m, 'of the partitions that are left');
	$_->quit for $dropper, $caller;
	unlike(slurp_file($node->logfile, $offset), qr/ERROR/, 'a partition that goes is no error');
}

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
