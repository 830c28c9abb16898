# Large arrays of a build are written by several processes, past the shared buffers: the bytes are the same for any
# number of processes, on disk, on a standby, after crashes and in tables that are logged in other ways.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('pages');
$node->init(allows_streaming => 1, extra => ['--data-checksums']);
PgwarpTest::configure($node, max_worker_processes => 16, max_parallel_workers => 12, max_wal_size => "'1GB'",
	wal_keep_size => "'512MB'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pgwarp');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('pages_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
sub sql { return $node->safe_psql('postgres', @_) }

# 10,000 rows of 1,000 dimensions: 40 MB.
sub fill
{
	my ($kind, $table) = @_;
	return qq{CREATE $kind TABLE $table (id int, v vector(1000)); ALTER TABLE $table ALTER v SET STORAGE plain;
		ALTER TABLE $table SET (parallel_workers = 3);
		INSERT INTO $table SELECT i, (array_fill(i::real, ARRAY[500]) || array_fill((i % 7)::real, ARRAY[500]))::vector
			FROM generate_series(1, 10000) i;};
}

# The content of the pages, without the bytes that differ by the page's place in the log and the build's random numbers:
# LSN and checksum in front, generation and segment at the end, and the first and last page.
sub arrays_of
{
	my ($server, $path) = @_;
	$server->safe_psql('postgres', 'CHECKPOINT');
	my $bytes = slurp_file($server->data_dir . "/$path");
	return join '', map { substr($bytes, $_ * 8192 + 10, 8192 - 10 - 24) } 1 .. length($bytes) / 8192 - 2;
}

sub path_of { return sql("SELECT pg_relation_filepath('$_[0]')") }

sub build
{
	my ($workers, $index) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET client_min_messages = debug1; SET max_parallel_maintenance_workers = $workers; CREATE INDEX $index");
	is($rc, 0, "$index with $workers workers") or diag($err);
	return $err =~ /writing pages with (\d+) parallel workers/ ? $1 : 0;
}

sql(fill('', 'items'));
for my $method ('exact', 'ivfadc', 'pqtree')
{
	my $form = { exact => '(v)', ivfadc => '(v) WITH (lists = 4, refine = full)', pqtree => '(v) WITH (refine = full)' }->{$method};
	is(build(0, "items_v ON items USING $method $form"), 0, 'the leader writes alone');
	my $alone = arrays_of($node, path_of('items_v'));
	sql('DROP INDEX items_v');
	is(build(3, "items_v ON items USING $method $form"), 3, 'workers write');
	my $path = path_of('items_v');
	my $together = arrays_of($node, $path);
	ok($alone eq $together, "$method: the same arrays with and without workers");
	same_rows($node, 'items', "$method: right answers") if $method eq 'exact';
	$node->wait_for_catchup($standby);
	ok(arrays_of($standby, $path) eq $together, "$method: a standby has the same pages");
	same_rows($standby, 'items', 'right answers on the standby') if $method eq 'exact';
	$node->stop('immediate');
	$node->start;
	ok(arrays_of($node, $path) eq $together, "$method: the same pages after a crash");
	same_rows($node, 'items', 'right answers after a crash') if $method eq 'exact';
	sql('DROP INDEX items_v');
}
$standby->stop;

# Cancelled at any time, a build leaves nothing.
sql('CREATE INDEX items_v ON items USING exact (v)');
my ($cancelled, $files) = (0, scalar(glob_files()));
sub glob_files { return () = glob($node->data_dir . '/base/*/*') }
for my $timeout (map { 40 * $_ } 1 .. 8)
{
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET statement_timeout = $timeout; SET max_parallel_maintenance_workers = 3; REINDEX INDEX items_v");
	$cancelled++ if $err =~ /canceling statement/;
	ok($rc == 0 || $err =~ /canceling statement/, "stopped after $timeout ms") or diag($err);
}
note("$cancelled of 8 were cancelled");
same_rows($node, 'items', 'right answers after rebuilds, some of them cancelled');
sql('CHECKPOINT');
cmp_ok(scalar(glob_files()), '<=', $files + 1, 'no files are left');

# Concurrently, and a partial index.
sql('DROP INDEX items_v; SET max_parallel_maintenance_workers = 3; CREATE INDEX CONCURRENTLY items_v ON items USING exact (v)');
same_rows($node, 'items', 'right answers of an index built concurrently');

# Included columns, sorted by the same workers; every page is linked and every row has its own.
sql('DROP INDEX items_v');
is(build(3, 'items_v ON items USING ivfadc (v) INCLUDE (id) WITH (lists = 4, refine = full)'), 3, 'workers write beside included columns');
my $check = "SELECT live_rows, unused_pages FROM pgwarp_check('items_v', true)";
is(sql($check), '10000|0', 'whole');
$node->stop('immediate');
$node->start;
is(sql($check), '10000|0', 'whole after a crash');
sql('INSERT INTO items SELECT id + 10000, v FROM items WHERE id <= 100; CALL pgwarp_merge(\'items_v\')');
is(sql($check), '10100|0', 'and when rows were merged into it');
sql('DELETE FROM items WHERE id > 10000; DROP INDEX items_v; CREATE INDEX items_v ON items USING exact (v)');

# Unlogged: kept by a shutdown, emptied by a crash. Temporary: by its session alone.
sql(fill('UNLOGGED', 'fleeting'));
is(build(3, 'fleeting_v ON fleeting USING exact (v)'), 3, 'workers write an unlogged index');
same_rows($node, 'fleeting', 'right answers from it');
$node->restart;
same_rows($node, 'fleeting', 'and after a restart');
$node->stop('immediate');
$node->start;
is(sql('SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM fleeting ORDER BY v <-> (SELECT v FROM items LIMIT 1)) s'),
	0, 'a crash empties it');
is(sql(fill('TEMP', 'own') . 'CREATE INDEX ON own USING exact (v); SET enable_seqscan = off;
	SELECT id FROM own ORDER BY v <-> (SELECT v FROM own WHERE id = 4321) LIMIT 1'), 4321, 'a temporary table');

# With wal_level = minimal, an index of a table of the same transaction is synced instead of logged.
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\narchive_mode = off\nwal_skip_threshold = 0");
$node->restart;
sql('BEGIN;' . fill('', 'young') . 'SET max_parallel_maintenance_workers = 3; CREATE INDEX young_v ON young USING exact (v); COMMIT');
$node->stop('immediate');
$node->start;
same_rows($node, 'young', 'right answers after a crash without WAL of the pages');

$node->stop;
$node->command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'the checksum of every page is right');
done_testing();
