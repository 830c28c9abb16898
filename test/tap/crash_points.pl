# Killed between any two changes of pages: insert, bulkdelete, merges of every kind, sweep and builds; and the engine, or
# the session, killed at any step of their conversation. Needs a build with PGWARP_FAULTS.
# PGWARP_TORTURE=full: every point, but of a statement that passes thousands four of each name; else a few of different
# names for each statement.
use strict;
use warnings FATAL => 'all';

use FindBin;
use List::Util qw(min shuffle uniq);
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);
use TortureLoad;

my $node = new_cluster('points', 'autovacuum' => 'off', 'jit' => 'off', 'restart_after_crash' => 'on', 'max_parallel_workers_per_gather' => 0,
	'max_worker_processes' => 16);
sub sql { return $node->safe_psql('postgres', @_) }
my $load_library = "SELECT FROM pgwarp_index_info('items_exact');";
my $vector = "ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)";
my $far = "ARRAY(SELECT 60 + (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)";

# The points that a statement passes, by name: of pages ("fault") or of messages ("message").
sub list_points
{
	my ($kind, $statement) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "$load_library SET client_min_messages = debug1; $statement");
	BAIL_OUT("$statement: $err") if $rc != 0;
	my @points;
	push @points, $1 while $err =~ /^\S* *DEBUG:  $kind point \d+: (.*)$/mg;
	return @points;
}

