# Sixteen sessions that insert, delete, update, search, vacuum and merge at the same time; then the guarantees of
# transactions: serializability, savepoints, prepared transactions, with merges in between.
#   PGWARP_ISOLATION_SECONDS   how long the sessions run (12)
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{PGWARP_ISOLATION_SECONDS} || 12;
my $node = new_cluster('isolation', 'autovacuum' => 'on', 'autovacuum_naptime' => '1s', 'jit' => 'off', 'max_prepared_transactions' => 2,
	'max_connections' => 40, 'deadlock_timeout' => '60s');    # before that, nobody cancels autovacuum, which would be an error in the log

sub sql { return $node->safe_psql('postgres', @_) }

my @indexes = ('items_exact', 'items_ivfadc', 'items_pqtree', 'items_graph', 'items_included');

sub is_whole
{
	my ($name) = @_;
	my $rows = sql('SELECT count(*) FROM items');
	is(sql("SELECT live_rows >= $rows FROM pgwarp_check('$_', true)"), 't', "$name: $_ is whole") for @indexes;
	return;
}

load_grid($node, 'items', 3000);
sql(q{
	CREATE INDEX items_exact ON items USING exact (v);
	CREATE INDEX items_ivfadc ON items USING ivfadc (v vector_cosine_ops);
	CREATE INDEX items_pqtree ON items USING pqtree ((v::halfvec(16)) halfvec_cosine_ops);
	CREATE INDEX items_graph ON items USING graph (v vector_l1_ops);
	CREATE INDEX items_included ON items USING exact (v vector_ip_ops) INCLUDE (id);
	CREATE SEQUENCE ids START 10001;
	CREATE FUNCTION draw(i bigint) RETURNS vector LANGUAGE sql VOLATILE AS
		'SELECT ARRAY(SELECT random() * 10 FROM generate_series(1, 16) WHERE i IS NOT NULL)::real[]::vector(16)';
	-- the nearest rows as a scan of one kind finds them
	CREATE FUNCTION nearest(operator text, query vector, by_index bool) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE found text;
	BEGIN
		PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_indexscan', by_index::text, true),
			set_config('enable_indexonlyscan', by_index::text, true);
		EXECUTE format('SELECT string_agg(id::text, %L ORDER BY d, id) FROM (SELECT id, v %s $1 AS d FROM items ORDER BY v %s $1 LIMIT 25) s', ' ', operator, operator)
			INTO found USING query;
		RETURN found;
	END $$;
	-- an error unless exact indexes and the table agree, in whatever snapshot this runs
	CREATE FUNCTION compare(query vector) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE operator text; by_index text; by_table text; seen text := '';
	BEGIN
		FOREACH operator IN ARRAY ARRAY['<->', '<#>'] LOOP
			by_index := nearest(operator, query, true);
			by_table := nearest(operator, query, false);
			IF by_index IS DISTINCT FROM by_table THEN
				RAISE EXCEPTION 'index and table differ: % %: % and %', operator, query, by_index, by_table;
			END IF;
			seen := seen || by_index || '/';
		END LOOP;
		RETURN seen;
	END $$;
});
sql('VACUUM items');
like(sql("SET enable_seqscan = off; EXPLAIN SELECT id FROM items ORDER BY v <#> (SELECT draw(1)) LIMIT 1"), qr/Index Only Scan using items_included/, 'index-only scans are among them');

