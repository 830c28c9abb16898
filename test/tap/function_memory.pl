# Memory of sessions: pgwarp_recall, long scans and pgwarp_check stay within work_mem and maintenance_work_mem. Views
# show a session no indexes of other databases.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('function_memory', 'shared_buffers' => '16MB', 'log_temp_files' => '0', 'client_min_messages' => 'warning');

# The rise of a session's memory, in MB, while it runs a statement.
sub rise
{
	my ($session, $sql) = @_;
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	open my $reset, '>', "/proc/$pid/clear_refs" or die "clear_refs: $!";
	print {$reset} "5\n";
	close $reset;
	my $before = peak($pid);
	my $result = $session->query_safe($sql);
	return ((peak($pid) - $before) / 1024, $result);
}

# Largest resident size of a process since its last reset, in kB.
sub peak
{
	my ($pid) = @_;
	return slurp_file("/proc/$pid/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : die "no VmHWM of $pid";
}

# The true neighbours of 300 queries, 3,000 for each, where the index keeps no vectors to compare.
$node->safe_psql('postgres', q{CREATE TABLE items (id int, v vector(4));
	INSERT INTO items SELECT i, ARRAY[hashint4(i) % 1000, hashint4(i + 10000) % 1000, hashint4(i + 20000) % 1000, 1]::vector FROM generate_series(1, 3000) i;
	CREATE INDEX items_v ON items USING ivfadc (v) WITH (refine = none)});
my $session = $node->background_psql('postgres');
$session->query_safe('SELECT pgwarp_recall(\'items_v\', 3000, 2); SELECT count(*) FROM items');
my ($default, $recall) = rise($session, q{SELECT pgwarp_recall('items_v', 3000, 300)});
note(sprintf 'pgwarp_recall rises by %.1f MB', $default);
cmp_ok($default, '<', 24, 'pgwarp_recall stays near work_mem');
$session->query_safe(q{SET work_mem = '64kB'});
my ($small, $same) = rise($session, q{SELECT pgwarp_recall('items_v', 3000, 100)});
cmp_ok($small, '<', 16, 'and near a smaller one');
cmp_ok($recall, '>', 0.5, 'with a result');
is($session->query_safe(q{SELECT pgwarp_recall('items_v', 10, 50)}), $node->safe_psql('postgres', q{SET work_mem = '64MB'; SELECT pgwarp_recall('items_v', 10, 50)}), 'the recall is the same in chunks');

# Rows that a scan returned are remembered: beyond work_mem in a temporary file.
$node->safe_psql('postgres', q{CREATE TABLE points (id int, v vector(2)); INSERT INTO points SELECT i, ARRAY[i % 251, i / 251]::vector FROM generate_series(1, 30000) i;
	CREATE INDEX points_v ON points USING ivfadc (v) WITH (lists = 20, refine = full)});
my $all = q{SELECT count(*), count(DISTINCT id), bool_and(d >= last) FROM (
	SELECT id, d, lag(d, 1, 0::float8) OVER () AS last FROM (SELECT id, v <-> '[100,50]' AS d FROM points ORDER BY v <-> '[100,50]') s) t};
$session->query_safe(q{SET enable_seqscan = off; SET enable_sort = off; SET enable_hashagg = off; SET max_parallel_workers_per_gather = 0});
my $offset = -s $node->logfile;
is($session->query_safe("SET work_mem = '64MB'; $all"), '30000|30000|t', 'a long scan');
unlike(slurp_file($node->logfile, $offset), qr/temporary file/, 'in memory');
$offset = -s $node->logfile;
is($session->query_safe("SET work_mem = '64kB'; $all"), '30000|30000|t', 'with little work_mem');
like(slurp_file($node->logfile, $offset), qr/temporary file/, 'in a temporary file');
is($session->query_safe(q{SELECT sum(n) FROM (VALUES ('[1,1]'::vector), ('[99,2]')) q(v) CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT id FROM points ORDER BY v <-> q.v LIMIT 20000) s) c}),
	40000, 'scanned again');
$session->query_safe(q{BEGIN; DECLARE c CURSOR FOR SELECT id FROM points ORDER BY v <-> '[1,1]'; MOVE 25000 FROM c; SAVEPOINT s; MOVE 100 FROM c; ROLLBACK TO s});
is($session->query_safe('MOVE ALL FROM c; SELECT count(*) FROM pg_ls_tmpdir()') =~ /^[12]$/m ? 'yes' : 'no', 'yes', 'a cursor keeps its file over ROLLBACK TO');
$session->query_safe('CLOSE c; COMMIT');
is($session->query_safe('SELECT count(*) FROM pg_ls_tmpdir()'), 0, 'and gives it back');

# So are the entries that pgwarp_check has met.
$node->safe_psql('postgres', q{CREATE TABLE many (v vector(1)); INSERT INTO many SELECT ARRAY[i]::vector FROM generate_series(1, 120000) i; CREATE INDEX many_v ON many USING exact (v)});
$offset = -s $node->logfile;
is($session->query_safe(q{SET maintenance_work_mem = '1MB'; SELECT live_rows FROM pgwarp_check('many_v', true)}), 120000, 'pgwarp_check with little maintenance_work_mem');
like(slurp_file($node->logfile, $offset), qr/temporary file/, 'takes a temporary file');
$node->safe_psql('postgres', q{SET allow_system_table_mods = on; UPDATE pg_index SET indisready = false WHERE indexrelid = 'many_v'::regclass});
$node->safe_psql('postgres', q{INSERT INTO many VALUES ('[0]')});
$node->safe_psql('postgres', q{SET allow_system_table_mods = on; UPDATE pg_index SET indisready = true WHERE indexrelid = 'many_v'::regclass});
my ($rc, $out, $err) = $node->psql('postgres', q{SET maintenance_work_mem = '1MB'; SELECT live_rows FROM pgwarp_check('many_v', true)});
like($err, qr/row \(\d+,\d+\) of table "many" is not in index "many_v"/, 'and finds the row that the index lacks');
$session->quit;

# Indexes of other databases are for monitors alone.
$node->safe_psql('postgres', 'CREATE ROLE reader LOGIN; CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION pgwarp; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader');
my $resident = 'SELECT count(*) FROM pgwarp_status_indexes';
cmp_ok($node->safe_psql('other', $resident), '>', 0, 'a superuser sees the indexes of all databases');
is($node->safe_psql('other', $resident, extra_params => [ '-U', 'reader' ]), 0, 'another role sees none');
is($node->safe_psql('other', 'SELECT count(*) FROM pgwarp_status_engine() WHERE filenode IS NOT NULL', extra_params => [ '-U', 'reader' ]), 0, 'nor does it by the function');
cmp_ok($node->safe_psql('other', 'SELECT engine_pid FROM pgwarp_status_server', extra_params => [ '-U', 'reader' ]), '>', 0, 'but it sees the engine');
$node->safe_psql('postgres', 'GRANT pg_monitor TO reader');
cmp_ok($node->safe_psql('other', $resident, extra_params => [ '-U', 'reader' ]), '>', 0, 'a monitor sees them');
$node->stop;
done_testing();
