# pgwarp's plans among PostgreSQL's own machinery: pg_stat_statements and auto_explain loaded before and after it, rows
# that are looked at again because another session changed them, subtransactions under open cursors, searches within
# searches, plans that outlive roles and indexes, and predicate locks.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $query = "'[0.4,0.5,0.6,0.5]'";
my $forced = 'SET enable_seqscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0';
my $plain = 'SET pgwarp.knn_batch = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0';

# A statement for each node, and one that names none; the first two columns are the rows' keys and distances.
my %statements = (
	'Index Scan' => "SELECT id, v <-> $query AS d FROM items ORDER BY v <-> $query LIMIT 6",
	KnnFilter => "SELECT id, v <-> $query AS d FROM items WHERE v <-> $query < 0.4 ORDER BY v <-> $query LIMIT 6",
	KnnBatch => 'SELECT asked.id, n.id AS near FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.v LIMIT 2) n',
	'KnnBatch of a sub-select' => 'SELECT id, kind FROM asked WHERE kind IN (SELECT kind FROM (SELECT kind FROM items i ORDER BY i.v <-> asked.v LIMIT 5) s) OR id < 0',
	KnnPartitions => "SELECT id, v <-> $query AS d FROM parts ORDER BY v <-> $query LIMIT 6");

sub node_of { my ($name) = @_; return $name =~ s/ of .*//r }

my $tables = q{
	SELECT setseed(0.5);
	CREATE FUNCTION random_vector() RETURNS vector LANGUAGE sql VOLATILE AS 'SELECT array_agg(random())::vector(4) FROM generate_series(1, 4)';
	CREATE TABLE items (id int PRIMARY KEY, kind int, v vector(4));
	INSERT INTO items SELECT i, i % 7, random_vector() FROM generate_series(1, 300) i;
	CREATE TABLE parts (id int, kind int, v vector(4)) PARTITION BY LIST (kind);
	CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (0, 1, 2);
	CREATE TABLE parts_b PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT * FROM items;
	CREATE TABLE asked (id int PRIMARY KEY, kind int, v vector(4));
	INSERT INTO asked SELECT i, i % 4, random_vector() FROM generate_series(1, 12) i;
	CREATE TABLE gaps (id int PRIMARY KEY, v vector(4));
	INSERT INTO gaps SELECT id, CASE WHEN id > 3 THEN v END FROM items;
	CREATE INDEX gaps_v ON gaps USING exact (v);
	CREATE INDEX items_v ON items USING exact (v);
	CREATE INDEX parts_v ON parts USING exact (v);
	CREATE FUNCTION nested(query vector) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN
		RETURN (SELECT count(*) FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.v LIMIT 3) n WHERE asked.v <> query); END$$;
	CREATE FUNCTION nearest(query vector) RETURNS int LANGUAGE plpgsql STABLE AS $$BEGIN
		RETURN (SELECT id FROM items ORDER BY v <-> query LIMIT 1); END$$;
	ANALYZE};