# One script for each kind of session; the numbers are pgbench's weights.
my @scripts = (
	[ 'insert', 30, q{
		INSERT INTO items SELECT nextval('ids'), draw(i) FROM generate_series(1, 5) i;
	} ],
	[ 'rollback', 10, q{
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		INSERT INTO items SELECT nextval('ids'), draw(i) FROM generate_series(1, 3) i;
		SAVEPOINT here;
		UPDATE items SET v = draw(id) WHERE id = currval('ids');
		INSERT INTO items SELECT nextval('ids'), draw(i) FROM generate_series(1, 3) i;
		ROLLBACK TO here;
		INSERT INTO items SELECT nextval('ids'), draw(i) FROM generate_series(1, 2) i;
		SELECT compare(draw(1));
		ROLLBACK;
	} ],
	[ 'delete', 30, q{
		DELETE FROM items WHERE id IN (SELECT id FROM items ORDER BY id LIMIT 4 FOR UPDATE SKIP LOCKED);
	} ],
	[ 'update', 20, q{
		UPDATE items SET v = draw(id) WHERE id IN (SELECT id FROM items ORDER BY id DESC LIMIT 3 FOR UPDATE SKIP LOCKED);
	} ],
	[ 'search', 40, q{
		SELECT count(*) FROM (SELECT id FROM items ORDER BY v <=> (SELECT draw(1)) LIMIT 20) s;
		SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> (SELECT draw(1)) LIMIT 20) s;
		SELECT count(*) FROM (SELECT id FROM items ORDER BY v <+> (SELECT draw(1)) LIMIT 20) s;
		SELECT count(*) FROM (SELECT id FROM items ORDER BY v::halfvec(16) <=> (SELECT draw(1)::halfvec) LIMIT 20) s;
	} ],
	[ 'join', 10, q{
		SELECT count(*) FROM (SELECT draw(i) v FROM generate_series(1, 30) i OFFSET 0) q, LATERAL (SELECT id FROM items ORDER BY items.v <-> q.v LIMIT 5) n;
		SELECT count(*) FROM knn_search('items_ivfadc', (SELECT array_agg(draw(i)) FROM generate_series(1, 10) i), 5);
		SELECT count(*) FROM knn_search('items_pqtree', (SELECT array_agg(draw(i)::halfvec) FROM generate_series(1, 10) i), 5);
	} ],
	# Every form of search returns the same rows under one snapshot, also later.
	[ 'snapshot', 15, q{
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT set_config('seen.query', draw(1)::text, false);
		SELECT set_config('seen.first', compare(current_setting('seen.query')::vector), false);
		\sleep 20 ms
		SELECT 1 / (compare(current_setting('seen.query')::vector) = current_setting('seen.first'))::int;
		COMMIT;
	} ],
	[ 'vacuum', 2, "VACUUM (INDEX_CLEANUP ON) items;\n" ],
	[ 'merge', 6, q{
		\set which random(1, 5)
		\if :which = 1
		CALL pgwarp_merge('items_exact');
		\elif :which = 2
		CALL pgwarp_merge('items_ivfadc');
		\elif :which = 3
		CALL pgwarp_merge('items_graph');
		\elif :which = 4
		CALL pgwarp_merge('items_pqtree');
		\else
		CALL pgwarp_merge('items_included');
		\endif
	} ]);
my @files;
for my $script (@scripts)
{
	my ($name, $weight, $text) = @$script;
	my $path = $node->basedir . "/$name.sql";
	$text =~ s/^\t+//mg;
	append_to_file($path, $text);
	push @files, '-f', "$path\@$weight";
}
my ($out, $err) = ('', '');
my $log_end = -s $node->logfile;
{
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c log_statement=none';
	IPC::Run::run([ 'pgbench', '-n', '-c', 16, '-j', 2, '-T', $seconds, @files, $node->connstr('postgres') ], '>', \$out, '2>', \$err);
}
is($?, 0, 'sixteen sessions') or diag $err;
my @counts;
while ($out =~ m{script \d+: \S*?/(\w+)\.sql\n.*\n - (\d+) transactions}g) { push @counts, "$1 $2" }
note "transactions: @counts";
is(scalar @counts, scalar @scripts, 'of all kinds');
unlike($err, qr/ERROR|error|aborted/, 'without an error') or diag $err;
unlike(slurp_file($node->logfile, $log_end), qr/(ERROR|PANIC|FATAL|WARNING): /, 'nor one in the log');
is_whole('after the sessions');
same_rows($node, 'items', 'exact answers after the sessions');
sql("SELECT compare(draw(i)) FROM generate_series(1, 20) i");

# Savepoints, and rows that a merge takes before their transaction ends.
my ($one, $two) = map { $node->background_psql('postgres', on_error_stop => 0) } 1, 2;
$_->query_safe('SET enable_seqscan = off') for $one, $two;
my $far = sub { my ($offset) = @_; return "array_fill(" . (1000 + $offset) . "::real, ARRAY[16])::vector" };
my $nearest = 'SELECT id FROM items ORDER BY v <-> ' . $far->(0) . ' LIMIT 1';
sub merge_all { sql("CALL pgwarp_merge('$_')") for @indexes; return }

