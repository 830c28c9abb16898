# A streaming replica under a mixed load: searches on it go on and are right all the time, also while it replays merges,
# over crashes and over its promotion.
#   PGWARP_TORTURE=full   two minutes a phase instead of two seconds
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $seconds = ($ENV{PGWARP_TORTURE} // '') eq 'full' ? 120 : 2;
my $primary = new_cluster('replica_primary', 'autovacuum_naptime' => 1, 'jit' => 'off', 'max_wal_senders' => 4, 'max_wal_size' => "'4GB'",
	'max_worker_processes' => 16, 'max_standby_streaming_delay' => "'100ms'", 'wal_receiver_status_interval' => 1, 'restart_after_crash' => 'on', 'log_statement' => 'none');
sub sql { return $primary->safe_psql('postgres', join(' ', @_)) }
sub show { my ($node, $query) = @_; return $node->safe_psql('postgres', "SET enable_seqscan = off; $query") }

my $random = 'array_agg(random() * 10)::real[]::vector(16) FROM generate_series(1, 16)';
my $corner = "(ARRAY[1000] || array_fill(0, ARRAY[15]))::vector(16)";
my $row = 'ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)';
sql("CREATE TABLE items (id int PRIMARY KEY, v vector(16)) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.02);
	INSERT INTO items SELECT i, $row FROM generate_series(1, 6000) i; CREATE TABLE probes AS SELECT i AS id, $row AS v FROM generate_series(20001, 20100) i;
	CREATE INDEX items_exact ON items USING exact (v) INCLUDE (id); CREATE INDEX items_ivfadc ON items USING ivfadc (v vector_cosine_ops) WITH (lists = 40);
	CREATE INDEX items_pqtree ON items USING pqtree (v vector_ip_ops) WITH (parts = 2); CREATE INDEX items_graph ON items USING graph (v vector_l1_ops);
	SELECT pg_create_physical_replication_slot('standby', true)");
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('replica_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'");
$standby->start;

# Files with the scripts of sessions.
my $folder = $primary->basedir;
sub script { my ($name, $text) = @_; append_to_file("$folder/$name.sql", $text); return "$folder/$name.sql" }
my $write = script('write', "\\set n random(10000, 2000000000)
\\set old random(1, 6000)
INSERT INTO items SELECT :n, $random ON CONFLICT DO NOTHING;
UPDATE items SET v = (SELECT $random) WHERE id = :old;
BEGIN;
INSERT INTO items SELECT -:n, $corner;
DELETE FROM items WHERE id > 6000;
ROLLBACK;
DELETE FROM items WHERE ctid = (SELECT ctid FROM items WHERE id > 6000 LIMIT 1);
");
my $maintain = script('maintain', "CALL pgwarp_merge('items_exact');
VACUUM (INDEX_CLEANUP ON) items;
CALL pgwarp_merge('items_ivfadc');
CALL pgwarp_merge('items_pqtree');
CALL pgwarp_merge('items_graph');
");
my $define = script('define', "CREATE INDEX another ON items USING ivfadc ((v::halfvec(16)) halfvec_ip_ops) WITH (codes = int8);
SELECT pg_sleep(0.05);
REINDEX INDEX items_exact;
DROP INDEX another;
REINDEX INDEX items_ivfadc;
REINDEX INDEX items_pqtree;
SELECT pg_sleep(0.2);
");
# Compares an index's answer with that of a plan without it, in one snapshot: whether they are the same, how many of ten
# are found, and whether a row of a transaction that is always rolled back was seen.
my $search = script('search', "SET enable_seqscan = off;\n" . "SELECT 'exact', a = b, seen, CASE WHEN a <> b THEN a || ' instead of ' || b || pg_current_snapshot() || clock_timestamp() END FROM (
	SELECT (SELECT string_agg(id || ' ' || d, ', ') FROM (SELECT id, i.v <-> q.v AS d FROM items i ORDER BY i.v <-> q.v LIMIT 20) s) AS a,
	(SELECT string_agg(id || ' ' || d, ', ') FROM (SELECT id, i.v <-> q.v AS d FROM items i ORDER BY (i.v <-> q.v) + 0 LIMIT 20) s) AS b,
	(SELECT bool_or(id < 0) FROM (SELECT id FROM items i ORDER BY i.v <-> $corner LIMIT 5) s) AS seen FROM (SELECT $random OFFSET 0) q (v)) found;
SELECT 'recall', cardinality(ARRAY((SELECT id FROM items i ORDER BY i.v <=> q.v LIMIT 10) INTERSECT
	(SELECT id FROM items i ORDER BY (i.v <=> q.v) + 0 LIMIT 10))) FROM (SELECT $random OFFSET 0) q (v);
SELECT 'recall', cardinality(ARRAY((SELECT id FROM items i ORDER BY i.v <#> q.v LIMIT 10) INTERSECT
	(SELECT id FROM items i ORDER BY (i.v <#> q.v) + 0 LIMIT 10))) FROM (SELECT $random OFFSET 0) q (v);
SELECT 'recall', cardinality(ARRAY((SELECT id FROM items i ORDER BY i.v <+> q.v LIMIT 10) INTERSECT
	(SELECT id FROM items i ORDER BY (i.v <+> q.v) + 0 LIMIT 10))) FROM (SELECT $random OFFSET 0) q (v);\n" x 20);
# A session that searches twice under one snapshot gets the same rows, and delays replay.
my $look = "SELECT md5(string_agg(ids, ' ' ORDER BY id)) AS %s FROM (SELECT p.id, (SELECT string_agg(id::text, ' ') FROM (SELECT i.id FROM items i ORDER BY i.v <-> p.v LIMIT 10) s) AS ids FROM probes p) a \\gset\n";
my $look_twice = script('look_twice', "SET enable_seqscan = off;\nBEGIN ISOLATION LEVEL REPEATABLE READ;\n" . sprintf($look, 'first') . "SELECT pg_sleep(0.3);\n" . sprintf($look, 'second') .
	"SELECT 'exact', :'first' = :'second', false, '';\nCOMMIT;\n");

# Search on a node until told to stop, one session after the other.
sub start_searching
{
	my ($node, @scripts) = @_;
	unlink "$folder/stop";
	my @searching;
	for my $script (@scripts)
	{
		my $one = { out => '', err => '' };
		$one->{run} = IPC::Run::start([ 'bash', '-c', 'while [ ! -e "$1" ]; do psql -X -A -t -q -v ON_ERROR_STOP=1 -f "$2" -d "$3"; sleep 0.05; done', '-', "$folder/stop", $script, $node->connstr('postgres') ],
			'>', \$one->{out}, '2>', \$one->{err});
		push @searching, $one;
	}
	return @searching;
}
# Exact searches that were answered so far.
sub answers
{
	my $sum = 0;
	for my $one (@_) { $one->{run}->pump_nb; my $count = () = $one->{out} =~ /^exact\|/mg; $sum += $count }
	return $sum;
}
# End the searches. All answers were right, and all errors match $allowed.
sub stop_searching
{
	my ($name, $allowed, @searching) = @_;
	append_to_file("$folder/stop", '');
	$_->{run}->finish for @searching;
	my $out = join('', map { $_->{out} } @searching);
	my $err = join('', map { $_->{err} } @searching);
	my $exact = () = $out =~ /^exact\|t\|f\|/mg;
	my @found = $out =~ /^recall\|(\d+)$/mg;
	my $found = 0;
	$found += $_ for @found;
	# A session that is cancelled between two statements of a transaction is disconnected, and psql reports that as well.
	my $disconnected = () = $err =~ /FATAL: .*conflict with recovery/g;
	my @errors = grep { /ERROR|FATAL|error:/ && !/conflict with recovery/ && !($allowed && /$allowed/) && !(/connection to server was lost/ && $disconnected-- > 0) } split /\n/, $err;
	my $conflicts = () = $err =~ /(?:ERROR|FATAL): .*conflict with recovery/g;
	my $removed = () = $err =~ /row versions that must be removed/g;
	note sprintf('%s: %d exact searches, %d approximate with recall %.3f, %d recovery conflicts, %d for removed rows', $name, $exact, scalar @found, $found / 10 / (@found || 1), $conflicts, $removed);
	cmp_ok($exact, '>', 10, "$name: searches were answered");
	is(join("\n", grep { /^exact/ && !/^exact\|t\|f\|/ } split /\n/, $out), '', "$name: all of them right");
	cmp_ok($found / 10 / (@found || 1), '>', 0.93, "$name: recall");
	is(join("\n", @errors[0 .. ($#errors < 4 ? $#errors : 4)]), '', "$name: no error but recovery conflicts");
	return ($conflicts, $removed);
}
# Run scripts on a node for this many seconds; returns the number of runs of each. None may fail.
sub run_load
{
	my ($node, $name, $how_long, %clients) = @_;
	my %printed;
	my @running = map { my $script = $_; $printed{$script} = '';
		IPC::Run::start([ 'pgbench', '-n', '-c', $clients{$script}, '-T', $how_long, '-f', $script, $node->connstr('postgres') ], '>', \$printed{$script}, '2>&1') } sort keys %clients;
	$_->finish for @running;
	my $all = join('', values %printed);
	unlike($all, qr/ERROR|FATAL|aborted in/, "$name: the load has no error") or diag $all;
	my @counts = map { $printed{$_} =~ /actually processed: (\d+)/ ? $1 : 0 } sort keys %clients;
	note "$name: rounds of @{[ map { s/.*\///r } sort keys %clients ]}: @counts";
	return;
}

my $nearest = "SELECT string_agg(id || ' ' || ids, E'\n' ORDER BY id) FROM (SELECT p.id, (SELECT string_agg(id::text, ' ') FROM (SELECT i.id FROM items i ORDER BY i.v %s p.v LIMIT 10) s) AS ids FROM probes p) a";
my $recall = "SELECT avg(cardinality(ARRAY((SELECT i.id FROM items i ORDER BY i.v <=> p.v LIMIT 10) INTERSECT (SELECT i.id FROM items i ORDER BY (i.v <=> p.v) + 0 LIMIT 10)))) / 10 FROM probes p";
# Whether autovacuum, and with it the merge worker, go on changing the indexes.
sub upkeep
{
	my ($node, $on) = @_;
	$node->append_conf('postgresql.conf', "autovacuum = $on");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type IN ('autovacuum launcher', 'autovacuum worker', 'pgwarp merge')")
		or die 'autovacuum does not end' if $on eq 'off';
	return;
}

# Both nodes have the same rows: compare their answers, and recall. The tables must not change meanwhile.
sub same_answers
{
	my ($name) = @_;
	upkeep($primary, 'off');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(show($standby, sprintf($nearest, '<->')), show($primary, sprintf($nearest, '<->')), "$name: exact answers");
	my ($here, $there) = (show($primary, $recall), show($standby, $recall));
	cmp_ok(abs($here - $there), '<=', 0.005, sprintf('%s: recall %.4f on the primary, %.4f on the standby', $name, $here, $there));
	whole($standby, "$name: standby");
	upkeep($primary, 'on');
	return;
}
sub whole
{
	my ($node, $name) = @_;
	my $query = "SELECT bool_and(live_rows >= (SELECT count(*) FROM items)) FROM (VALUES ('items_exact'::regclass), ('items_ivfadc'), ('items_pqtree'), ('items_graph')) v (i), pgwarp_check(i, true)";
	is($node->safe_psql('postgres', $query), 't', "$name: pgwarp_check");
	return;
}

# Sessions that delay replay are cancelled soon, and indexes come and go.
same_answers('at first');
my @searching = start_searching($standby, $search, $search, $look_twice);
# On a slow machine few statements run in this time.
for my $try (1 .. 20)
{
	run_load($primary, 'conflicts', $seconds, $write => 2, $maintain => 1, $define => 1);
	$_->{run}->pump_nb for @searching;
	last if grep { $_->{err} =~ /conflict with recovery/ } @searching;
}
cmp_ok((stop_searching('conflicts', undef, @searching))[0], '>', 0, 'conflicts: there were recovery conflicts');
same_answers('conflicts');

# The standby crashes and goes on from where it was. It crashes only after it has answered searches.
@searching = start_searching($standby, $search);
for (1 .. 2)
{
	my $answered = answers(@searching);
	for (1 .. 600) { last if answers(@searching) >= $answered + 6; sleep(0.1) }
	my @running = map { IPC::Run::start([ 'pgbench', '-n', '-c', 2, '-T', 2, '-f', $_, $primary->connstr('postgres') ], '>', \my $printed, '2>&1') } ($write, $maintain);
	sleep(1 + rand());
	$standby->stop('immediate');
	$standby->start;
	$_->finish for @running;
}
stop_searching('crashes', qr/connection to server|server closed the connection|terminating connection|the database system is|because of crash|pgwarp-engine|connection to client/, @searching);
same_answers('crashes');

# With feedback no search is cancelled for rows that replay removes. One may be cancelled for the pin of a page on a standby
# whose replay is behind by more than the delay: feedback does not keep pages.
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = '30s'");
$standby->reload;
$primary->poll_query_until('postgres', 'SELECT xmin IS NOT NULL FROM pg_replication_slots') or die 'no feedback';
my $starts = $standby->safe_psql('postgres', 'SELECT DISTINCT engine_starts FROM pgwarp_status');
@searching = start_searching($standby, $search, $look_twice);
my @here = start_searching($primary, $search, $look_twice);
run_load($primary, 'feedback', $seconds, $write => 2, $maintain => 1);
is((stop_searching('feedback, standby', undef, @searching))[1], 0, 'feedback: no search is cancelled for removed rows');
stop_searching('feedback, primary', undef, @here);
same_answers('feedback');
is($standby->safe_psql('postgres', 'SELECT DISTINCT engine_starts FROM pgwarp_status'), $starts, 'the engine was never started again');
cmp_ok($standby->safe_psql('postgres', 'SELECT sum(searches) FROM pgwarp_status'), '>', 100, 'it answered the searches');
isnt(engine_pid($standby), engine_pid($primary), 'and is the standby\'s own');

# Promoted while it is searched. The primary merges nothing any more: its answers by lists are others after a merge.
upkeep($primary, 'off');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my %before = map { $_ => show($standby, sprintf($nearest, $_)) } '<->', '<=>';
my $recall_before = show($standby, $recall);
my $engine = engine_pid($standby);
# Its answers are compared before any session changes its indexes.
$standby->append_conf('postgresql.conf', 'autovacuum = off');
$standby->reload;
$primary->stop;
@searching = start_searching($standby, $search, $look_twice);
sleep(0.3);
$standby->promote;
is(show($standby, sprintf($nearest, $_)), $before{$_}, "promotion: the same answers by $_") for sort keys %before;
cmp_ok(abs(show($standby, $recall) - $recall_before), '<=', 0.005, "promotion: recall $recall_before");
whole($standby, 'promotion');
upkeep($standby, 'on');
run_load($standby, 'promoted', $seconds, $write => 2, $maintain => 1);
whole($standby, 'promoted, and changed');
is(stop_searching('promotion', undef, @searching), 0, 'promotion: no search failed');
is(engine_pid($standby), $engine, 'promotion: the same engine');
run_load($standby, 'promoted, indexes made', $seconds, $write => 1, $define => 1);
whole($standby, 'promoted');
# Recall is promised to searches that are like the rows: by now these are random ones, and the probes are of their own
# kind.
$standby->safe_psql('postgres', "TRUNCATE probes; INSERT INTO probes SELECT i, (SELECT $random WHERE i > 0) FROM generate_series(1, 100) i");
cmp_ok(show($standby, $recall), '>=', 0.9, 'promoted: recall');
unlike(slurp_file($_->logfile), qr/inconsistent page|PANIC|TRAP|is corrupted|wrong distance/, $_->name . ': log') for $primary, $standby;
$standby->stop;
done_testing();
