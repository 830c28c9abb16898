# Large indexes are loaded by a background worker: the load goes on though its query is gone.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $rows = "SELECT i, (SELECT array_agg(hashint8(i::bigint * 1009 + d) % 1000) FROM generate_series(1, 1000) d)::real[]::vector
	FROM generate_series(1, 5000) i";
my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 5) LIMIT 3';
my $resident = "SELECT count(*) = 1 FROM pgwarp_status WHERE index = 'items_v'::regclass AND NOT loading";

my $node = new_cluster('load', max_connections => 40);
$node->safe_psql('postgres', "CREATE TABLE items (id int PRIMARY KEY, v vector(1000)); INSERT INTO items $rows;
	CREATE INDEX items_v ON items USING exact (v)");
my $truth = $node->safe_psql('postgres', "SET enable_indexscan = off; $search");

# The query gives up at once, the load goes on.
for my $round (1 .. 3)
{
	$node->safe_psql('postgres', "SELECT pgwarp_release('items_v')");
	is($node->safe_psql('postgres', $resident), 'f', "round $round: not resident");
	my ($rc, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off; SET pgwarp.load_wait = '1ms'; $search");
	like($err, qr/index "items_v" is still being loaded/, "round $round: the query does not wait longer than told");
	ok($node->poll_query_until('postgres', $resident), "round $round: the index is loaded all the same");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), $truth, "round $round: and answers");
}
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pgwarp loader'"),
	'workers end with their load');

# Sixteen sessions find it missing.
$node->safe_psql('postgres', "SELECT pgwarp_release('items_v')");
my $script = $node->basedir . '/search.sql';
append_to_file($script, "SET enable_seqscan = off;\n$search;\n");
$node->command_like([ 'pgbench', '-n', '-c', 16, '-t', 1, '-f', $script, $node->connstr('postgres') ],
	qr{number of transactions actually processed: 16/16}, 'all are answered');
is($node->safe_psql('postgres', $resident), 't', 'and it is resident once');

# Where an index is searched, rows that are inserted one by one reach the engine before a search; many at once do not.
{
	my $arrived = "SELECT delta_rows FROM pgwarp_status WHERE index = 'items_v'::regclass";
	my $writer = $node->background_psql('postgres');
	$writer->query_safe('INSERT INTO items SELECT 10001, v FROM items WHERE id = 301');
	$node->safe_psql('postgres', "SET enable_seqscan = off; $search");
	is($node->safe_psql('postgres', $arrived), 1, 'a row is there for a search');
	$writer->query_safe("BEGIN; INSERT INTO items SELECT 20000 + id, v FROM items WHERE id = $_; COMMIT") for 302 .. 304;
	ok($node->poll_query_until('postgres', "$arrived", '4'), 'three more come with their transactions');
	$writer->query_safe('BEGIN; INSERT INTO items SELECT 30000 + id, v FROM items WHERE id BETWEEN 101 AND 200; COMMIT');
	ok($node->poll_query_until('postgres', "$arrived", '36'), 'of many the first');
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), $truth, 'and a search brings the rest');
	is($node->safe_psql('postgres', $arrived), 104, 'all of them');
	# An engine that does not answer delays no insert, with or without a connection to it.
	my $engine = engine_pid($node);
	kill 'STOP', $engine;
	my $began = time;
	$writer->query_safe("INSERT INTO items SELECT 40000 + id, v FROM items WHERE id = $_") for 305 .. 310;
	$node->safe_psql('postgres', join ';', map { "INSERT INTO items SELECT 40000 + id, v FROM items WHERE id = $_" } 311 .. 320);
	cmp_ok(time - $began, '<', 2, 'rows are inserted beside an engine that stands still');
	kill 'CONT', $engine;
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), $truth, 'which answers when it goes on');
	is($node->safe_psql('postgres', $arrived), 120, 'with all rows');
	$writer->quit;
	$node->safe_psql('postgres', "DELETE FROM items WHERE id > 5000");
}

# A session itself loads an index that no other process can read.
is($node->safe_psql('postgres', "SET enable_seqscan = off; BEGIN; CREATE INDEX other ON items USING exact (v); DROP INDEX items_v; $search; ROLLBACK"),
	$truth, 'an index of this transaction');
is($node->safe_psql('postgres', "SET enable_seqscan = off; CREATE TEMP TABLE items (id int, v vector(1000)); INSERT INTO items $rows;
	CREATE INDEX ON items USING exact (v); $search"), $truth, 'an index of a temporary table');

# A load goes on while another session waits for a lock on the table.
{
	$node->safe_psql('postgres', "SELECT pgwarp_release('items_v')");
	my $reader = $node->background_psql('postgres');
	$reader->query_safe('SET enable_seqscan = off; BEGIN; SELECT count(*) FROM items');
	my $locker = $node->background_psql('postgres');
	$locker->query_until(qr/start/, "\\echo start\nREINDEX INDEX items_v;\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted");
	is($reader->query_safe($search), $truth, 'a session ahead of a waiting lock is answered');
	$reader->query_safe('COMMIT');
	$reader->quit;
	$locker->quit;
}
$node->stop;

# With all worker slots taken: by the launcher and by logical replication's.
$node = new_cluster('noslot', max_worker_processes => 2);
$node->safe_psql('postgres', "CREATE TABLE items (id int PRIMARY KEY, v vector(1000)); INSERT INTO items $rows;
	CREATE INDEX items_v ON items USING exact (v)");
is($node->safe_psql('postgres', "SET enable_seqscan = off; $search"), $truth, 'without a worker slot the session loads');
$node->stop;
done_testing();
