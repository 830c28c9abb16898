# Merges beside other sessions: finished steps stay when a merge is cancelled, a worker gives way to a session that waits
# for its table, a merge holds no snapshot, and a burst of inserts is merged though it has ended.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_cluster('merge_manners', 'autovacuum' => 'on', 'autovacuum_naptime' => '1d', 'jit' => 'off', 'deadlock_timeout' => '300ms');

sub sql { return $node->safe_psql('postgres', @_) }
sub in_logs { my ($index) = @_; return sql("SELECT delta_rows FROM pgwarp_index_info('$index')") }

# Change settings of the server.
sub configure_server
{
	my (%settings) = @_;
	$node->append_conf('postgresql.conf', "$_ = '$settings{$_}'") for sort keys %settings;
	$node->reload;
	return;
}

my $last = 0;
sub insert
{
	my ($table, $rows, $database) = @_;
	my ($from, $to) = ($last + 1, $last + $rows);
	$last = $to;
	$node->safe_psql($database // 'postgres', "INSERT INTO $table SELECT 100000 + i, ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector FROM generate_series($from, $to) i");
	return;
}

# A search of the index of this method. It starts a worker where no session inserts.
sub search
{
	my ($table, $database) = @_;
	$node->safe_psql($database // 'postgres', "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM $table ORDER BY v <-> (SELECT v FROM $table LIMIT 1) LIMIT 5) s");
	return;
}

# Merges that take a while: every few pages a pause.
my %slow = (vacuum_cost_delay => '60ms', vacuum_cost_limit => 1);
my %fast = (vacuum_cost_delay => 0, vacuum_cost_limit => 200);
my $activity = "FROM pg_stat_activity WHERE backend_type = 'pgwarp merge' AND state = 'active'";
sub worker_at_work { return $node->poll_query_until('postgres', "SELECT count(*) = 1 $activity AND query LIKE 'pgwarp merge of index %'") }
sub worker_gone { return $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pgwarp merge'") }

load_grid($node, 'items', 2000);
sql('ALTER TABLE items DROP CONSTRAINT items_pkey; CREATE INDEX items_v ON items USING exact (v)');

# The burst has ended before the worker may run.
configure_server('pgwarp.merge_worker' => 'off');
insert('items', 4000);
configure_server('pgwarp.merge_worker' => 'on');
is(in_logs('items_v'), 4000, 'a burst of inserts');
search('items');
$node->poll_query_until('postgres', "SELECT delta_rows = 0 FROM pgwarp_index_info('items_v')") or die 'no merge';
pass('is merged when a search meets it');
worker_gone();

# Not where autovacuum isn't wanted.
load_grid($node, 'unwatched', 2000);
sql('CREATE INDEX unwatched_v ON unwatched USING exact (v); ALTER TABLE unwatched SET (autovacuum_enabled = off)');
insert('unwatched', 3000);
for my $try (1 .. 8) { search('unwatched'); sleep 1; }
is(in_logs('unwatched_v'), 3000, 'a table without autovacuum is left alone');
sql('DROP TABLE unwatched');

# The finished steps of a cancelled merge stay.
sql('CREATE INDEX items_ivfadc ON items USING ivfadc (v); CREATE INDEX items_pqtree ON items USING pqtree (v vector_cosine_ops)');
configure_server('pgwarp.merge_worker' => 'off');
insert('items', 1200);
for my $index ('items_v', 'items_ivfadc', 'items_pqtree')
{
	# A step of a tenth of the rows takes long enough to be seen. There are too few of them for another training, which would
	# be one step.
	my $pause = { items_v => '20ms', items_ivfadc => '1ms', items_pqtree => '5ms' }->{$index};
	for my $try (1 .. 3)
	{
		my $before = in_logs($index);
		my $merging = $node->background_psql('postgres', on_error_stop => 0);
		$merging->query_safe("SET pgwarp.merge_step_rows = 120; SET vacuum_cost_delay = '$pause'; SET vacuum_cost_limit = 1; SET application_name = 'cancelled'");
		$merging->query_until(qr/begun/, "\\echo begun\nCALL pgwarp_merge('$index');\n");
		$node->poll_query_until('postgres', "SELECT delta_rows < $before FROM pgwarp_index_info('$index')") or die 'no merge';
		sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled'");
		$merging->query('SELECT 1');
		like($merging->{stderr}, qr/canceling statement due to user request/, "$index: cancelled");
		$merging->quit;
		note "$index: $before rows in its logs, and " . in_logs($index) . ' after a cancelled merge';
	}
	isnt(in_logs($index), 0, "$index: some of the rows were merged, not all");
	sql("CALL pgwarp_merge('$index')");
	is(in_logs($index), 0, "$index: another one ends it");
	is(sql("SELECT live_rows, unused_pages FROM pgwarp_check('$index', true)"), '7200|0', "$index: whole");
}
cmp_ok(sql("SELECT pgwarp_recall('items_ivfadc', 10, 200)"), '>', 0.9, 'recall after a merge in steps');
cmp_ok(sql("SELECT pgwarp_recall('items_pqtree', 10, 200)"), '>', 0.9, 'recall of pqtree after a merge in steps');
sql('DROP INDEX items_ivfadc, items_pqtree');
same_rows($node, 'items', 'exact answers');

# No VACUUM waits for the snapshot of a merge; and the progress of a merge can be watched.
insert('items', 1500);
my $session = $node->background_psql('postgres');
$session->query_safe("SET vacuum_cost_delay = '60ms'; SET vacuum_cost_limit = 1; SET application_name = 'caller'");
$session->query_until(qr/begun/, "\\echo begun\nCALL pgwarp_merge('items_v');\n");
my $progress = "SELECT count(*) FROM pgwarp_merge_progress WHERE index_oid = 'items_v'::regclass";
$node->poll_query_until('postgres', "$progress AND phase LIKE '%writing rows%'", '1') or die 'no progress';
pass('a merge that was called for shows its progress');
is(sql("SELECT bool_and(backend_xmin IS NULL) FROM generate_series(1, 3), LATERAL (SELECT pg_sleep(0.1), backend_xmin FROM pg_stat_activity WHERE application_name = 'caller') s"), 't', 'it holds no snapshot');
$session->query_safe('SELECT 1');
$session->quit;
is(in_logs('items_v'), 0, 'and ends');

# Nor does CREATE INDEX CONCURRENTLY, for whose lock a merge waits.
my $other = $node->background_psql('postgres');
$other->query_safe('BEGIN; LOCK TABLE items IN ROW EXCLUSIVE MODE');
my $waiting = q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name =};
my @sessions;
for my $statement ('CREATE INDEX CONCURRENTLY items_id ON items (id)', q{CALL pgwarp_merge('items_v')})
{
	my $name = 'session ' . @sessions;
	push @sessions, $node->background_psql('postgres', on_error_stop => 0);
	$sessions[-1]->query_safe("SET application_name = '$name'");
	$sessions[-1]->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	$node->poll_query_until('postgres', "$waiting '$name'", '1') or die "$statement does not wait";
}
$other->query_safe('COMMIT');
$other->quit;
for my $waiter (@sessions)
{
	$waiter->query('SELECT 1');
	is($waiter->{stderr}, '', 'no deadlock with CREATE INDEX CONCURRENTLY');
	$waiter->quit;
}

# Wherever it is called from.
sql('CREATE PROCEDURE merge_twice() LANGUAGE plpgsql AS $$ BEGIN
	CALL pgwarp_merge(\'items_v\'); INSERT INTO items SELECT * FROM items LIMIT 10; CALL pgwarp_merge(\'items_v\');
	COMMIT; CALL pgwarp_merge(\'items_v\'); PERFORM count(*) FROM items; END $$');
for my $call ('CALL merge_twice()', 'DO $$ BEGIN CALL merge_twice(); END $$', q{BEGIN; CALL pgwarp_merge('items_v'); SELECT FROM items LIMIT 1; COMMIT},
	q{CALL pgwarp_merge('items_v'), SELECT count(*) FROM items}, q{DO $$ BEGIN BEGIN CALL pgwarp_merge('items_v'); EXCEPTION WHEN division_by_zero THEN END; PERFORM count(*) FROM items; END $$})
{
	my ($rc, $out, $err) = $node->psql('postgres', join '; ', split /, (?=SELECT count)/, $call);
	is("$rc $err", '0 ', $call);
}
is(sql("SELECT live_rows - (SELECT count(*) FROM items) FROM pgwarp_check('items_v', true)"), 0, 'whole');

# A worker at work gives way.
configure_server(%slow, 'pgwarp.merge_worker' => 'on');
insert('items', 5000);
search('items');
worker_at_work() or die 'no worker';
$node->poll_query_until('postgres', $progress, '1') or die 'no progress of the worker';
pass('a worker shows its progress');
is(sql("SELECT bool_and(backend_xmin IS NULL) FROM generate_series(1, 3), LATERAL (SELECT pg_sleep(0.1), backend_xmin $activity) s"), 't', 'it holds no snapshot');
my $log_end = -s $node->logfile;
my $waited = time;
sql("SET lock_timeout = '10s'; BEGIN; LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE; COMMIT");
cmp_ok(time - $waited, '<', 5, sprintf 'who wants the table waits %.1f s', time - $waited);
$node->wait_for_log(qr/LOG: .*the merge of index "items_v" is left for later: another session waits for its table/, $log_end);
worker_gone();
isnt(in_logs('items_v'), 0, 'the merge is left for later');
configure_server(%fast);
# Workers rest between two merges.
# On a GPU many delta rows may cost next to nothing: then they are not merged.
my $costs_little = ($ENV{PGWARP_DEVICE} // '') ne 'cuda' ? 'false'
	: q{(SELECT coalesce(bool_or(delta_cost <= 0.25), false) FROM pgwarp_status WHERE index = 'items_v'::regclass)};
my $is_settled = "SELECT delta_rows = 0 OR $costs_little FROM pgwarp_index_info('items_v')";
for my $try (1 .. 60) { search('items'); last if sql($is_settled) eq 't'; sleep 1; }
is(sql($is_settled), 't', 'and made later');
worker_gone();
is(sql("SELECT live_rows - (SELECT count(*) FROM items), unused_pages FROM pgwarp_check('items_v', true)"), '0|0', 'whole');

# The database can be dropped under a worker.
sql('CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION pgwarp; CREATE TABLE items (id int, v vector(16))');
$node->safe_psql('other', 'CREATE INDEX items_v ON items USING exact (v)');
configure_server(%slow);
insert('items', 5000, 'other');
for my $try (1 .. 60) { search('items', 'other'); last if sql("SELECT count(*) $activity") == 1; sleep 1; }
worker_at_work() or die 'no worker';
$waited = time;
sql('DROP DATABASE other');
cmp_ok(time - $waited, '<', 8, sprintf 'a database is dropped within %.1f s', time - $waited);

unlike(slurp_file($node->logfile), qr/PANIC|ERROR: (?!.*canceling statement due to user request)/, 'no error');
$node->stop;
done_testing();