# Other libraries' hooks, whose order is that of loading.
sub check_company
{
	my ($libraries) = @_;
	my $node = new_cluster('company_' . ($libraries =~ /^pgwarp/ ? 'after' : 'before'), 'jit' => 'off', 'shared_preload_libraries' => "'" . $libraries =~ s/pgwarp/\$libdir\/pgwarp/r . "'",
		'auto_explain.log_min_duration' => 0, 'auto_explain.log_nested_statements' => 'on', 'auto_explain.log_analyze' => 'on', 'auto_explain.log_verbose' => 'on',
		'auto_explain.log_buffers' => 'on', 'pg_stat_statements.track' => 'all', 'pgwarp.load_at_start' => 'off');
	$node->safe_psql('postgres', "CREATE EXTENSION pg_stat_statements; $tables");
	for my $name (sort keys %statements)
	{
		my $expected = $node->safe_psql('postgres', "$plain; $statements{$name}");
		$node->safe_psql('postgres', 'SELECT FROM pg_stat_statements_reset()');
		my $end = -s $node->logfile;
		is($node->safe_psql('postgres', "$forced; $statements{$name}"), $expected, "$libraries: $name");
		my $log = substr slurp_file($node->logfile), $end;
		my $shown = node_of($name) =~ /Knn/ ? 'Custom Scan \(' . node_of($name) . '\)' : 'Index Scan using items_v';
		like($log, qr/Query Text.*$shown.*actual/s, "$libraries: auto_explain shows $name, with what was counted");
		my $rows = () = $expected =~ /^./mg;
		is($node->safe_psql('postgres', "SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'SELECT %' AND query LIKE '% <-> %'"), "1|$rows", "$libraries: pg_stat_statements counts $name once");
	}
	my $end = -s $node->logfile;
	is($node->safe_psql('postgres', "$forced; SELECT nested('[0,0,0,0]'), nested('[1,1,1,1]')"), '36|36', "$libraries: statements of a function");
	my $log = substr slurp_file($node->logfile), $end;
	my $plans = () = $log =~ /Custom Scan \(KnnBatch\)/g;
	is($plans, 2, "$libraries: auto_explain shows nested batches");
	is($node->safe_psql('postgres', "SELECT calls FROM pg_stat_statements WHERE query LIKE '%LATERAL%' AND NOT toplevel"),
		2, "$libraries: pg_stat_statements counts nested batches");
	unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, "$libraries: nothing worse in the log");
	$node->stop;
	return;
}
check_company('pg_stat_statements, auto_explain, pgwarp');
check_company('pgwarp, auto_explain, pg_stat_statements');

my $node = new_cluster('plans', 'jit' => 'off', 'autovacuum' => 'off');
sub sql { return $node->safe_psql('postgres', @_) }
sql($tables);

