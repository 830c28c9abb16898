# A day's worth of inserts, updates and deletes in little time, while only autovacuum and the merge worker maintain the
# indexes: every row is replaced three times, and an empty table is filled. Afterwards the indexes are as small
# and as fast as new ones, and have the same recall.
#   PGWARP_CHURN=full   100,000 rows of 128 dimensions; else a tenth, of 32 dimensions
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use List::Util qw(max min);
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $full = ($ENV{PGWARP_CHURN} // '') eq 'full';
my ($rows, $dimensions) = $full ? (100_000, 128) : (8_000, 32);
# Transactions of twenty rows that come in a second; fewer where the machine has other things to do, and merges can't
# keep up.
my @rates = $full ? (150) : (120, 40, 15);
my $queries = 2000;
my $node = new_cluster('churn', 'autovacuum' => 'on', 'autovacuum_naptime' => '1s', 'jit' => 'off', 'shared_buffers' => '512MB',
	'max_wal_size' => '4GB', 'synchronous_commit' => 'off', 'deadlock_timeout' => '60s');    # before that, nobody cancels autovacuum

sub sql { return $node->safe_psql('postgres', @_) }

# One column of pgwarp_index_info.
sub info { my ($index, $column) = @_; return sql("SELECT $column FROM pgwarp_index_info('$index')") }

sub write_script
{
	my ($name, $text) = @_;
	my $path = $node->basedir . "/$name.sql";
	open my $file, '>', $path or die $!;
	print {$file} $text;
	close $file;
	return $path;
}

# Begin pgbench with four sessions.
sub start_load
{
	my ($script, $transactions, $rate, $output) = @_;
	my @command = ('pgbench', '-n', '-c', 4, '-t', $transactions / 4, '-R', $rate, '-D', "rows=$rows", '-f', $script, $node->connstr('postgres'));
	return IPC::Run::start(\@command, '>', $output, '2>&1');
}

# Rows in the logs and bytes of an index under load. Also searches this index, whichever other indexes the table has,
# because searches and inserts start merges.
sub look
{
	my ($index) = @_;
	sql("SELECT count(*) FROM knn_search('$index', ARRAY(SELECT v FROM queries OFFSET floor(random() * $queries) LIMIT 1), 20)");
	return split /\|/, info($index, 'delta_rows, bytes');
}

# Watch indexes until the load ends: returns the figures of each index.
sub watch
{
	my ($load, @indexes) = @_;
	my (%delta, %bytes);
	while ($load->pumpable)
	{
		for my $index (@indexes)
		{
			my ($delta, $bytes) = look($index);
			push @{ $delta{$index} }, $delta;
			push @{ $bytes{$index} }, $bytes;
		}
		$load->pump_nb;
		sleep 0.5;
	}
	return (\%delta, \%bytes);
}

# Rows that an index's logs may hold before they add a quarter to the cost of a search, or are worth a merge at all.
sub log_limit
{
	my ($index) = @_;
	return max(1000, sql("SELECT CASE method WHEN 'exact' THEN rows / 4 WHEN 'graph' THEN rows / 32 WHEN 'pqtree' THEN 0 ELSE ((options->>'lists')::int + rows * 0.025) / 4 END::bigint FROM pgwarp_index_info('$index')"));
}

# Where the engine has measured the cost of delta rows, that decides: cheap ones are not merged.
sub costs_little
{
	my ($index) = @_;
	return sql("SELECT coalesce((SELECT delta_cost <= 0.25 FROM pgwarp_status WHERE index = '$index'::regclass AND NOT loading ORDER BY delta_rows LIMIT 1), false)::int");
}

sub worker_runs { return sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('autovacuum worker', 'pgwarp merge') AND state = 'active'") }

# Whether autovacuum has little to do in a table, and no process works there.
sub is_tidy
{
	my ($table) = @_;
	return sql("SELECT (n_dead_tup <= 50 + 0.2 * n_live_tup)::int FROM pg_stat_user_tables WHERE relname = '$table'") && !worker_runs();
}

# Searches go on until an index is in good order, or for a minute.
sub settles
{
	my ($table, $index) = @_;
	my $started = time;
	my ($delta, $settled);
	while (!$settled && time - $started < 60)
	{
		sleep 0.5;
		($delta) = look($index);
		$settled = ($delta <= log_limit($index) || costs_little($index)) && is_tidy($table);
	}
	ok($settled, sprintf '%s: in good order %.0f s after the load', $index, time - $started) or diag(
		"$delta rows in the logs, of " . log_limit($index) . '; ' . sql("SELECT json_agg(s) FROM pgwarp_status s WHERE index = '$index'::regclass"),
		'; ' . sql("SELECT json_agg(json_build_array(backend_type, query, now() - backend_start)) FROM pg_stat_activity WHERE backend_type ~ 'pgwarp merge|autovacuum worker'"),
		'; ' . sql("SELECT to_json(s) FROM pg_stat_user_tables s WHERE relname = '$table'"));
	return;
}

# Recall@10 of an index beside an exact one of the same table.
sub recall
{
	my ($index, $exact, $settings) = @_;
	return sql(($settings // '') . "SELECT round(avg((a.tid IS NOT NULL)::int), 4) FROM knn_search('$exact', (SELECT array_agg(v ORDER BY id) FROM queries), 10) e
		LEFT JOIN knn_search('$index', (SELECT array_agg(v ORDER BY id) FROM queries), 10) a USING (query, tid)");
}

# The same with one effort for all indexes in place of their calibrations: a part of the lists, and of the rows. Of few
# lists it is a larger part: there, differences by chance between trainings weigh more. In a graph, rows that are dead in
# the table take places among a search's candidates until VACUUM marks them in the index.
sub recall_by_effort
{
	my ($index, $exact) = @_;
	if (info($index, 'method') eq 'graph')
	{
		my $count = sql("SELECT count(*) FROM " . ($index =~ s{_.*}{}r));
		my $effort = info($index, "round(24.0 * (rows + delta_rows) / $count)");
		return recall($index, $exact, "SET pgwarp.graph_ef_search = $effort;");
	}
	if (info($index, 'method') eq 'pqtree')
	{
		my $candidates = info($index, 'ceil((rows + dead_rows) * 0.03)');
		return recall($index, $exact, "SET pgwarp.pqtree_candidates = $candidates;");
	}
	my $probes = info($index, "ceil((options->>'lists')::int * " . ($full ? 0.02 : 0.03) . ')');
	return recall($index, $exact, "SET pgwarp.ivfadc_probes = $probes; SET pgwarp.refine_factor = 4;");
}

# Milliseconds of one search, the best of some rounds, for each index; they take turns, so that others on the machine
# slow both.
sub search_times
{
	my %best;
	for my $round (1 .. 9)
	{
		for my $index (@_)
		{
			my $time = sql("SET pgwarp.verify_results = off; SELECT search_time('$index')");
			$best{$index} = min($time, $best{$index} // $time);
		}
	}
	return map { $best{$_} } @_;
}

# An index in use beside one that is built now.
sub compare_with_fresh
{
	my ($table, $index, $exact, $most_sizes) = @_;
	my $fresh = "${table}_fresh";
	my $method = info($index, 'method');
	# Searches of a graph go through the dead rows that it may have.
	my $most_time = $method eq 'graph' ? 1.5 : 1.25;
	sql("CREATE INDEX $fresh ON $table USING $method (v)");
	note join '; ', map { info($_, 'options') } $index, $fresh;
	my ($recall, $fresh_recall) = map { recall_by_effort($_, $exact) } $index, $fresh;
	cmp_ok($recall, '>=', $fresh_recall - 0.01, "$index: recall $recall, of a fresh one with the same effort $fresh_recall");
	($recall, $fresh_recall) = map { recall($_, $exact) } $index, $fresh;
	cmp_ok($recall, '>=', 0.94, "$index: recall $recall where 0.95 is asked for, of a fresh one $fresh_recall");
	my ($size, $fresh_size) = map { sql("SELECT pg_relation_size('$_')") } $index, $fresh;
	cmp_ok($size, '<=', $most_sizes * $fresh_size, sprintf '%s: %.2f times the size of a fresh one', $index, $size / $fresh_size);
	my ($time, $fresh_time);
	# On a busy machine the measurement is repeated.
	for my $try (1 .. 3)
	{
		($time, $fresh_time) = search_times($index, $fresh);
		last if $time <= $most_time * $fresh_time;
		# Delta rows that are too few for a merge, and dead ones that autovacuum leaves until they are a fifth, weigh more in
		# a small table: some tens of microseconds in each search.
		note sprintf '%s: %.2f times the time of a fresh one, %s dead rows wait', $index, $time / $fresh_time,
			sql("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = '$table'");
		sql("VACUUM (INDEX_CLEANUP ON) $table");
		sql("CALL pgwarp_merge('$index')") unless $full || $method eq 'graph';
	}
	cmp_ok($time, '<=', $most_time * $fresh_time, "$index: a search takes $time ms, of a fresh one $fresh_time ms");
	sql("DROP INDEX $fresh");
	return;
}

sub is_whole
{
	my ($table, @indexes) = @_;
	my $rows = sql("SELECT count(*) FROM $table");
	for my $index (@indexes)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT live_rows >= $rows, unused_pages FROM pgwarp_check('$index', true)");
		is($out, 't|0', "$index: whole, and no page is lost") or diag $err;
	}
	return;
}

# No more autovacuum: the table must not change during the measurements.
sub quiet
{
	my ($on) = @_;
	$node->append_conf('postgresql.conf', "autovacuum = $on");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type IN ('autovacuum launcher', 'autovacuum worker', 'pgwarp merge')") if $on eq 'off';
	return;
}

# Rows around 64 places.
sql(qq{
	SELECT setseed(0.25);
	CREATE TABLE places (id int PRIMARY KEY, v vector($dimensions));
	INSERT INTO places SELECT i, ARRAY(SELECT random() * 10 FROM generate_series(1, $dimensions) WHERE i IS NOT NULL)::real[]::vector FROM generate_series(0, 63) i;
	CREATE FUNCTION draw(i bigint) RETURNS vector LANGUAGE sql VOLATILE AS \$\$
		SELECT (SELECT v FROM places OFFSET floor(random() * 64) LIMIT 1)
			+ ARRAY(SELECT (random() + random() + random() - 1.5) * 4 FROM generate_series(1, $dimensions) WHERE i IS NOT NULL)::real[]::vector \$\$;
	CREATE TABLE queries (id int, v vector($dimensions));
	INSERT INTO queries SELECT i, draw(i) FROM generate_series(1, $queries) i;
	CREATE FUNCTION search_time(index regclass) RETURNS float8 LANGUAGE plpgsql AS \$\$
	DECLARE
		started timestamptz := clock_timestamp();
		query vector;
	BEGIN
		FOR query IN SELECT v FROM queries LIMIT 100 LOOP
			PERFORM count(*) FROM knn_search(index, ARRAY[query], 10);
		END LOOP;
		RETURN round((extract(epoch FROM clock_timestamp() - started) * 10)::numeric, 4);
	END \$\$;
	CREATE TABLE items (id int PRIMARY KEY, version int, v vector($dimensions));
	INSERT INTO items SELECT i, 0, draw(i) FROM generate_series(1, $rows) i;
	CREATE INDEX items_exact ON items USING exact (v);
	CREATE INDEX items_ivfadc ON items USING ivfadc (v);
	CREATE INDEX items_pqtree ON items USING pqtree (v);
	CREATE INDEX items_graph ON items USING graph (v);
	CREATE SEQUENCE turn;
	CREATE TABLE loaded (id int, v vector($dimensions));
	CREATE INDEX loaded_exact ON loaded USING exact (v);
	CREATE INDEX loaded_ivfadc ON loaded USING ivfadc (v);
	CREATE INDEX loaded_pqtree ON loaded USING pqtree (v);
	CREATE INDEX loaded_graph ON loaded USING graph (v);
});
my %built = map { $_ => sql("SELECT pg_relation_size('$_')") } 'items_exact', 'items_ivfadc', 'items_pqtree', 'items_graph';

# Twenty rows at a time get other vectors, half of them by an update, half by a removal; some rows are never committed.
my $replace = write_script('replace', q{
SELECT nextval('turn') - 1 AS turn \gset
\set first (:turn * 20) % :rows
BEGIN;
UPDATE items SET v = draw(id), version = version + 1 WHERE id > :first AND id <= :first + 10;
WITH gone AS (DELETE FROM items WHERE id > :first + 10 AND id <= :first + 20 RETURNING id, version)
	INSERT INTO items SELECT id, version + 1, draw(id) FROM gone;
SAVEPOINT later;
INSERT INTO items SELECT -id, -1, draw(i) FROM generate_series(1, 2) i, LATERAL (SELECT i + :turn * 2 AS id) numbers;
ROLLBACK TO later;
COMMIT;
});
my @items = ('items_exact', 'items_ivfadc', 'items_pqtree', 'items_graph');
my ($load, $replaced, $output, %logs, %sizes);
for my $try (0 .. $#rates)
{
	($replaced, $output) = (time, '');
	$load = start_load($replace, 3 * $rows / 20, $rates[$try], \$output);
	my ($delta, $bytes) = watch($load, @items);
	ok($load->finish, sprintf '%d rows replaced three times in %.0f s', $rows, time - $replaced) or diag $output;
	unlike($output, qr/ERROR/, 'without an error') or diag $output;
	is(sql('SELECT count(*), min(version) FROM items'), "$rows|" . 3 * ($try + 1), 'every row is there, and another one');
	settles('items', $_) for @items;
	for my $index (@items)
	{
		note "$index: rows in its logs: @{ $delta->{$index} }";
		note "$index: size, in sizes when built: " . join ' ', map { sprintf '%.2f', $_ / $built{$index} } @{ $bytes->{$index} };
	}
	%logs = map { $_ => max(@{ $delta->{$_} }) } @items;
	# At first an index may be as large as a faster stream has left it.
	%sizes = map { my @seen = @{ $bytes->{$_} }; $_ => max(@seen[ @seen / 2 .. $#seen ]) / $built{$_} } @items;
	# Long logs, and two generations beside them, leave room behind.
	last if !grep { $logs{$_} >= 1.5 * $rows || $sizes{$_} > 4 || sql("SELECT pg_relation_size('$_')") > 2.8 * $built{$_} } @items;
}
quiet('off');
for my $index (@items)
{
	cmp_ok($logs{$index}, '<', 1.5 * $rows, "$index: its logs stay short");
	cmp_ok($sizes{$index}, '<=', 4, "$index: its size stays within bounds");
}
is_whole('items', @items);
compare_with_fresh('items', $_, 'items_exact', 3) for 'items_ivfadc', 'items_pqtree', 'items_graph';
sql('ALTER TABLE items SET (autovacuum_enabled = off)');
quiet('on');

# A table that was empty when it was indexed.
my $insert = write_script('insert', "INSERT INTO loaded SELECT i, draw(i) FROM generate_series(1, 20) i;\n");
my $filled = time;
$load = start_load($insert, $rows / 20, $rates[0], \$output);
watch($load, 'loaded_ivfadc');
ok($load->finish, sprintf '%d rows inserted in %.0f s', $rows, time - $filled) or diag $output;
settles('loaded', $_) for 'loaded_ivfadc', 'loaded_pqtree', 'loaded_graph';
quiet('off');
note 'loaded_ivfadc: ' . info('loaded_ivfadc', 'rows, delta_rows, options');
cmp_ok(info('loaded_ivfadc', "(calibration->>'sample')::int"), '>', 0, 'an index of an empty table gets a calibration');
is_whole('loaded', 'loaded_exact', 'loaded_ivfadc', 'loaded_pqtree', 'loaded_graph');
compare_with_fresh('loaded', $_, 'loaded_exact', 3) for 'loaded_ivfadc', 'loaded_pqtree', 'loaded_graph';

sql('DROP INDEX items_ivfadc, items_pqtree, items_graph');
same_rows($node, 'items', 'exact answers');
unlike(slurp_file($node->logfile), qr/(ERROR|PANIC|FATAL|WARNING): /, 'nothing to complain about in the log');
$node->stop;
done_testing();
