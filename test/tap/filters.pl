# Columns to filter by: parallel builds, many sessions with filters of their own while rows change, merges, a standby, a dump, the
# end of the engine, and operator classes of users.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('filters', 'max_worker_processes' => 16, 'max_wal_senders' => 4, 'jit' => 'off',
	'min_parallel_table_scan_size' => 0, 'max_parallel_maintenance_workers' => 2, 'default_transaction_isolation' => "'repeatable read'");
sub sql { return $node->safe_psql('postgres', join(' ', @_)) }

# A parallel build keeps the columns of placed and unplaced rows.
load_grid($node, 'items', 8000);
sql("ALTER TABLE items ADD tenant int, ADD price numeric, ADD name text, ADD flag boolean;
	UPDATE items SET tenant = id % 40, price = CASE WHEN id % 9 > 0 THEN id % 500 / 7.0 END, name = 'name ' || id % 25, flag = id % 3 = 0;
	UPDATE items SET v = NULL WHERE id % 50 = 7; VACUUM (FULL, ANALYZE) items");
my $columns = 'tenant, price, name, flag';
my ($code, $out, $messages) = $node->psql('postgres', "SET client_min_messages = debug1; CREATE INDEX items_exact ON items USING exact (tenant, v, price, name, flag) INCLUDE (id)");
is($code, 0, 'a build by workers');
like($messages, qr/using [12] parallel workers/, 'workers took part');
sql("CREATE INDEX items_$_ ON items USING $_ (v, $columns)") for qw(graph ivfadc pqtree);
for my $index (qw(exact graph ivfadc pqtree)) {
	is(sql("SELECT live_rows FROM pgwarp_check('items_$index', true)"), 8000, "$index: checked against the table");
}

# The nearest ten of a tenant, by an index and by a sequential scan: the function tells what is wrong.
sql(q{CREATE FUNCTION wrong(tenants int, q int, share float8) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		query vector := (SELECT v FROM items WHERE v IS NOT NULL AND id >= q ORDER BY id LIMIT 1);
		found int[]; truth int[]; distances float8[];
	BEGIN
		SET LOCAL enable_seqscan = off;
		SELECT array_agg(id), array_agg(d) INTO found, distances FROM (SELECT id, v <-> query AS d FROM items
			WHERE tenant < tenants AND (price > 10 OR price IS NULL) AND flag IS NOT NULL ORDER BY v <-> query LIMIT 10) s;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off;
		SELECT array_agg(id) INTO truth FROM (SELECT id FROM items
			WHERE tenant < tenants AND (price > 10 OR price IS NULL) AND flag IS NOT NULL ORDER BY v <-> query LIMIT 10) s;
		SET LOCAL enable_indexscan = on;
		IF cardinality(found) IS DISTINCT FROM cardinality(truth) THEN RETURN format('%s rows of %s', cardinality(found), cardinality(truth)); END IF;
		IF distances IS DISTINCT FROM (SELECT array_agg(d ORDER BY d) FROM unnest(distances) d) THEN RETURN 'order'; END IF;
		IF (SELECT count(*) FROM unnest(found) f WHERE f = ANY (truth)) < share * cardinality(truth) THEN RETURN format('%s of %s', found, truth); END IF;
		RETURN NULL;
	END $$});
my %least = (exact => 1, graph => 0.7, ivfadc => 0.7, pqtree => 0.7);
sub only { my ($index) = @_; return join '', map { "DROP INDEX items_$_;" } grep { $_ ne $index } sort keys %least }
sub wrong
{
	my ($index, $sessions) = @_;
	return sql('BEGIN;', only($index), "SELECT string_agg(w, ';') FROM (SELECT wrong(t, q, $least{$index}) AS w FROM unnest('{1,3,12,40}'::int[]) t, generate_series(1, 7000, 700) q) s; ROLLBACK");
}
for my $index (sort keys %least) { is(wrong($index), '', "$index: the nearest of some tenants") }

# Sessions with tenants of their own, while rows come and go, tenants change, and merges switch generations. Each checks that its
# answer has its tenant's rows only, in order, none twice.
my $folder = $node->basedir;
sub script { my ($name, $text) = @_; append_to_file("$folder/$name.sql", $text); return "$folder/$name.sql" }
my $search = script('search', q{\set t random(0, 39)
\set q random(1, 8000)
DO $$ DECLARE n int := 0; last float8 := 0; seen int[] := '{}'; r record; q vector; t int := floor(random() * 40);
BEGIN
	q := (SELECT v FROM items WHERE v IS NOT NULL OFFSET floor(random() * 2000) LIMIT 1);
	FOR r IN SELECT id, tenant, v <-> q AS d FROM items WHERE tenant = t AND v IS NOT NULL ORDER BY v <-> q LIMIT 10 LOOP
		n := n + 1;
		IF r.tenant <> t OR r.d < last OR r.id = ANY (seen) THEN RAISE EXCEPTION 'wrong row % of %', r, t; END IF;
		last := r.d; seen := seen || r.id;
	END LOOP;
	IF n < 10 THEN RAISE EXCEPTION '% rows of tenant %', n, t; END IF;
END $$;
});
my $row = 'ARRAY(SELECT random()::real * 10 FROM generate_series(1, 16))::vector(16)';
my $write = script('write', "\\set n random(10000, 2000000000)
\\set old random(1, 8000)
BEGIN ISOLATION LEVEL READ COMMITTED;
INSERT INTO items SELECT :n, $row, :old % 40, :old, 'new', true ON CONFLICT DO NOTHING;
UPDATE items SET tenant = (tenant + 1) % 40 WHERE id = :old;
DELETE FROM items WHERE ctid = (SELECT ctid FROM items WHERE id >= 10000 LIMIT 1);
COMMIT;
");
my $maintain = script('maintain', join('', map { "CALL pgwarp_merge('items_$_');\n" } sort keys %least) . "VACUUM (INDEX_CLEANUP ON) items;\n");
my @clients = ([ 4, $search ], [ 2, $write ], [ 1, $maintain ]);
my @started = map {
	my ($count, $file) = @$_;
	my ($stdin, $stdout, $stderr) = ('', '', '');
	my $streams = [ \$stdout, \$stderr ];
	[ IPC::Run::start([ 'pgbench', '-n', '-c', $count, '-j', 1, '-T', 8, '-f', $file, '-h', $node->host, '-p', $node->port, 'postgres' ],
			'<', \$stdin, '>', \$stdout, '2>', \$stderr), $streams ]
} @clients;
for my $client (@started) {
	my ($run, $streams) = @$client;
	$run->finish;
	my $error = ${ $streams->[1] };
	unlike($error, qr/ERROR|aborted/, 'no session failed') or diag($error);
}
for my $index (sort keys %least) {
	is(sql("SELECT live_rows > 0 FROM pgwarp_check('items_$index', true)"), 't', "$index: right after the changes");
	is(wrong($index), '', "$index: the nearest of some tenants after the changes");
}

# The engine ends: the next search has another one.
my $answer = 'SET enable_seqscan = off; SELECT id FROM items WHERE tenant = 5 AND flag ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 5';
my $before = sql($answer);
kill 'KILL', sql('SELECT engine_pid FROM pgwarp_status_server');
is(sql($answer), $before, 'the same answer by the next engine');

# A standby.
sql("SELECT pg_create_physical_replication_slot('standby', true)");
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('filters_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'");
$standby->start;
sql("INSERT INTO items SELECT 3000000 + i, $row, 5, 1, 'late', true FROM generate_series(1, 50) i WHERE i > 0; CALL pgwarp_merge('items_graph')");
sql("INSERT INTO items SELECT 3100000 + i, NULL, 5, 1, 'late', true FROM generate_series(1, 5) i");
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $answer), sql($answer), 'a standby gives the same answer');
my $late = "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items WHERE name = 'late' AND tenant = 5 ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 100) s";
is($standby->safe_psql('postgres', $late), 55, 'with rows of the delta, and those without a vector');
is($standby->safe_psql('postgres', "SELECT live_rows > 0 FROM pgwarp_check('items_graph', true)"), 't', 'checked there');
$standby->stop;

# A dump.
my $dump = "$folder/filters.dump";
command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-h', $node->host, '-p', $node->port, 'postgres' ], 'dumped');
sql('CREATE DATABASE restored');
command_ok([ 'pg_restore', '-d', 'restored', '-h', $node->host, '-p', $node->port, $dump ], 'restored');
is($node->safe_psql('restored', $late), 55, 'its indexes filter');

# Operator classes of users are checked.
($code, $out, $messages) = $node->psql('postgres', "CREATE OPERATOR CLASS wrong_ops FOR TYPE anyelement USING exact AS OPERATOR 1 < (text, text), OPERATOR 7 = (int4, int4), OPERATOR 3 = (box, box);
	SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'wrong_ops'");
is($out, 'f', 'a wrong operator class');
like($messages, qr/\Q$_\E/, $_) for ('another strategy number than btree', 'whose codes have no order', 'no codes in common');
$node->stop;
done_testing();
