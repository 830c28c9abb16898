# The life of an index: every kind of table, DDL in and out of transactions, crash, dump and restore.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('lifecycle');

sub sql { return $node->safe_psql('postgres', @_) }

for my $method (methods($node))
{
	my $t = "items_$method";
	load_grid($node, $t, 3000);
	sql("CREATE INDEX ${t}_v ON $t USING $method (v vector_l2_ops)");
	cmp_ok(recall_at_10($node, $t), '>=', $method eq 'exact' ? 1 : 0.9, "$method: recall after build");

	# Changes through the delta and tombstones.
	sql("INSERT INTO $t SELECT id + 3000, v + v FROM $t WHERE id <= 500");
	sql("DELETE FROM $t WHERE id % 7 = 0");
	sql("UPDATE $t SET v = v + v WHERE id % 11 = 0");
	cmp_ok(recall_at_10($node, $t), '>=', $method eq 'exact' ? 1 : 0.9, "$method: recall after changes");
	sql("VACUUM $t");
	cmp_ok(recall_at_10($node, $t), '>=', $method eq 'exact' ? 1 : 0.9, "$method: recall after vacuum");
	my $dead = sql("SELECT dead_rows > 0 FROM pgwarp_index_info('${t}_v')");
	is($dead, 't', "$method: vacuum marked rows dead");

	# A crash keeps committed rows.
	my $before = sql("SET enable_seqscan = off; SELECT id FROM $t ORDER BY v <-> (SELECT v FROM $t WHERE id = 1) LIMIT 20");
	$node->stop('immediate');
	$node->start;
	my $after = sql("SET enable_seqscan = off; SELECT id FROM $t ORDER BY v <-> (SELECT v FROM $t WHERE id = 1) LIMIT 20");
	is($after, $before, "$method: same rows after a crash");

	sql("REINDEX INDEX ${t}_v");
	is(sql("SELECT delta_rows, dead_rows FROM pgwarp_index_info('${t}_v')"), '0|0', "$method: REINDEX folds the delta in");
	sql("REINDEX INDEX CONCURRENTLY ${t}_v");
	cmp_ok(recall_at_10($node, $t), '>=', $method eq 'exact' ? 1 : 0.9, "$method: recall after REINDEX CONCURRENTLY");

	# TRUNCATE twice in one transaction reuses the relfilenode in place.
	sql("BEGIN; TRUNCATE $t; INSERT INTO $t SELECT i, array_fill(i, ARRAY[16])::vector FROM generate_series(1, 50) i;
		TRUNCATE $t; INSERT INTO $t SELECT i, array_fill(-i, ARRAY[16])::vector FROM generate_series(1, 50) i; COMMIT");
	is(sql("SET enable_seqscan = off; SELECT v FROM $t ORDER BY v <-> array_fill(-3, ARRAY[16])::vector LIMIT 1"),
		'[' . join(',', (-3) x 16) . ']', "$method: TRUNCATE twice in one transaction");
	sql("BEGIN; TRUNCATE $t; ROLLBACK");
	is(sql("SET enable_seqscan = off; SELECT count(*) FROM (SELECT 1 FROM $t ORDER BY v <-> array_fill(1, ARRAY[16])::vector LIMIT 100) s"),
		50, "$method: TRUNCATE rolled back");

	# CREATE INDEX rolled back, CONCURRENTLY, DROP.
	sql("BEGIN; CREATE INDEX ${t}_v2 ON $t USING $method (v vector_cosine_ops); ROLLBACK");
	is(sql("SELECT count(*) FROM pg_class WHERE relname = '${t}_v2'"), 0, "$method: CREATE INDEX rolled back");
	my ($class, $order) = ('vector_ip_ops', 'v <#> array_fill(-1, ARRAY[16])::vector');
	($class, $order) = ('vector_l1_ops', "v <+> (SELECT v FROM $t WHERE id = 50)") if $method eq 'matchcount';
	sql("CREATE INDEX CONCURRENTLY ${t}_v2 ON $t USING $method (v $class)");
	is(sql("SET enable_seqscan = off; SELECT id FROM $t ORDER BY $order LIMIT 1"), 50, "$method: CONCURRENTLY");
	sql("DROP INDEX ${t}_v2");

	# UNLOGGED tables are empty after a crash and work on.
	load_grid($node, "unlogged_$method", 500, 'UNLOGGED');
	sql("CREATE INDEX ON unlogged_$method USING $method (v)");
	is(sql("SET enable_seqscan = off; SELECT id FROM unlogged_$method ORDER BY v <-> (SELECT v FROM unlogged_$method WHERE id = 7) LIMIT 1"),
		7, "$method: UNLOGGED");
	$node->stop('immediate');
	$node->start;
	is(sql("SET enable_seqscan = off; SELECT count(*) FROM (SELECT 1 FROM unlogged_$method ORDER BY v <-> array_fill(1, ARRAY[16])::vector LIMIT 5) s"),
		0, "$method: UNLOGGED is empty after a crash");
	sql("INSERT INTO unlogged_$method VALUES (1, array_fill(1, ARRAY[16])::vector)");
	is(sql("SET enable_seqscan = off; SELECT id FROM unlogged_$method ORDER BY v <-> array_fill(1, ARRAY[16])::vector LIMIT 5"),
		1, "$method: UNLOGGED takes rows again");

	# TEMP with ON COMMIT DELETE ROWS.
	is(sql("CREATE TEMP TABLE t_$method (id int, v vector(3)) ON COMMIT DELETE ROWS;
		CREATE INDEX ON t_$method USING $method (v); SET enable_seqscan = off;
		BEGIN; INSERT INTO t_$method VALUES (1, '[1,2,3]'); SELECT id FROM t_$method ORDER BY v <-> '[1,2,3]' LIMIT 1; COMMIT;
		BEGIN; INSERT INTO t_$method VALUES (2, '[4,5,6]'); SELECT id FROM t_$method ORDER BY v <-> '[1,2,3]' LIMIT 5; COMMIT;"),
		"1\n2", "$method: TEMP with ON COMMIT DELETE ROWS");
}

# Dump and restore.
load_grid($node, 'dumped', 1000);
sql("CREATE INDEX dumped_exact ON dumped USING exact (v vector_cosine_ops) WITH (vectors = half);
	CREATE INDEX dumped_ivfadc ON dumped USING ivfadc (v) WITH (lists = 20, refine = full);
	CREATE INDEX dumped_pqtree ON dumped USING pqtree ((v::halfvec(16)) halfvec_ip_ops) INCLUDE (id) WITH (parts = 4, k1 = 8, k2 = 2, line_parts = 8, refine = none, recall = 0.9);
	CREATE INDEX dumped_graph ON dumped USING graph (v vector_ip_ops) WITH (degree = 16, vectors = half)");
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-t', 'dumped', $node->connstr('postgres') ], 'pg_dump');
sql('CREATE DATABASE restored');
$node->safe_psql('restored', 'CREATE EXTENSION pgwarp');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'restore');
my $defs = "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'dumped'::regclass ORDER BY 1";
is($node->safe_psql('restored', $defs), sql($defs), 'the same indexes after restore');
is($node->safe_psql('restored', "SET enable_seqscan = off; SELECT id FROM dumped ORDER BY v <=> (SELECT v FROM dumped WHERE id = 5) LIMIT 1"),
	5, 'restored index answers');

# A database made from this one answers by its own copies.
sql('CREATE DATABASE copied TEMPLATE restored');
is($node->safe_psql('copied', "SET enable_seqscan = off; SELECT id FROM dumped ORDER BY v <-> (SELECT v FROM dumped WHERE id = 9) LIMIT 1"),
	9, 'CREATE DATABASE ... TEMPLATE');

$node->stop;
done_testing();
