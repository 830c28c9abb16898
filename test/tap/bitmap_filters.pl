# Searches among the rows of other indexes' bitmaps: lossy bitmaps, HOT chains, rows that change under sessions, merges, rows that
# change while FOR UPDATE waits, cursors over the end of the engine, and a standby.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('bitmap_filters', 'autovacuum' => 'off', 'jit' => 'off', 'max_wal_senders' => 4, 'max_parallel_workers_per_gather' => 0,
	'enable_sort' => 'off', 'enable_seqscan' => 'off', 'default_transaction_isolation' => "'repeatable read'");
sub sql { return $node->safe_psql('postgres', join(' ', @_)) }
my $truth = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_seqscan = on; SET enable_sort = on;';
my @methods = qw(exact graph ivfadc pqtree);

# Two rows a page, of which a bitmap in little memory remembers the page alone.
sql(q{CREATE TABLE wide (id int, n int, v vector(4), pad text);
	ALTER TABLE wide ALTER pad SET STORAGE plain;
	INSERT INTO wide SELECT i, i % 10, ARRAY[i % 11, i % 13, i % 17, i]::vector, repeat('x', 3000) FROM generate_series(1, 6000) i;
	CREATE INDEX ON wide (n); CREATE INDEX wide_v ON wide USING exact (v); VACUUM ANALYZE wide});
my $lossy = "SELECT id FROM wide WHERE n < 4 ORDER BY v <-> '[3,3,3,3000]' LIMIT 200";
my $plan = sql("SET work_mem = '64kB'; EXPLAIN (ANALYZE, COSTS OFF) $lossy");
like($plan, qr/KnnFilter.*Bitmap Lossy Blocks: [1-9].*Bitmap Index Scan/s, 'a lossy bitmap');
like($plan, qr/Rows Removed by Filter: [1-9]/, 'rows of its pages fail');
is(sql("SET work_mem = '64kB'; $lossy"), sql("$truth $lossy"), 'and the search goes on after them');
unlike(sql("EXPLAIN (ANALYZE, COSTS OFF) $lossy"), qr/Lossy/, 'with more memory it is exact');
is(sql("SET work_mem = '64kB'; SELECT count(*) FROM (SELECT id FROM wide WHERE n < 4 ORDER BY v <-> '[3,3,3,3000]' OFFSET 0) s"), 2400, 'all rows of a lossy bitmap');
sql('DROP TABLE wide');

# Rows, some without a vector; n and words change, c changes in HOT chains.
sql(q{CREATE TABLE items (id int, n int, c int, words tsvector, v vector(8)) WITH (fillfactor = 70);
	CREATE FUNCTION words(i int) RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$ SELECT to_tsvector('simple', format('a%s b%s', i % 3, i % 40)) $$;
	INSERT INTO items SELECT i, i % 50, 0, words(i), CASE WHEN i % 99 > 0 THEN ARRAY(SELECT random()::real + i * 0 FROM generate_series(1, 8))::vector(8) END FROM generate_series(1, 8000) i;
	CREATE INDEX ON items (n); CREATE INDEX ON items USING gin (words); VACUUM ANALYZE items});
sql("CREATE INDEX items_$_ ON items USING $_ (v)") for @methods;
my %least = (exact => 1, graph => 0.8, ivfadc => 0.8, pqtree => 0.7);
# What is wrong with the nearest ten, or with all rows that pass, by bitmap against a sequential scan.
sql(q{CREATE FUNCTION wrong(conditions text, q int, k int, share float8) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		query vector := (SELECT v FROM items WHERE v IS NOT NULL AND id >= q ORDER BY id LIMIT 1);
		statement text := format('SELECT array_agg(id), array_agg(d) FROM (SELECT id, v <-> %L AS d FROM items WHERE %s ORDER BY v <-> %1$L LIMIT %3$s) s', query, conditions, k);
		found int[]; truth int[]; distances float8[]; true_distances float8[];
	BEGIN
		EXECUTE statement INTO found, distances;
		SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = on;
		EXECUTE statement INTO truth, true_distances;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_sort = off;
		IF cardinality(found) IS DISTINCT FROM cardinality(truth) THEN RETURN format('%s: %s rows of %s', conditions, cardinality(found), cardinality(truth)); END IF;
		IF distances IS DISTINCT FROM (SELECT array_agg(d ORDER BY d) FROM unnest(distances) d) THEN RETURN 'order'; END IF;
		IF share = 1 AND distances IS DISTINCT FROM true_distances THEN RETURN format('%s of %s', distances, true_distances); END IF;
		IF (SELECT count(*) FROM unnest(found) f WHERE f = ANY (truth)) < share * cardinality(truth) THEN RETURN format('%s of %s', found, truth); END IF;
		RETURN NULL;
	END $$});
