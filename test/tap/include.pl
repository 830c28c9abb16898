# INCLUDE columns: index-only scans beside VACUUM, crashes, a standby, damage, parallel builds, dump and restore.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = 8192;
$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $node = new_cluster('include', 'autovacuum' => 'off', 'jit' => 'off', 'max_wal_senders' => 4, 'wal_keep_size' => "'512MB'");
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('include_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

sub sql { return $node->safe_psql('postgres', @_) }

# The answer to a query by an index-only scan and by a sequential one.
my $only = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
sub same_answer
{
	my ($where, $query, $name) = @_;
	my $plan = $where->safe_psql('postgres', "$only EXPLAIN $query");
	like($plan, qr/Index Only Scan/, "$name: index-only scan");
	is($where->safe_psql('postgres', "$only $query"),
		$where->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; $query"), $name);
	return;
}
my $near = "(SELECT v FROM items WHERE id = 5)";
my $rows = "SELECT id, title, v <-> $near AS d FROM items ORDER BY v <-> $near LIMIT 3000";
my $join = "SELECT q.id, n.id, n.title FROM (SELECT * FROM items ORDER BY id LIMIT 100) q
	CROSS JOIN LATERAL (SELECT id, title FROM items i ORDER BY i.v <-> q.v LIMIT 5) n ORDER BY 1, 2";

# Rows with one, few and no bytes of titles.
load_grid($node, 'items', 3000);
sql("ALTER TABLE items ADD title text; UPDATE items SET title = CASE WHEN id % 9 > 0 THEN repeat(chr(65 + id % 26), id % 60) END");
sql('VACUUM FULL items; CREATE INDEX items_v ON items USING exact (v) INCLUDE (id, title); VACUUM ANALYZE items');
same_answer($node, $rows, 'built');
same_answer($node, $join, 'joined');

# The delta log and tombstones, crash and replay.
sql("INSERT INTO items SELECT id + 3000, v + v, 'new ' || id FROM items WHERE id <= 700;
	DELETE FROM items WHERE id % 5 = 0 AND id <> 5; UPDATE items SET title = 'changed' WHERE id % 11 = 0");
same_answer($node, $rows, 'changed');
sql('VACUUM items');
same_answer($node, $rows, 'vacuumed');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
same_answer($standby, $rows, 'standby');
$node->stop('immediate');
$node->start;
same_answer($node, $rows, 'after a crash');
same_answer($node, $join, 'joined after a crash');

# Rows that were deleted before a scan began, and that VACUUM removes while it runs. Their pages are all-visible then.
for my $kind ('scan', 'join')
{
	my $count = sql('SELECT count(*) FROM items');
	my $inner = 'SELECT id FROM items ORDER BY v <-> array_fill(3, ARRAY[16])::vector';
	my $query = $kind eq 'scan' ? $inner :
		"SELECT n.id FROM (VALUES (array_fill(3, ARRAY[16])::vector), (array_fill(3, ARRAY[16])::vector), (array_fill(3, ARRAY[16])::vector)) q (v)
			CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> q.v LIMIT 1000) n";
	like(sql("$only EXPLAIN $query"), qr/Index Only Scan/, "$kind beside VACUUM: index-only scan");
	like(sql("$only EXPLAIN $query"), qr/KnnBatch/, 'join beside VACUUM: in batches') if $kind eq 'join';
	sql('DELETE FROM items WHERE id <> 5 AND id % 4 = ' . ($kind eq 'scan' ? 1 : 2));
	my $left = sql('SELECT count(*) FROM items');
	cmp_ok($left, '<', $count, "$kind beside VACUUM: rows were deleted");
	my $in = "$only BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR $query; FETCH 2 FROM c;\n\\echo started\n";
	my $out = '';
	my $psql = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', $node->connstr('postgres') ],
		'<', \$in, '>', \$out, '2>', \my $err, IPC::Run::timeout(60));
	$psql->pump until $out =~ /started/ || $err;
	sql('VACUUM items');
	is(sql("SELECT dead_rows > 0 FROM pgwarp_index_info('items_v')"), 't', "$kind beside VACUUM: rows were removed");
	sql("INSERT INTO items SELECT 100000 + i, array_fill(3, ARRAY[16])::vector, 'reused' FROM generate_series(1, 500) i; VACUUM items");
	$in .= "FETCH ALL FROM c; COMMIT;\n\\q\n";
	$psql->finish;
	is($err, '', "$kind beside VACUUM: no error");
	my @ids = grep { /^\d+$/ } split /\n/, $out;
	my $wrong = $kind eq 'scan' ? 1 : 2;
	is(scalar(grep { $_ <= 6000 && $_ != 5 && $_ % 4 == $wrong } @ids), 0, "$kind beside VACUUM: no removed row");
	is(scalar(grep { $_ > 100000 } @ids), 0, "$kind beside VACUUM: no row that came later") if $kind eq 'scan';
	is(scalar(@ids), $kind eq 'scan' ? $left : 3000, "$kind beside VACUUM: all others");
	sql('DELETE FROM items WHERE id > 100000; VACUUM items');
}
same_answer($node, $rows, 'after all that');

# Builds by several processes, and CONCURRENTLY beside writers.
sql("CREATE TABLE large (id int, title text, v vector(16)) WITH (parallel_workers = 3);
	INSERT INTO large SELECT i, CASE WHEN i % 3 > 0 THEN repeat('x', i % 50) || i END, ARRAY[i % 7, i % 11, i % 1013, i % 503, i % 97, i % 89, i % 83, i % 79,
		i % 73, i % 71, i % 67, i % 61, i % 59, i % 53, i % 47, i % 43]::vector FROM generate_series(1, 60000) i");
for my $columns ('id, title', 'id')
{
	my $notices;
	$node->psql('postgres', "SET client_min_messages = debug1; SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 3;
		CREATE INDEX large_v ON large USING exact (v) INCLUDE ($columns)", stderr => \$notices);
	like($notices, qr/using \d+ parallel workers/, "INCLUDE ($columns): parallel build");
	sql('VACUUM ANALYZE large');
	same_answer($node, "SELECT md5(string_agg(s::text, ',' ORDER BY id)) FROM (SELECT $columns FROM large ORDER BY v <-> array_fill(40, ARRAY[16])::vector OFFSET 0) s",
		"INCLUDE ($columns): parallel build");
	is(sql("$only SELECT count(DISTINCT id) FROM (SELECT id FROM large ORDER BY v <-> array_fill(9, ARRAY[16])::vector) s"), 60000,
		"INCLUDE ($columns): every row");
	sql('DROP INDEX large_v');
}
my $writer = $node->basedir . '/write.sql';
append_to_file($writer, "\\set n random(1, 60000)\nINSERT INTO large SELECT 100000 + id, 'w' || title, v FROM large WHERE id = :n;
	UPDATE large SET title = 'u' WHERE id = :n; DELETE FROM large WHERE id = :n - 1;\n");
sql('CREATE INDEX large_id ON large (id)');
my $output = '';
my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', 2, '-T', 6, '-f', $writer, $node->connstr('postgres') ], '>', \$output, '2>&1');
sql('CREATE INDEX CONCURRENTLY large_v ON large USING exact (v) INCLUDE (id, title)');
sql('REINDEX INDEX CONCURRENTLY large_v');
sql('VACUUM large');
ok($writers->finish, 'CONCURRENTLY beside writers') or diag $output;
sql('VACUUM large');
same_answer($node, "SELECT count(*), count(DISTINCT (id, title)), sum(id), sum(length(title)) FROM (SELECT id, title FROM large ORDER BY v <-> array_fill(9, ARRAY[16])::vector OFFSET 0) s",
	'CONCURRENTLY');
sql('DROP TABLE large');

# Dump and restore.
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-t', 'items', $node->connstr('postgres') ], 'pg_dump');
sql('CREATE DATABASE restored');
$node->safe_psql('restored', 'CREATE EXTENSION pgwarp');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'restore');
like($node->safe_psql('restored', "SELECT pg_get_indexdef('items_v'::regclass)"), qr/INCLUDE \(id, title\)$/, 'INCLUDE is kept');

unlike(slurp_file($_->logfile), qr/inconsistent page|PANIC/, $_->name . ': replay is consistent') for $node, $standby;
$standby->stop;

# Damaged included columns are refused, never returned. Others' pages are intact, so that the search itself succeeds.
sub slurp_binary
{
	my ($file) = @_;
	open my $handle, '<:raw', $file or die "$file: $!";
	local $/;
	return scalar <$handle>;
}

for my $columns ('id', 'id, title')
{
	sql("DROP INDEX items_v; CREATE INDEX items_v ON items USING exact (v) INCLUDE ($columns); VACUUM items");
	my $small = "SELECT $columns FROM items ORDER BY v <-> $near LIMIT 20";
	my $right = sql("$only $small");
	my $path = index_pages($node, 'items_v');
	$node->stop;
	my $intact = slurp_binary($path);
	# Of the pages of arrays those with included columns are the last, before tombstones.
	my @arrays = grep { (unpack 'S', substr($intact, $_ * $page + $page - 8, 2)) == 3 } 0 .. length($intact) / $page - 1;
	my @included = grep { $_ > $arrays[-1] - ($columns eq 'id' ? 2 : 5) } @arrays;
	for my $damage ('content', 'trailer', 'zeros', 'swapped')
	{
		my $bytes = $intact;
		for my $block (@included)
		{
			if ($damage eq 'content') { substr($bytes, $block * $page + 24 + 100 * $_, 1) ^= "\x10" for 0 .. 80 }
			if ($damage eq 'trailer') { substr($bytes, $block * $page + $page - 24, 1) ^= "\x10" }
			if ($damage eq 'zeros') { substr($bytes, $block * $page, $page) = "\0" x $page }
			# Valid tuples of other rows.
			if ($damage eq 'swapped') {
				my $half = 8144 / 16 * 8;
				my $content = substr($bytes, $block * $page + 24, 8144);
				substr($bytes, $block * $page + 24, 8144) = substr($content, $half) . substr($content, 0, $half);
			}
		}
		open my $handle, '>:raw', $path or die $!;
		print {$handle} $bytes;
		close $handle;
		$node->start;
		my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$only $small");
		isnt($rc, 0, "INCLUDE ($columns), $damage: refused") or diag $out;
		like($err, qr/XX002: index "items_v" is corrupted at block \d+/, "INCLUDE ($columns), $damage: says so");
		like($err, qr/HINT:  Please REINDEX it/, "INCLUDE ($columns), $damage: hints at REINDEX");
		$node->stop;
	}
	open my $handle, '>:raw', $path or die $!;
	print {$handle} $intact;
	close $handle;
	$node->start;
	is(sql("$only $small"), $right, "INCLUDE ($columns): put back, it is well");
	sql('REINDEX INDEX items_v');
}

# The same in a delta log.
sql("INSERT INTO items SELECT 200000 + i, array_fill(2, ARRAY[16])::vector, 'delta ' || i FROM generate_series(1, 20) i; VACUUM items");
my $delta = "SELECT id FROM items ORDER BY v <-> array_fill(2, ARRAY[16])::vector LIMIT 20";
is(scalar(grep { $_ > 200000 } split /\n/, sql("$only $delta")), 20, 'delta: inserted rows');
wait_for_engine($node, 'items');
$node->stop;
my $path = $node->data_dir . '/' . do { $node->start; my $p = sql("SELECT pg_relation_filepath('items_v')"); $node->stop; $p };
my $bytes = slurp_binary($path);
for my $block (grep { (unpack 'S', substr($bytes, $_ * $page + $page - 8, 2)) == 6 } 0 .. length($bytes) / $page - 1)
{
	substr($bytes, $block * $page + 24 + 64 + 9, 1) ^= "\x10";
}
open my $handle, '>:raw', $path or die $!;
print {$handle} $bytes;
close $handle;
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', "$only $delta");
isnt($rc, 0, 'delta: damage is refused');
like($err, qr/index "items_v" is corrupted/, 'delta: says so');
sql('REINDEX INDEX items_v; VACUUM items');
same_answer($node, $rows =~ s/3000/50/r, 'REINDEX mends');

$node->stop;
done_testing();
