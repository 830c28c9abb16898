# Merges: on a standby, stopped at random moments under load, cancelled; sizes of index and WAL. crash_points.pl crashes
# them at every step.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $primary = new_cluster('merge', 'autovacuum' => 'off', 'max_wal_senders' => 4, 'wal_keep_size' => "'2GB'", 'jit' => 'off');

sub sql { return $primary->safe_psql('postgres', @_) }

my @indexes = ('items_exact', 'items_half', 'items_pq', 'items_tree', 'items_graph');
my $vector = "ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)";

# Insert rows with these numbers.
sub insert { my ($from, $to) = @_; sql("INSERT INTO items SELECT i, $vector FROM generate_series($from, $to) i"); return }
# Replace some rows and remove others, so that there are dead rows and new ones.
sub churn
{
	my ($round) = @_;
	sql("UPDATE items SET v = v + array_fill(0.01, ARRAY[16])::vector WHERE id % 17 = $round % 17");
	sql("DELETE FROM items WHERE id % 19 = $round % 19");
	insert(10_000 * $round, 10_000 * $round + 250);
	sql('VACUUM (INDEX_CLEANUP ON) items') if $round % 2 == 0;
	return;
}
sub merge_all { sql("CALL pgwarp_merge('$_')") for @indexes; return }

# Every index is whole and has the table's rows, and the exact one answers like a sequential scan.
sub healthy
{
	my ($node, $name) = @_;
	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM items');
	my @live;
	for my $index (@indexes)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT live_rows >= $rows FROM pgwarp_check('$index', true)");
		push @live, $rc == 0 ? $out : $err;
	}
	is("@live", 't t t t t', "$name: indexes are whole");
	return;
}

load_indexed_items($primary, 3000);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('merge_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $nearest = 'SET enable_seqscan = off; SELECT id, v <-> (SELECT v FROM items ORDER BY id LIMIT 1) FROM items ORDER BY 2 LIMIT 30';
for my $round (1 .. 5)
{
	churn($round);
	merge_all();
	churn($round + 100);
	healthy($primary, "round $round");
	same_rows($primary, 'items', "round $round: exact answers");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	healthy($standby, "standby, round $round");
	is($standby->safe_psql('postgres', $nearest), sql($nearest), "standby, round $round: the primary's answers");
}
# A resident index is resident in its next generation too, before a search needs it.
for my $index (@indexes)
{
	sql("SELECT pgwarp_prewarm('$index')");
	insert(9_000_000, 9_000_099);
	sql("CALL pgwarp_merge('$index')");
	is(sql("SELECT string_agg(rows || ' ' || delta_rows || ' ' || loading, ', ') FROM pgwarp_status WHERE index = '$index'::regclass"),
		sql("SELECT rows + dead_rows || ' 0 false' FROM pgwarp_index_info('$index')"), "$index: the engine has it before it is searched");
}
# A merge of unplaced rows alone leaves it in the engine, on a standby too, and the index goes on from there.
my $searches = "SELECT searches FROM pgwarp_status WHERE index = 'items_exact'::regclass";
sql("CALL pgwarp_merge('items_exact')");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
for my $node ($primary, $standby) { $node->safe_psql('postgres', $nearest) for 1 .. 5 }
my @before = map { $_->safe_psql('postgres', $searches) } $primary, $standby;
sql('INSERT INTO items SELECT i FROM generate_series(9200000, 9200009) i');
sql("CALL pgwarp_merge('items_exact')");
is(sql($searches), $before[0], 'a merge of unplaced rows leaves the engine its mirror');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $nearest), sql($nearest), 'the same answers');
cmp_ok($standby->safe_psql('postgres', $searches), '>', $before[1], 'by the same mirror on the standby too');
insert(9_300_000, 9_300_049);
sql("DELETE FROM items WHERE id IN (SELECT id FROM items ORDER BY v <-> (SELECT v FROM items ORDER BY id LIMIT 1) OFFSET 3 LIMIT 5); VACUUM (INDEX_CLEANUP ON) items");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $nearest), sql($nearest), 'the same answers after changes');
same_rows($primary, 'items', 'unplaced rows were merged: exact answers');
my ($rc, $out, $err) = $standby->psql('postgres', "CALL pgwarp_merge('items_exact')");
like($err, qr/cannot execute pgwarp_merge\(\) during recovery/, 'a standby merges nothing');
unlike(slurp_file($_->logfile), qr/inconsistent page|PANIC/, $_->name . ': replay is consistent') for $primary, $standby;
$standby->stop;