$one->query_safe('BEGIN; INSERT INTO items VALUES (-1, ' . $far->(3) . '); SAVEPOINT a; INSERT INTO items VALUES (-2, ' . $far->(2) . '); SAVEPOINT b; INSERT INTO items VALUES (-3, ' . $far->(1) . ')');
my $before = $two->query_safe($nearest);
cmp_ok($before, '>', 0, 'what is not committed is not seen');
is($one->query_safe($nearest), -3, 'but by its own transaction');
merge_all();
is($one->query_safe($nearest), -3, 'after a merge too');
is($two->query_safe($nearest), $before, 'and by no other');
$one->query_safe('ROLLBACK TO b');
is($one->query_safe($nearest), -2, 'rolled back to a savepoint');
$one->query_safe('ROLLBACK TO a; INSERT INTO items VALUES (-4, ' . $far->(1.5) . ')');
is($one->query_safe($nearest), -4, 'and to the one before, with a row since');
sql('VACUUM (INDEX_CLEANUP ON) items');
merge_all();
is($one->query_safe($nearest), -4, 'after VACUUM and a merge');
$one->query_safe('COMMIT');
is($two->query_safe($nearest), -4, 'committed');
$one->query_safe('BEGIN; DELETE FROM items WHERE id = -4');
is($one->query_safe($nearest), -1, 'deleted, for its own transaction');
merge_all();
is($two->query_safe($nearest), -4, 'for no other');
$one->query_safe('ROLLBACK');
is($one->query_safe($nearest), -4, 'rolled back');

# A prepared transaction outlives its session, a merge and a restart.
$one->query_safe('BEGIN; INSERT INTO items VALUES (-5, ' . $far->(0.5) . "); PREPARE TRANSACTION 'kept'");
$one->query_safe('BEGIN; INSERT INTO items VALUES (-6, ' . $far->(0.25) . "); PREPARE TRANSACTION 'dropped'");
merge_all();
sql('VACUUM (INDEX_CLEANUP ON) items');
is($two->query_safe($nearest), -4, 'prepared is not committed');
$_->quit for $one, $two;
$node->stop('immediate');
$node->start;
is(sql("SET enable_seqscan = off; $nearest"), -4, 'nor after a crash');
sql("COMMIT PREPARED 'kept'");
sql("ROLLBACK PREPARED 'dropped'");
is(sql("SET enable_seqscan = off; $nearest"), -5, 'one is committed, the other rolled back');
sql('VACUUM (INDEX_CLEANUP ON) items');
merge_all();
is(sql("SET enable_seqscan = off; $nearest"), -5, 'after a merge too');

# Two serializable transactions that miss each other's row can't both commit, also when the index changes between.
# `between` runs when both have searched, and again when both have inserted.
sub write_skew
{
	my ($name, $search, $between) = @_;
	my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1, 2;
	my $number = 0;
	$_->query_safe("SET enable_seqscan = off; SET enable_sort = off; BEGIN ISOLATION LEVEL SERIALIZABLE; $search") for @sessions;
	$between->();
	$_->query('INSERT INTO items VALUES (nextval(' . "'ids'" . '), ' . $far->(1000) . ')') for @sessions;
	$between->();
	my $committed = 0;
	my $failed = '';
	for my $session (@sessions)
	{
		$session->{stderr} = '';
		$session->query('COMMIT');
		$failed .= $session->{stderr};
		$session->quit;
	}
	is(sql('SELECT count(*) FROM items WHERE v = ' . $far->(1000)), 1, "$name: one of two commits");
	like($failed, qr/could not serialize access/, "$name: the other is told why");
	sql('DELETE FROM items WHERE v = ' . $far->(1000));
	return;
}
my $missing = 'FROM items ORDER BY v <-> ' . $far->(1000) . ' LIMIT 1';
write_skew('plain scan', "SELECT id $missing", sub { });
write_skew('plain scan, merges', "SELECT id $missing", sub { merge_all() });
write_skew('plain scan, merges and VACUUM', "SELECT id $missing", sub { sql('DELETE FROM items WHERE id IN (SELECT id FROM items ORDER BY id LIMIT 400)'); sql('VACUUM (INDEX_CLEANUP ON) items'); merge_all() });
write_skew('index-only scan, merges', 'SELECT id FROM items ORDER BY v <#> ' . $far->(1000) . ' LIMIT 1', sub { merge_all() });
write_skew('ivfadc, merges', 'SELECT id FROM items ORDER BY v <=> ' . $far->(1000) . ' LIMIT 1', sub { merge_all() });
write_skew('pqtree, merges', 'SELECT id FROM items ORDER BY v::halfvec(16) <=> ' . $far->(1000) . '::halfvec LIMIT 1', sub { merge_all() });
is_whole('at the end');
same_rows($node, 'items', 'exact answers at the end');
$node->stop;
done_testing();