my $conditions = q{unnest(ARRAY['n = 7', 'n < 9', $c$words @@ 'b7'$c$, $c$words @@ 'a1' AND n < 25$c$, $c$words @@ 'b3' OR n = 4$c$, 'n = 70']) c};
sub only { my ($index) = @_; return join '', map { "DROP INDEX items_$_;" } grep { $_ ne $index } @methods }
sub wrong
{
	my ($index) = @_;
	return sql('BEGIN ISOLATION LEVEL READ COMMITTED;', only($index), "SELECT string_agg(w, ';') FROM (SELECT wrong(c, q, k, $least{$index}) AS w FROM $conditions, generate_series(1, 7000, 2300) q, unnest('{10,3000}'::int[]) k) s; ROLLBACK");
}
sub is_right { my ($when) = @_; is(wrong($_), '', "$_: $when") for @methods }
for my $index (@methods) {
	like(sql('BEGIN;', only($index), "EXPLAIN SELECT id FROM items WHERE words @@ 'b7' ORDER BY v <-> '[.5,.5,.5,.5,.5,.5,.5,.5]' LIMIT 10; ROLLBACK"), qr/KnnFilter.*Bitmap Index Scan/s, "$index: searches the rows of a bitmap");
}
is_right('as built');

# HOT chains: the indexes have the addresses of their roots.
sql('UPDATE items SET c = c + 1 WHERE id % 2 = 0') for 1 .. 3;
cmp_ok(sql("SELECT pg_stat_force_next_flush(); SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'items'"), '>', 1000, 'rows of HOT chains');
is_right('after HOT updates');
sql("UPDATE items SET n = n + 1 WHERE id % 5 = 0; UPDATE items SET words = words(id + 1) WHERE id % 7 = 0; DELETE FROM items WHERE id % 11 = 0;
	INSERT INTO items SELECT 10000 + i, i % 50, 0, words(i), ARRAY(SELECT random()::real + i * 0 FROM generate_series(1, 8))::vector(8) FROM generate_series(1, 500) i");
is_right('after other changes');
sql('VACUUM items');
is_right('after VACUUM');
sql("INSERT INTO items SELECT 11000 + i, i % 50, 0, words(i), CASE WHEN i % 9 > 0 THEN ARRAY(SELECT random()::real + i * 0 FROM generate_series(1, 8))::vector(8) END FROM generate_series(1, 900) i");
is_right('with addresses used again');
sql("CALL pgwarp_merge('items_$_')") for @methods;
is_right('after a merge');

# Sessions that search in a snapshot of theirs while others change rows, clean up and merge.
my $folder = $node->basedir;
sub script { my ($name, $text) = @_; append_to_file("$folder/$name.sql", $text); return "$folder/$name.sql" }
my $search = script('search', q{DO $$ DECLARE w text := wrong(format((ARRAY['n = %1$s', 'words @@ ''b%1$s''', 'n < %1$s AND words @@ ''a1'''])[1 + floor(random() * 3)::int], floor(random() * 40)), floor(random() * 7000)::int, 10, 0.5);
BEGIN IF w IS NOT NULL THEN RAISE EXCEPTION 'wrong: %', w; END IF; END $$;
});
my $write = script('write', q{\set id random(1, 8000)
BEGIN ISOLATION LEVEL READ COMMITTED;
UPDATE items SET n = (n + 1) % 50 WHERE id = :id;
UPDATE items SET c = c + 1 WHERE id = :id + 1;
DELETE FROM items WHERE id = :id + 2;
INSERT INTO items SELECT :id + 2, :id % 50, 0, words(:id), ARRAY(SELECT random()::real FROM generate_series(1, 8))::vector(8);
COMMIT;
});
my $maintain = script('maintain', join('', map { "CALL pgwarp_merge('items_$_');\n" } @methods) . "VACUUM (INDEX_CLEANUP ON) items;\n");
my @started = map {
	my ($count, $file) = @$_;
	my ($stdin, $stdout, $stderr) = ('', '', '');
	my $streams = [ \$stdout, \$stderr ];
	[ IPC::Run::start([ 'pgbench', '-n', '-c', $count, '-j', 1, '-T', 8, '-f', $file, '-h', $node->host, '-p', $node->port, 'postgres' ],
			'<', \$stdin, '>', \$stdout, '2>', \$stderr), $streams ]
} ([ 3, $search ], [ 2, $write ], [ 1, $maintain ]);
for my $client (@started) {
	my ($run, $streams) = @$client;
	$run->finish;
	unlike(${ $streams->[1] }, qr/ERROR|aborted/, 'no session failed') or diag(${ $streams->[1] });
}
is_right('after the sessions');

# The engine ends between two rows of a cursor, which reads on.
sql(only('graph'));
my $walk = "SELECT id FROM items WHERE words @@ 'b7' ORDER BY v <-> (SELECT v FROM items WHERE id = 1)";
my $session = $node->background_psql('postgres');
$session->query_safe("BEGIN; DECLARE walk CURSOR FOR $walk; DECLARE other CURSOR FOR $walk");
my $seen = $session->query_safe('FETCH 5 FROM walk') . "\n" . $session->query_safe('FETCH 2 FROM other; FETCH 10 FROM walk');
kill 'KILL', sql('SELECT engine_pid FROM pgwarp_status_server');
$seen .= "\n" . $session->query_safe('FETCH ALL FROM walk');
my @ids = split /\n/, $seen;
splice @ids, 5, 2;
is(join(',', sort { $a <=> $b } @ids), sql("$truth SELECT string_agg(id::text, ',' ORDER BY id) FROM items WHERE words @@ 'b7'"), 'a cursor gives each row once');
$session->query_safe('COMMIT');

# The engine ends at each step of a conversation in which the bitmap is sent: the search is made again, on another connection.
my $load_library = "SELECT FROM pgwarp_index_info('items_graph');";
my $near = "SELECT string_agg(id::text, ',') FROM (SELECT id FROM items WHERE words @@ 'b7' ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 10) s";
my $told = sql($load_library, $near);
my ($code, $nearest, $steps) = $node->psql('postgres', "$load_library SET client_min_messages = debug2; $near");
my @steps = $steps =~ /message point (\d+): [a-z ]+, message type \d+/g;
like($steps, qr/message type 20/, 'the bitmap is sent');
my @wrong;
for my $step (grep { $_ > 3 } @steps) {
	my ($failed, $found, $errors) = $node->psql('postgres', "$load_library SET pgwarp.fault_message = $step; $near");
	push @wrong, "$step: $found$errors" if $failed || $found ne $told;
	sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgwarp launcher'");
}
is(join("\n", @wrong), '', 'answered whenever the engine ends, at ' . @steps . ' steps');

# Rows change while FOR UPDATE waits: new versions pass or not.
sub locked
{
	my ($settings) = @_;
	sql('DELETE FROM items WHERE id > 20000', "; INSERT INTO items SELECT 20000 + i, 300 + i % 3, 0, 'x', ARRAY[i,i,i,i,i,i,i,i]::vector FROM generate_series(1, 300) i; ANALYZE items");
	my $query = "BEGIN ISOLATION LEVEL READ COMMITTED; $settings SELECT id, n, c FROM items WHERE n = 300 ORDER BY v <-> '[3,3,3,3,3,3,3,3]' LIMIT 6 FOR UPDATE; COMMIT";
	return rows_after_waiting($node, 'UPDATE items SET n = 302 WHERE id IN (20003, 20009); UPDATE items SET c = 5 WHERE id = 20006', $query, 'bitmap');
}
like(sql("EXPLAIN SELECT id FROM items WHERE n = 300 ORDER BY v <-> '[3,3,3,3,3,3,3,3]' LIMIT 6 FOR UPDATE"), qr/KnnFilter.*Bitmap/s, 'FOR UPDATE over a bitmap');
is(locked(''), locked($truth), 'locks the rows whose new version passes');

# A standby.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('bitmap_filters_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
sql("UPDATE items SET n = 49 WHERE n = 48; INSERT INTO items SELECT 30000 + i, 48, 0, words(i), ARRAY[i,0,0,0,0,0,0,0]::vector FROM generate_series(1, 50) i");
$node->wait_for_catchup($standby);
for my $condition ('n = 48', 'n = 49', "words @@ 'b7' AND n > 20") {
	my $query = "SELECT id FROM items WHERE $condition ORDER BY v <-> '[1,.5,.5,.5,.5,.5,.5,.5]' LIMIT 20";
	like($standby->safe_psql('postgres', "EXPLAIN $query"), qr/KnnFilter.*Bitmap/s, "a standby: $condition");
	is($standby->safe_psql('postgres', $query), sql($query), 'gives the same answer');
}
$standby->stop;
$node->stop;
done_testing();