# Immediate stops at random moments under load.
my $script = $primary->basedir . '/churn.sql';
append_to_file($script, q{\set n random(1, 2000000000)
INSERT INTO items SELECT :n, array_agg(random() * 10)::real[]::vector FROM generate_series(1, 16);
DELETE FROM items WHERE ctid = (SELECT ctid FROM items OFFSET :n % 500 LIMIT 1);
});
my $maintain = $primary->basedir . '/maintain.sql';
append_to_file($maintain, qq{CALL pgwarp_merge('items_exact');
CALL pgwarp_merge('items_half');
CALL pgwarp_merge('items_tree');
CALL pgwarp_merge('items_graph');
VACUUM (INDEX_CLEANUP ON) items;
CALL pgwarp_merge('items_pq');
});
for my $round (1 .. 5)
{
	my ($written, $maintained) = ('', '');
	my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 60, '-f', $script, $primary->connstr('postgres') ], '>', \$written, '2>&1');
	my $maintainer = IPC::Run::start([ 'pgbench', '-n', '-c', 1, '-T', 60, '-f', $maintain, $primary->connstr('postgres') ], '>', \$maintained, '2>&1');
	usleep(1_000_000 + int(rand(900_000)));
	$primary->stop('immediate');
	$_->finish for $writers, $maintainer;
	$primary->start;
	unlike("$written$maintained", qr/corrupted|wrong distance/, "stop $round: no error before") or diag "$written$maintained";
	healthy($primary, "stop $round");
	same_rows($primary, 'items', "stop $round: exact answers");
}

# Searches, inserts and VACUUM beside merges, without a single error.
my ($written, $maintained, $searched) = ('', '', '');
my $search = $primary->basedir . '/search.sql';
append_to_file($search, "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> (SELECT array_agg(random() * 10)::real[]::vector FROM generate_series(1, 16)) LIMIT 20) s;\n");
my @running = map { IPC::Run::start([ 'pgbench', '-n', '-c', $_->[1], '-T', 6, '-f', $_->[0], $primary->connstr('postgres') ], '>', $_->[2], '2>&1') }
	([ $script, 4, \$written ], [ $maintain, 1, \$maintained ], [ $search, 2, \$searched ]);
ok($_->finish, 'side by side') for @running;
unlike("$written$maintained$searched", qr/ERROR/, 'side by side: no error') or diag "$written$maintained$searched";
healthy($primary, 'side by side');

# Cancelled at some moment; the unused pages are found again.
my $cancelled = 0;
for my $round (1 .. 12)
{
	insert(7_000_000 + 1000 * $round, 7_000_000 + 1000 * $round + 400);
	for my $index (@indexes)
	{
		my ($rc, $out, $err) = $primary->psql('postgres', "SET statement_timeout = " . (3 * $round) . "; CALL pgwarp_merge('$index')");
		$cancelled++ if $err =~ /canceling statement/;
	}
}
cmp_ok($cancelled, '>', 0, "$cancelled merges were cancelled");
healthy($primary, 'cancelled');
merge_all() for 1 .. 3;
is(sql("SELECT string_agg(unused_pages::text, ' ') FROM (VALUES " . join(', ', map { "('$_'::regclass)" } @indexes) . ') v (i), pgwarp_check(i)'),
	'0 0 0 0 0', 'no page is lost');
