# A crash that loses an asynchronous commit: answers come from the rows that recovery kept, not from the old engine's.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

# Nothing else writes the log early: its writer stands still when it matters, and there is room for log and pages.
my $node = new_cluster('lost', 'synchronous_commit' => 'off', 'wal_writer_delay' => '10s', 'restart_after_crash' => 'on',
	'shared_buffers' => "'128MB'", 'wal_buffers' => "'16MB'", 'bgwriter_lru_maxpages' => 0);
load_grid($node, 'items', 1000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v); CREATE INDEX items_half ON items USING ivfadc (v vector_cosine_ops);
	CREATE INDEX items_tree ON items USING pqtree (v vector_ip_ops); CREATE INDEX items_graph ON items USING graph (v vector_l1_ops);
	ALTER TABLE items SET (autovacuum_enabled = off); CHECKPOINT');
my $marker = 'array_fill(777, ARRAY[16])::vector';
my $search = "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> $marker LIMIT 1";
my $lost = 0;

for my $round (1 .. 5)
{
	my $id = 100_000 + $round;
	# Commit without waiting for the log, let the engine see the row, crash the server.
	my $writer = stop_wal_writer();
	$node->safe_psql('postgres', "INSERT INTO items VALUES ($id, $marker); $search");
	crash_under_engine($writer);

	my $kept = $node->safe_psql('postgres', "SET enable_indexscan = off; SELECT count(*) FROM items WHERE id = $id");
	$lost++ if $kept eq '0';
	my $nearest = $node->safe_psql('postgres', $search);
	my $truth = $node->safe_psql('postgres', "SET enable_indexscan = off; SELECT id FROM items ORDER BY v <-> $marker LIMIT 1");
	is($nearest, $truth, "round $round: the answer is what recovery kept" . ($kept eq '0' ? ' (the commit was lost)' : ''));
	# The tid of a lost row is used again: the old engine's copy of it must not be believed.
	$node->safe_psql('postgres', "INSERT INTO items VALUES ($id + 1000, array_fill(-777, ARRAY[16])::vector)");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> array_fill(-777, ARRAY[16])::vector LIMIT 1"),
		$node->safe_psql('postgres', "SET enable_indexscan = off; SELECT id FROM items ORDER BY v <-> array_fill(-777, ARRAY[16])::vector LIMIT 1"),
		"round $round: rows after the crash are found");
	$node->safe_psql('postgres', "DELETE FROM items WHERE id >= 100000");
}
cmp_ok($lost, '>', 0, "$lost of 5 commits were lost");

# The crash also loses marks of dead rows, and merges, that the old engine has seen.
my $everything = "SELECT md5(string_agg(id::text, ' ' ORDER BY id)) FROM (SELECT id FROM items";
# Searches of all rows return those found late as well.
my $in_order = 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; SET pgwarp.iterative = relaxed;';
my %lost;
for my $round (1 .. 6)
{
	my $kind = ('VACUUM', 'merge')[ $round % 2 ];
	$node->safe_psql('postgres', "INSERT INTO items SELECT 200000 + $round * 1000 + i, ARRAY(SELECT (hashint8($round * 7919 + i * 16 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)
		FROM generate_series(1, 200) i; SET synchronous_commit = on; CREATE TABLE flush_$round ()");
	my $writer = stop_wal_writer();
	my $generation = $node->safe_psql('postgres', "SELECT string_agg(rows || '/' || delta_rows || '/' || dead_rows, ' ') FROM (VALUES ('items_v'::regclass), ('items_half'), ('items_tree'), ('items_graph')) v (i), pgwarp_index_info(i)");
	$node->safe_psql('postgres', $kind eq 'merge' ? "CALL pgwarp_merge('items_v'); CALL pgwarp_merge('items_half'); CALL pgwarp_merge('items_tree'); CALL pgwarp_merge('items_graph')"
		: "DELETE FROM items WHERE id % 13 = $round; VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) items");
	$node->safe_psql('postgres', "$in_order $everything ORDER BY v <-> $marker) s; $everything ORDER BY v <=> $marker) s; $everything ORDER BY v <#> $marker) s; $everything ORDER BY v <+> $marker) s");
	crash_under_engine($writer);
	my $kept = $node->safe_psql('postgres', "SELECT string_agg(rows || '/' || delta_rows || '/' || dead_rows, ' ') FROM (VALUES ('items_v'::regclass), ('items_half'), ('items_tree'), ('items_graph')) v (i), pgwarp_index_info(i)");
	$lost{$kind}++ if $kept eq $generation;
	my $truth = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; $everything) s");
	is($node->safe_psql('postgres', "$in_order $everything ORDER BY v <-> $marker) s"), $truth, "$kind, round $round: the exact index returns every row");
	is($node->safe_psql('postgres', "$in_order $everything ORDER BY v <=> $marker) s"), $truth, "$kind, round $round: the ivfadc index returns every row");
	is($node->safe_psql('postgres', "$in_order $everything ORDER BY v <#> $marker) s"), $truth, "$kind, round $round: the pqtree index returns every row");
	is($node->safe_psql('postgres', "$in_order $everything ORDER BY v <+> $marker) s"), $truth, "$kind, round $round: the graph index returns every row");
	same_rows($node, 'items', "$kind, round $round: exact answers are the table's");
	is($node->safe_psql('postgres', "SELECT count(*) FROM (VALUES ('items_v'::regclass), ('items_half'), ('items_tree'), ('items_graph')) v (i), pgwarp_check(i, true)"), 4, "$kind, round $round: the indexes are whole");
}
cmp_ok($lost{VACUUM} // 0, '>', 0, ($lost{VACUUM} // 0) . ' of 3 VACUUMs were lost');
cmp_ok($lost{merge} // 0, '>', 0, ($lost{merge} // 0) . ' of 3 merges were lost');

# The log's writer stands still, so that nothing reaches the log's files by itself. Returns its process id.
sub stop_wal_writer
{
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
	kill 'STOP', $pid;
	return $pid;
}

# Stop the engine where it is, kill a session, and let the engine go on when the server has recovered.
sub crash_under_engine
{
	my ($writer) = @_;
	my $engine = engine_pid($node);
	my $backend = $node->background_psql('postgres');
	my $pid = $backend->query_safe('SELECT pg_backend_pid()');
	my $log_end = -s $node->logfile;
	kill 'STOP', $engine;
	kill 'KILL', $pid;
	eval { $backend->quit };
	$node->wait_for_log(qr/terminating any other active server processes/, $log_end);
	# Were it to go on, it might write the log before it is told to end.
	kill 'KILL', $writer;
	# Until the server has noticed, it answers as before.
	await_restart($node, $log_end);
	kill 'CONT', $engine;
	return;
}

$node->stop;
done_testing();