sub session
{
	my ($settings) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($settings // $forced);
	return $session;
}

# The output of a statement that waits for another session's transaction, which ends during the wait.
sub after_wait
{
	my ($session, $statement, $end) = @_;
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid") or die 'it does not wait';
	$end->();
	return $session->query('SELECT 1') =~ s/^begun\n//r =~ s/\n?1\z//r;
}

# EvalPlanQual: the same plan evaluates rows again that another session changed during a wait for them.
sub look_again
{
	my ($name, $statement, $change, $undo) = @_;
	my %found;
	for my $settings ($plain, $forced)
	{
		my ($writer, $reader) = (session($settings), session($settings));
		$writer->query_safe("BEGIN; $change");
		$reader->query_safe('BEGIN');
		my $rows = after_wait($reader, $statement, sub { $writer->query_safe('COMMIT') });
		is($reader->{stderr}, '', "$name: no error");
		$found{$settings} = join ' ', sort split /\n/, $rows;
		$reader->query_safe('ROLLBACK');
		$_->quit for $writer, $reader;
		sql($undo);
	}
	like(sql("$forced; EXPLAIN $statement"), qr/@{[ node_of($name) ]}/, "$name: it is in the plan");
	is($found{$forced}, $found{$plain}, "$name: as without it");
	cmp_ok(length $found{$forced}, '>', 0, "$name: rows are left");
	return;
}
my $nearest = sql("SELECT id FROM items ORDER BY v <-> $query LIMIT 1");
my ($near, $gone) = map { "UPDATE $_ SET v = v + '[9,9,9,9]' WHERE id = $nearest" } 'items', 'parts';
my $back = "UPDATE items SET v = v - '[9,9,9,9]' WHERE id = $nearest";
look_again('KnnFilter', "$statements{KnnFilter} FOR UPDATE", $near, $back);
look_again('KnnFilter', "UPDATE items SET kind = kind FROM (SELECT id AS other FROM items WHERE v <-> $query < 0.4 ORDER BY v <-> $query LIMIT 6 FOR UPDATE) n WHERE id = other RETURNING id", "UPDATE items SET kind = kind WHERE id = $nearest", 'SELECT 1');
look_again('KnnPartitions', "$statements{KnnPartitions} FOR UPDATE", $gone, $back =~ s/items/parts/r);
look_again('KnnBatch', "$statements{KnnBatch} FOR UPDATE OF asked", "UPDATE asked SET v = v + '[0.5,0,0,0]' WHERE id = 3", "UPDATE asked SET v = v - '[0.5,0,0,0]' WHERE id = 3");
look_again('KnnBatch', 'UPDATE asked SET kind = asked.kind + n.id FROM asked a CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> a.v LIMIT 1) n WHERE asked.id = a.id RETURNING asked.id, asked.kind',
	'UPDATE asked SET kind = kind + 1000 WHERE id = 3', 'UPDATE asked SET kind = id % 4');
look_again('KnnBatch', 'DELETE FROM items USING asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.v LIMIT 2) n WHERE items.id = n.id RETURNING items.id',
	'UPDATE items SET kind = 5 WHERE id IN (SELECT n.id FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.v LIMIT 2) n)', 'SELECT 1');
look_again('KnnOrder', "SELECT id, -(v <-> $query) AS d FROM gaps ORDER BY d DESC LIMIT 6 FOR UPDATE", 'DELETE FROM gaps WHERE id = 2', 'INSERT INTO gaps VALUES (2, NULL)');
look_again('KnnOrder', 'UPDATE asked SET kind = (SELECT sum(id) FROM (SELECT id FROM gaps g ORDER BY -(g.v <-> asked.v) DESC LIMIT 5) n) WHERE id < 6 RETURNING id, kind',
	'UPDATE asked SET kind = kind + 1000 WHERE id = 3', 'UPDATE asked SET kind = id % 4');

# Subtransactions that end while a cursor is open: the cursor goes on from its row.
for my $name (sort keys %statements)
{
	my $expected = sql("$plain; $statements{$name}");
	my $rows = sql("$forced; BEGIN; DECLARE c CURSOR FOR $statements{$name}; FETCH 2 FROM c; SAVEPOINT s; DELETE FROM items; FETCH 1 FROM c; SAVEPOINT t; SELECT nearest('[1,1,1,1]') \\g /dev/null\n"
		. 'ROLLBACK TO s; FETCH 1 FROM c; ROLLBACK TO s; FETCH ALL FROM c; ROLLBACK');
	is($rows, $expected, "$name: ROLLBACK TO under a cursor");
	my ($rc, $out, $err) = $node->psql('postgres', "$forced; BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR $statements{$name}; FETCH 2 FROM c; ROLLBACK TO s; $statements{$name}; COMMIT");
	like($out, qr/\Q$expected\E\z/, "$name: a cursor that its subtransaction ends");
	is($err, '', "$name: without an error");
}

# A search of an index within a search of the same one: in the filter, the target list and the order.
my %recursive = (
	filter => "SELECT id FROM items WHERE nearest(v) = id ORDER BY v <-> $query LIMIT 7",
	'target list' => "SELECT id, nearest(v + '[0.1,0,0,0]') FROM items ORDER BY v <-> $query LIMIT 7",
	order => "SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = nearest($query)) LIMIT 7",
	'order of a join' => "SELECT asked.id, n.id FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> (SELECT v FROM items WHERE id = nearest(asked.v)) LIMIT 3) n",
	'filter of a join' => "SELECT asked.id, n.id FROM asked CROSS JOIN LATERAL (SELECT id FROM items i WHERE nearest(i.v) % 3 = 1 ORDER BY i.v <-> asked.v LIMIT 3) n",
	'outer side of a join' => "SELECT asked.id, n.id FROM (SELECT id, v, nearest(v) AS own FROM asked OFFSET 0) asked CROSS JOIN LATERAL (SELECT id FROM items i WHERE i.id <> own ORDER BY i.v <-> asked.v LIMIT 3) n");
is(sql("$forced; $recursive{$_}"), sql("$plain; $recursive{$_}"), "a search within a search: $_") for sort keys %recursive;

# Plans that are kept: for other roles, without row security, when their index is dropped.
sql("CREATE ROLE reader; GRANT SELECT ON items, asked, parts TO reader; ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY odd ON items USING (id % 2 = 1 AND v <-> $query < 2)");
my $batch = $statements{KnnBatch} =~ s/LIMIT 2/LIMIT \$1/r;
my $kept = session("$forced; SET plan_cache_mode = force_generic_plan; PREPARE near(int) AS SELECT id FROM items ORDER BY v <-> $query LIMIT \$1; PREPARE batch(int) AS $batch");
for my $role ('none', 'reader', 'none', 'reader')
{
	my $filter = $role eq 'reader' ? 'WHERE id % 2 = 1' : '';
	$kept->query_safe($role eq 'none' ? 'RESET ROLE' : "SET ROLE $role");
	is($kept->query_safe('EXECUTE near(5)'), sql("$plain; SELECT id FROM items $filter ORDER BY v <-> $query LIMIT 5"), "a generic plan for role $role");
	is($kept->query_safe('EXECUTE batch(2)'), sql("$plain; @{[ $statements{KnnBatch} =~ s/items i/(SELECT * FROM items $filter) i/r ]}"), "a generic plan of a join for role $role");
}
$kept->{stderr} = '';
$kept->query('SET row_security = off; EXECUTE near(5)');
like($kept->{stderr}, qr/query would be affected by row-level security policy/, 'row_security = off is obeyed by a kept plan');
$kept->{stderr} = '';
$kept->query_safe('RESET row_security; RESET ROLE');
sql('DROP INDEX CONCURRENTLY items_v');
is($kept->query_safe('EXECUTE near(5)'), sql("SELECT id FROM items ORDER BY v <-> $query LIMIT 5"), 'a generic plan whose index was dropped');
is($kept->query_safe('EXECUTE batch(2)'), sql("$plain; $statements{KnnBatch}"), 'so of a join');
sql('CREATE INDEX CONCURRENTLY items_v ON items USING exact (v)');
is($kept->query_safe('EXECUTE near(5)'), sql("SELECT id FROM items ORDER BY v <-> $query LIMIT 5"), 'and created again');
like($kept->query_safe('EXPLAIN EXECUTE batch(2)'), qr/KnnBatch/, 'the join is batched again');
$kept->quit;

# SERIALIZABLE: every reader of an index takes its predicate lock, also where rows are searched for ahead.
for my $name (sort keys %statements)
{
	my $session = session("$forced; BEGIN ISOLATION LEVEL SERIALIZABLE; DECLARE c CURSOR FOR $statements{$name}; FETCH 1 FROM c");
	my $index = $name eq 'KnnPartitions' ? 'parts_a_v_idx' : 'items_v';
	is($session->query_safe("SELECT count(*) > 0 FROM pg_locks WHERE mode = 'SIReadLock' AND relation = '$index'::regclass"), 't', "$name: a predicate lock after the first row");
	$session->quit;
}

# Two transactions that each miss the other's inserted rows: one must fail with 40001.
for my $name (sort keys %statements)
{
	my @sessions = map { session("$forced; BEGIN ISOLATION LEVEL SERIALIZABLE; \\set VERBOSITY verbose\n$statements{$name} \\g /dev/null\n") } 1, 2;
	my $table = $name eq 'KnnPartitions' ? 'parts' : 'items';
	my $failed = '';
	for my $i (0, 1)
	{
		$sessions[$i]->{stderr} = '';
		$sessions[$i]->query("INSERT INTO $table VALUES (1000 + $i, 1, $query)");
		$failed .= $sessions[$i]->{stderr};
	}
	for my $session (@sessions) { $session->{stderr} = ''; $session->query('COMMIT'); $failed .= $session->{stderr}; $session->quit }
	like($failed, qr/40001/, "$name: of two transactions that miss each other's rows one fails");
	is(sql("SELECT count(*) FROM $table WHERE id >= 1000"), 1, "$name: one commits");
	sql("DELETE FROM $table WHERE id >= 1000");
}

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP|XX000/, 'nothing worse in the log');
$node->stop;
done_testing();