# Numbers of the points to try: all, or the first and a few of different names. A statement that does less the next time
# may not come as far as the others.
sub choose_points
{
	my (@points) = @_;
	my @all = (1 .. @points);
	my $full = torture_size(0, 1);
	return @all if $full && @points < 1000;
	my %of_name;
	push @{ $of_name{ $points[ $_ - 1 ] } }, $_ for @all;
	return sort { $a <=> $b } map { (shuffle(@$_))[ 0 .. min($#$_, 3) ] } values %of_name if $full;
	my @chosen = map { $of_name{$_}[ int(rand(@{ $of_name{$_} })) ] } sort keys %of_name;
	@chosen = (shuffle(@chosen))[0 .. 5] if @chosen > 6;
	return sort { $a <=> $b } uniq(1, @chosen);
}

my (%passed, $crashes);
# Crash a statement at its points, and check the index after each recovery.
sub crash_at_points
{
	my ($index, $name, $prepare, $statement) = @_;
	$prepare->(0);
	my @points = list_points('fault', $statement);
	cmp_ok(scalar @points, '>', 2, "$name: passes " . @points . ' points');
	$passed{$_}++ for @points;
	my ($killed, @damaged) = (0);
	for my $step (choose_points(@points))
	{
		$prepare->($step);
		my $log_end = -s $node->logfile;
		my ($rc) = $node->psql('postgres', "$load_library SET pgwarp.fault_step = $step; $statement");
		next if $rc == 0;
		++$killed;
		await_restart($node, $log_end);
		my ($check, $found, $message) = $node->psql('postgres', "SELECT count(*) FROM pgwarp_check('$index', true)");
		push @damaged, "$points[$step - 1] ($step): $message" if $check != 0;
	}
	is(join("\n", @damaged), '', "$name: whole after each of $killed crashes");
	cmp_ok($killed, '>', 0, "$name: was killed");
	$crashes += $killed;
	return;
}

load_indexed_items($node, 600);
if (!list_points('fault', 'INSERT INTO items TABLE items LIMIT 1'))
{
	$node->stop;
	plan skip_all => 'the library was built without fault points';
}
sub insert { my ($from, $to) = @_; sql("INSERT INTO items SELECT i, $vector FROM generate_series($from, $to) i"); return }
my $next = 5_000_000;
# Merged before, so that only the new rows are left to merge.
sub add_few { sql("CALL pgwarp_merge('$_')") for 'items_exact', 'items_half', 'items_pq', 'items_tree', 'items_graph'; insert($next, $next + 39); $next += 40; return }
crash_at_points('items_exact', 'append (exact)', \&add_few, "CALL pgwarp_merge('items_exact')");
crash_at_points('items_pq', 'append (ivfadc, without vectors)', \&add_few, "CALL pgwarp_merge('items_pq')");
crash_at_points('items_half', 'append (ivfadc, included columns)', \&add_few, "CALL pgwarp_merge('items_half')");
crash_at_points('items_tree', 'append (pqtree)', \&add_few, "CALL pgwarp_merge('items_tree')");
crash_at_points('items_graph', 'append (graph)', \&add_few, "CALL pgwarp_merge('items_graph')");
crash_at_points('items_half', 'compact', sub {
	add_few();
	sql('DELETE FROM items WHERE ctid IN (SELECT ctid FROM items LIMIT (SELECT count(*) * 3 / 10 FROM items)); VACUUM (INDEX_CLEANUP ON) items');
	insert($next, $next + 199); $next += 200 }, "CALL pgwarp_merge('items_half')");
crash_at_points('items_half', 'bulkdelete', sub {
	add_few(); sql('DELETE FROM items WHERE ctid IN (SELECT ctid FROM items ORDER BY id DESC LIMIT 10); DELETE FROM items WHERE ctid IN (SELECT ctid FROM items LIMIT 10)') },
	'VACUUM (INDEX_CLEANUP ON, PARALLEL 0) items');
crash_at_points('items_half', 'rebuild', sub {
	sql("DELETE FROM items WHERE id >= 7000000; VACUUM (INDEX_CLEANUP ON) items; REINDEX INDEX items_half;
		INSERT INTO items SELECT i, ARRAY(SELECT ((hashint8(i::bigint * 31 + d) % 1000) * (d % 3 - 1))::real / 100 - 9 FROM generate_series(1, 16) d)::vector(16)
		FROM generate_series(7000000, 7000999) i") }, "CALL pgwarp_merge('items_half')");
crash_at_points('items_tree', 'rebuild (pqtree)', sub {
	sql("DELETE FROM items WHERE id >= 7000000; VACUUM (INDEX_CLEANUP ON) items; REINDEX INDEX items_tree;
		INSERT INTO items SELECT i, $vector FROM generate_series(7000000, 7002999) i") }, "CALL pgwarp_merge('items_tree')");
sql('DELETE FROM items WHERE id >= 7000000');
sql("CREATE TABLE cleared (id int, v vector(64)); CREATE INDEX cleared_v ON cleared USING exact (v)");
crash_at_points('cleared_v', 'clear and sweep', sub {
	sql("TRUNCATE cleared; INSERT INTO cleared SELECT i, array_fill(i, ARRAY[64])::vector FROM generate_series(1, 1200) i;
		CALL pgwarp_merge('cleared_v'); DELETE FROM cleared") }, 'VACUUM (INDEX_CLEANUP ON, PARALLEL 0) cleared');
sql('CREATE TABLE wide (id int, v vector(3000)); ALTER TABLE wide ALTER v SET STORAGE EXTERNAL; CREATE INDEX wide_v ON wide USING exact (v)');
crash_at_points('wide_v', 'INSERT', sub { }, "INSERT INTO wide SELECT i, array_fill(i, ARRAY[3000])::vector FROM generate_series(1, 3) i");
crash_at_points('wide_v', 'INSERT into free pages', sub {
	sql("INSERT INTO wide SELECT i, array_fill(i, ARRAY[3000])::vector FROM generate_series(1, 6) i; CALL pgwarp_merge('wide_v')") },
	"INSERT INTO wide SELECT i, array_fill(i, ARRAY[3000])::vector FROM generate_series(1, 3) i");
# Large arrays go past the shared buffers.
sql('INSERT INTO wide SELECT i, array_fill(i, ARRAY[3000])::vector FROM generate_series(1, 100) i');
crash_at_points('wide_v', 'REINDEX', sub { }, 'REINDEX INDEX wide_v');
# Rows without a place have a log and a segment of their own.
sql("CREATE TABLE unplaced (id int, v vector(2)); CREATE INDEX unplaced_v ON unplaced USING graph (v vector_cosine_ops)");
my $nulls = "INSERT INTO unplaced SELECT i, CASE WHEN i % 3 = 0 THEN '[0,0]'::vector WHEN i % 200 = 1 THEN ARRAY[i, 1]::vector END FROM generate_series(1, 600) i";
crash_at_points('unplaced_v', 'INSERT of unplaced rows', sub { }, $nulls);
crash_at_points('unplaced_v', 'merge of unplaced rows', sub { sql("$nulls; DELETE FROM unplaced WHERE id % 7 = 0; VACUUM (INDEX_CLEANUP ON) unplaced") }, "CALL pgwarp_merge('unplaced_v')");
crash_at_points('unplaced_v', 'merge of unplaced rows alone', sub { sql("CALL pgwarp_merge('unplaced_v'); INSERT INTO unplaced SELECT i FROM generate_series(1, 50) i") }, "CALL pgwarp_merge('unplaced_v')");
crash_at_points('unplaced_v', 'bulkdelete of unplaced rows', sub { sql("INSERT INTO unplaced SELECT i FROM generate_series(1, 50) i; CALL pgwarp_merge('unplaced_v'); $nulls; DELETE FROM unplaced WHERE id % 5 = 0") },
	'VACUUM (INDEX_CLEANUP ON, PARALLEL 0) unplaced');
cmp_ok($passed{'merge: unplaced rows written'} // 0, '>=', 2, 'they are written');
# Rows of text have different lengths.
sql('CREATE TABLE titled (id int, title text); ALTER TABLE titled ALTER title SET STORAGE EXTERNAL; CREATE INDEX titled_title ON titled USING matchcount (title)');
my $titles = "INSERT INTO titled SELECT i, repeat(md5(i::text), i % 50 * 10) FROM generate_series(1, 60) i";
crash_at_points('titled_title', 'INSERT of texts', sub { }, $titles);
crash_at_points('titled_title', 'merge of texts', sub { sql("$titles; DELETE FROM titled WHERE id % 7 = 0; VACUUM (INDEX_CLEANUP ON) titled") }, "CALL pgwarp_merge('titled_title')");
crash_at_points('titled_title', 'REINDEX of texts', sub { }, 'REINDEX INDEX titled_title');
# Sets, documents, and sets with signatures, whose merges take the engine.
sql("CREATE TABLE tagged (id int, tags int[], words tsvector); ALTER TABLE tagged ALTER tags SET STORAGE EXTERNAL;
	CREATE INDEX tagged_tags ON tagged USING matchcount (tags); CREATE INDEX tagged_words ON tagged USING matchcount (words tsvector_bm25_ops)");
my $tags = "INSERT INTO tagged SELECT i, ARRAY(SELECT hashint4(i * 31 + d) & 255 FROM generate_series(1, i % 50 * 9) d),
	(SELECT to_tsvector('simple', coalesce(string_agg('w' || (hashint4(i * 31 + d) & 63), ' '), '')) FROM generate_series(1, i % 50 * 9) d) FROM generate_series(1, 60) i";
my $fewer = "$tags; DELETE FROM tagged WHERE id % 7 = 0; VACUUM (INDEX_CLEANUP ON) tagged";
crash_at_points('tagged_tags', 'INSERT of sets', sub { }, $tags);
crash_at_points('tagged_tags', 'merge of sets', sub { sql($fewer) }, "CALL pgwarp_merge('tagged_tags')");
crash_at_points('tagged_tags', 'REINDEX of sets', sub { }, 'REINDEX INDEX tagged_tags');
crash_at_points('tagged_words', 'merge of documents', sub { sql($fewer) }, "CALL pgwarp_merge('tagged_words')");
crash_at_points('tagged_words', 'REINDEX of documents', sub { }, 'REINDEX INDEX tagged_words');
sql('CREATE INDEX tagged_signed ON tagged USING matchcount (tags int4_array_minhash_ops)');
crash_at_points('tagged_signed', 'merge of signed sets', sub { sql($fewer) }, "CALL pgwarp_merge('tagged_signed')");
crash_at_points('tagged_signed', 'REINDEX of signed sets', sub { }, 'REINDEX INDEX tagged_signed');
# An update of every row leaves so many free pages that another merge follows, to the front of the file.
sql('CREATE TABLE streamed (id int, v vector(1500)); ALTER TABLE streamed ALTER v SET STORAGE EXTERNAL;
	INSERT INTO streamed SELECT i, array_fill(i, ARRAY[1500])::vector FROM generate_series(1, 1600) i; CREATE INDEX streamed_v ON streamed USING exact (v)');
crash_at_points('streamed_v', 'merge to the front', sub { sql('REINDEX INDEX streamed_v; UPDATE streamed SET v = array_fill(random()::real, ARRAY[1500])::vector') }, 'VACUUM (INDEX_CLEANUP ON, PARALLEL 0) streamed');
cmp_ok($passed{'merge: log\'s page moved'} // 0, '>=', 8, 'it moves the pages that logs end with');
crash_at_points('items_exact', 'CREATE INDEX', sub { }, 'CREATE INDEX extra ON items USING ivfadc (v) INCLUDE (id); DROP INDEX extra');
crash_at_points('items_exact', 'CREATE INDEX (pqtree)', sub { }, 'CREATE INDEX extra ON items USING pqtree (v) INCLUDE (id); DROP INDEX extra');
for my $index ('items_exact', 'items_half', 'items_pq', 'items_tree', 'items_graph', 'cleared_v', 'wide_v', 'unplaced_v', 'titled_title', 'tagged_tags', 'tagged_words', 'tagged_signed', 'streamed_v')
{
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT count(*) FROM pgwarp_check('$index', true)");
	is($rc, 0, "$index: whole in the end") or diag $err;
}
same_rows($node, 'items', 'exact answers in the end');
note "points passed, by name:";
note sprintf('%6d %s', $passed{$_}, $_) for sort keys %passed;
note scalar(keys %passed) . ' names of points; ' . $crashes . ' crashes';

# Conversations. The rows stay as they are; each statement ends in `SELECT` of its answer, which must not change.
my $errors = qr/pgwarp-engine ended during a request of this session|pgwarp-engine ended twice during a search of index|pgwarp-engine ended repeatedly while index|pgwarp-engine did not answer within|no such build: its session is gone, or the engine was restarted/;
my $near = "SELECT string_agg(id::text, ' ') FROM (SELECT id FROM items ORDER BY v <-> array_fill(4, ARRAY[16])::vector LIMIT 7) s";
sql('CREATE TABLE queries AS SELECT id, v FROM items ORDER BY id LIMIT 20');
my @talks = (
	[ 'search after a load', "SELECT FROM pgwarp_release('items_exact'); SET enable_seqscan = off; $near" ],
	[ 'search of an ivfadc index', "SELECT FROM pgwarp_release('items_half'); SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <=> array_fill(4, ARRAY[16])::vector LIMIT 7) s" ],
	[ 'search of a pqtree index', "SELECT FROM pgwarp_release('items_tree'); SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v::halfvec(16) <-> array_fill(4, ARRAY[16])::halfvec LIMIT 7) s" ],
	[ 'search of a graph index', "SELECT FROM pgwarp_release('items_graph'); SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <+> array_fill(4, ARRAY[16])::vector LIMIT 7) s" ],
	[ 'every row', "SET enable_seqscan = off; SET enable_sort = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> array_fill(4, ARRAY[16])::vector) s" ],
	[ 'rows from the log', "BEGIN; INSERT INTO items SELECT -1, array_fill(4, ARRAY[16])::vector; SET LOCAL enable_seqscan = off; $near; ROLLBACK" ],
	[ 'join', "SET enable_seqscan = off; SELECT sum(n.id) FROM queries q CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <-> q.v LIMIT 3) n" ],
	[ 'knn_search', "SELECT count(*), round(sum(distance)::numeric, 3) FROM knn_search('items_exact', (SELECT array_agg(v ORDER BY id) FROM queries), 5)" ],
	[ 'knn_graph', "SELECT count(*) FROM knn_graph('items_exact', 3)" ],
	[ 'prewarm', "SELECT FROM pgwarp_release('items_pq'); SELECT pgwarp_prewarm('items_pq') > 0" ],
	[ 'build', 'BEGIN; CREATE INDEX extra ON items USING ivfadc (v); SELECT count(*) FROM pgwarp_check(\'extra\', true); ROLLBACK' ],
	[ 'merge', "CALL pgwarp_merge('items_pq'); SELECT delta_rows FROM pgwarp_index_info('items_pq')", sub { insert($next, $next); sql("DELETE FROM items WHERE id = $next"); ++$next } ]);
my ($deaths, $refused, $told, %types) = (0, 0, 0);

# A launcher that begins has no back-off yet.
sub restart_launcher { sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'"); return }

sub talk_at_points
{
	my ($name, $statement, $prepare) = @_;
	$prepare //= sub { };
	$prepare->();
	my @points = list_points('message', $statement);
	$told += @points;
	$types{$_}++ for @points;
	my $truth = do { $prepare->(); sql("$load_library $statement") };
	my @wrong;
	for my $step (choose_points(@points))
	{
		$prepare->();
		my ($rc, $out, $err) = $node->psql('postgres', "$load_library SET pgwarp.fault_message = $step; $statement");
		++$deaths;
		++$refused if $rc != 0;
		push @wrong, "$points[$step - 1] ($step): $out instead of $truth" if $rc == 0 && $out ne $truth;
		push @wrong, "$points[$step - 1] ($step): $err" if $rc != 0 && $err !~ $errors;
		restart_launcher() if $deaths % 3 == 0;
	}
	is(join("\n", @wrong), '', "$name: answered, or refused with the engine's end as the reason, at its points of " . @points);
	is(sql("$load_library $statement"), $truth, "$name: answered in the end");
	return;
}
my $started = sql('SELECT pg_postmaster_start_time()');
talk_at_points(@$_) for @talks;
is(sql('SELECT pg_postmaster_start_time()'), $started, 'the server never restarted');
note "$told steps of conversations, " . scalar(keys %types) . " kinds; the engine died $deaths times, $refused statements were refused";

# The session is killed instead: the engine drops its unfinished request.
my $sessions = 0;
for my $talk ($talks[0], $talks[9])
{
	my ($name, $statement) = @$talk;
	my @points = list_points('message', $statement);
	my $truth = sql("$load_library $statement");
	my @wrong;
	for my $step (choose_points(@points))
	{
		my $log_end = -s $node->logfile;
		my ($rc) = $node->psql('postgres', "$load_library SET pgwarp.fault_session = on; SET pgwarp.fault_message = $step; $statement");
		next if $rc == 0;
		++$sessions;
		await_restart($node, $log_end);
		my ($again, $out, $err) = $node->psql('postgres', "$load_library $statement");
		push @wrong, "$points[$step - 1] ($step): $out$err" if $out ne $truth;
	}
	is(join("\n", @wrong), '', "$name: answered after its session was killed at its points of " . @points);
}
note "$sessions sessions killed at steps of conversations";
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|signal 11|wrong distance|wrong included/, 'the log tells of nothing worse');
$node->stop;
done_testing();