same_rows($primary, 'items', 'cancelled: exact answers');

# Size under delete-all, vacuum, reinsert.
sql('CREATE TABLE cycled (id int, v vector(64)); CREATE TABLE source AS SELECT i id, ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 64) d)::vector(64) v FROM generate_series(1, 4000) i;
	INSERT INTO cycled TABLE source; CREATE INDEX cycled_exact ON cycled USING exact (v); CREATE INDEX cycled_ivfadc ON cycled USING ivfadc (v);
	CREATE INDEX cycled_pqtree ON cycled USING pqtree (v);
	CREATE INDEX cycled_graph ON cycled USING graph (v)');
my @cycled = ('cycled_exact', 'cycled_ivfadc', 'cycled_pqtree', 'cycled_graph');
my %fresh = map { $_ => sql("SELECT pg_relation_size('$_')") } @cycled;
my %sizes;
for my $cycle (1 .. 10)
{
	sql('DELETE FROM cycled');
	# VACUUM passes over a page that the checkpointer is writing, unless it freezes: then its rows would stay, and the next
	# ones would need room of their own.
	my ($rc, $out, $err) = $primary->psql('postgres', 'VACUUM (FREEZE, INDEX_CLEANUP ON, VERBOSE) cycled');
	like($err, qr/tuples: 4000 removed, 0 remain/, "cycle $cycle: VACUUM removed every row");
	sql('INSERT INTO cycled TABLE source');
	push @{ $sizes{$_} }, sprintf('%.2f', sql("SELECT pg_relation_size('$_')") / $fresh{$_}) for @cycled;
}
for my $index (@cycled)
{
	my @sizes = @{ $sizes{$index} };
	note "$index: size in fresh builds after each cycle: @sizes";
	cmp_ok($sizes[-1], '<=', 2.2, "$index: size after ten cycles");
	cmp_ok($sizes[-1], '<=', $sizes[1] * 1.02, "$index: size does not grow");
}

# WAL of a merge of one row in a hundred.
sql('CREATE TABLE logged (id int, v vector(64)); INSERT INTO logged SELECT s.id + g, v FROM source s, generate_series(1, 5) g;
	CREATE INDEX logged_exact ON logged USING exact (v); CREATE INDEX logged_ivfadc ON logged USING ivfadc (v);
	CREATE INDEX logged_pqtree ON logged USING pqtree (v);
	CREATE INDEX logged_graph ON logged USING graph (v); INSERT INTO logged TABLE source LIMIT 200');
for my $index ('logged_exact', 'logged_ivfadc', 'logged_pqtree', 'logged_graph')
{
	sql("CHECKPOINT; ALTER SYSTEM SET wal_consistency_checking = ''; SELECT pg_reload_conf()");
	my $before = sql('SELECT pg_current_wal_insert_lsn()');
	sql("CALL pgwarp_merge('$index')");
	my $share = sql("SELECT round(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$before') / pg_relation_size('$index'), 3)");
	note "$index: WAL of a merge of one row in a hundred: $share of the index";
	cmp_ok($share, '<=', 0.1, "$index: WAL of a merge");
}
# Quantizers: an index of an empty table gets them by VACUUM, others are trained again when rows are unlike the old ones.
sub merged
{
	my ($index) = @_;
	my ($rc, $out, $err) = $primary->psql('postgres', "SET client_min_messages = debug1; CALL pgwarp_merge('$index')");
	return $err =~ /WARNING.*have become unlike/ ? 'unlike' : $err =~ /was (appended|built anew|written anew)/ ? $1 : $err;
}
my $near = 'ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)';
my $far = 'ARRAY(SELECT 60 + (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)';
sql('CREATE TABLE drifting (id int, v vector(16)); CREATE INDEX drifting_half ON drifting USING ivfadc (v);
	CREATE INDEX drifting_full ON drifting USING ivfadc (v) WITH (refine = full, lists = 30);
	CREATE INDEX drifting_none ON drifting USING ivfadc (v) WITH (refine = none)');
sql("INSERT INTO drifting SELECT i, $near FROM generate_series(1, 5000) i; VACUUM drifting");
my $empty = "SELECT string_agg(rows || ' ' || delta_rows || ' ' || ((options->>'lists')::int > 20), ', ') FROM (VALUES ('drifting_half'::regclass), ('drifting_full'), ('drifting_none')) v (i), pgwarp_index_info(i)";
is(sql($empty), '5000 0 true, 5000 0 true, 5000 0 true', 'VACUUM builds what was created empty');
is(sql("SELECT bool_and(pgwarp_recall(i, 10, 100) > 0.9) FROM (VALUES ('drifting_half'::regclass), ('drifting_full')) v (i)"), 't', 'recall of what was created empty');
sql("INSERT INTO drifting SELECT i, $near FROM generate_series(5001, 5600) i");
is(join(', ', map { merged($_) } 'drifting_half', 'drifting_full', 'drifting_none'), 'appended, appended, appended', 'rows like the old ones');
sql("INSERT INTO drifting SELECT i, $far FROM generate_series(5601, 6400) i");
is(join(', ', map { merged($_) } 'drifting_half', 'drifting_full', 'drifting_none'), 'built anew, built anew, unlike', 'rows unlike the old ones');
is(sql("SELECT bool_and(pgwarp_recall(i, 10, 100) > 0.9) FROM (VALUES ('drifting_half'::regclass), ('drifting_full')) v (i)"), 't', 'recall after training again');
sql("INSERT INTO drifting SELECT i, $near FROM generate_series(10001, 17000) i");
is(join(', ', map { merged($_) } 'drifting_half', 'drifting_full', 'drifting_none'), 'built anew, built anew, appended', 'more than twice the rows');
for my $index ('drifting_half', 'drifting_full', 'drifting_none')
{
	is(sql("SELECT live_rows FROM pgwarp_check('$index', true)"), 13400, "$index: whole");
}

# After a stream of rows: the index moves before the free pages of its logs.
sql('CREATE TABLE streamed (id int, v vector(128)); INSERT INTO streamed SELECT i, ARRAY(SELECT random() FROM generate_series(1, 128) WHERE i IS NOT NULL)::real[]::vector FROM generate_series(1, 30000) i');
sql('CREATE INDEX streamed_v ON streamed USING ivfadc (v)');
my $built = sql("SELECT pg_relation_size('streamed_v')");
for my $round (1 .. 2)
{
	sql('UPDATE streamed SET v = v + v; VACUUM streamed');
	my $pages = sql("SELECT pg_relation_size('streamed_v')");
	cmp_ok($pages, '<', 1.5 * $built, sprintf 'round %d: %.2f times the size when built', $round, $pages / $built);
	is(sql("SELECT live_rows FROM pgwarp_check('streamed_v', true)"), 30000, "round $round: whole");
}
sql('DROP TABLE streamed');

# VACUUM ends without an engine, and merges when there is one again.
sql("INSERT INTO drifting SELECT i, $near FROM generate_series(20001, 26000) i; ALTER SYSTEM SET pgwarp.engine_timeout = '300ms'");
$primary->stop;
my $engine = $primary->data_dir . '/pg_stat_tmp/pgwarp.lock';
unlink $engine;
mkdir $engine or die "$engine: $!";
$primary->start;
($rc, $out, $err) = $primary->psql('postgres', 'VACUUM drifting');
is($rc, 0, 'VACUUM without an engine') or diag $err;
isnt(sql("SELECT delta_rows FROM pgwarp_index_info('drifting_half')"), 0, 'the merge is left for later');
rmdir $engine;
sql("ALTER SYSTEM RESET pgwarp.engine_timeout");
$primary->restart;
sql('VACUUM drifting');
is(sql("SELECT delta_rows FROM pgwarp_index_info('drifting_half')"), 0, 'and made later');

$primary->stop;
done_testing();
