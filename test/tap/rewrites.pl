# Tables rewritten, emptied, moved between logged and unlogged, and prepared transactions: indexes return the present
# rows.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpDatabase;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('rewrites', 'autovacuum' => 'off', 'jit' => 'off', 'max_prepared_transactions' => 10, 'restart_after_crash' => 'on');
sub sql { return $node->safe_psql('postgres', join(' ', @_)) }

fill_database($node, 'postgres');
whole($node, 'postgres', 'at first');

for my $statement ('VACUUM FULL items', 'CLUSTER items USING items_pkey', 'REINDEX TABLE items', 'REINDEX TABLE CONCURRENTLY items',
	'REINDEX INDEX CONCURRENTLY items_ivfadc', 'REINDEX INDEX CONCURRENTLY items_tree', 'ALTER TABLE items SET UNLOGGED', 'ALTER TABLE items SET LOGGED',
	'ALTER TABLE items ALTER note TYPE varchar(100)', 'ALTER TABLE items ALTER v TYPE vector(16) USING v * array_fill(2, ARRAY[16])::vector')
{
	sql("DELETE FROM items WHERE id > 3000 OR id % 37 = 3; INSERT INTO items", row_values(3001, 3020));
	sql($statement);
	whole($node, 'postgres', $statement);
	# Rolled back: the transaction sees its own changes, then all is as before.
	next if $statement =~ /CONCURRENTLY|VACUUM/;
	my $before = answers($node, 'postgres');
	is(sql("BEGIN; $statement; DELETE FROM items WHERE id = 1; SET enable_seqscan = off;
		SELECT count(*) || ' ' || sum((id = 1)::int) FROM (SELECT id FROM items ORDER BY v <-> array_fill(1, ARRAY[16])::vector LIMIT 100000) s; ROLLBACK"),
		sql('SELECT count(*) - 1 FROM items') . ' 0', "$statement: within the transaction");
	same_answers_as($before, $node, 'postgres', "$statement, rolled back");
}

my ($rc, $out, $err) = $node->psql('postgres', 'CLUSTER items USING items_exact');
like($err, qr/cannot cluster on index "items_exact" because access method does not support clustering/, 'no order to cluster by');

# TRUNCATE, also in the transaction that made the table, where it happens in place.
my $before = answers($node, 'postgres');
is(sql("BEGIN; TRUNCATE items; SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> array_fill(1, ARRAY[16])::vector) s;
	INSERT INTO items", row_values(1, 3), "; SELECT string_agg(id::text, ',' ORDER BY id) FROM (SELECT id FROM items ORDER BY v <-> array_fill(1, ARRAY[16])::vector) s; ROLLBACK"),
	"0\n1,2,3", 'within a transaction that truncates');
same_answers_as($before, $node, 'postgres', 'TRUNCATE, rolled back');
sql('CREATE TABLE kept AS TABLE items; TRUNCATE items');
is(answers($node, 'postgres') =~ tr/0-9//, 0, 'nothing is found in an empty table');
is(sql("SELECT string_agg(live_rows || ' ' || dead_rows, ', ') FROM (VALUES ('items_exact'::regclass), ('items_ivfadc'), ('items_tree'), ('items_graph')) v (i), pgwarp_check(i, true)"), '0 0, 0 0, 0 0, 0 0', 'empty indexes');
sql('INSERT INTO items TABLE kept; VACUUM items');
whole($node, 'postgres', 'filled again');
is(sql("BEGIN; CREATE TABLE fresh (v vector(2)); CREATE INDEX fresh_v ON fresh USING exact (v); INSERT INTO fresh VALUES ('[1,2]'); SET enable_seqscan = off;
	SELECT v FROM fresh ORDER BY v <-> '[0,0]'; TRUNCATE fresh; SELECT v FROM fresh ORDER BY v <-> '[0,0]';
	INSERT INTO fresh VALUES ('[3,4]'); SELECT v FROM fresh ORDER BY v <-> '[0,0]'; COMMIT; SELECT v FROM fresh ORDER BY v <-> '[0,0]'"),
	"[1,2]\n[3,4]\n[3,4]", 'truncated in place');

# Unlogged: empty after a crash, at once usable, and logged again when the table is.
sql('ALTER TABLE items SET UNLOGGED');
whole($node, 'postgres', 'unlogged');
$node->stop('immediate');
$node->start;
is(sql("SELECT count(*) FROM items; SELECT sum(live_rows) FROM (VALUES ('items_exact'::regclass), ('items_ivfadc'), ('items_codes'), ('items_tree'), ('items_graph')) v (i), pgwarp_check(i, true)"), "0\n0", 'unlogged, after a crash');
is(answers($node, 'postgres') =~ tr/0-9//, 0, 'unlogged, after a crash: nothing is found');
sql('INSERT INTO items TABLE kept; VACUUM items');
whole($node, 'postgres', 'unlogged, filled after a crash');
sql('ALTER TABLE items SET LOGGED');
$before = answers($node, 'postgres');
$node->stop('immediate');
$node->start;
same_answers_as($before, $node, 'postgres', 'logged again, after a crash');

# Temporary tables: rows kept, deleted at commit, and the same name in two sessions.
my $temporary = "CREATE TEMP TABLE own (id int, v vector(2)) ON COMMIT %s; CREATE INDEX own_exact ON own USING exact (v); CREATE INDEX own_ivfadc ON own USING ivfadc (v vector_cosine_ops); CREATE INDEX own_graph ON own USING graph (v vector_ip_ops); CREATE INDEX own_pqtree ON own USING pqtree ((v::halfvec(2)) halfvec_ip_ops); SET enable_seqscan = off";
my $nearest = "SELECT string_agg(id::text, ',') FROM (SELECT id FROM own ORDER BY v <-> '[0,0]' LIMIT 3) s";
my @sessions = map { $node->background_psql('postgres') } 1 .. 2;
$_->query_safe(sprintf($temporary, 'PRESERVE ROWS')) for @sessions;
$sessions[$_]->query_safe("INSERT INTO own SELECT $_ * 1000 + i, ARRAY[i, i]::vector FROM generate_series(1, 500) i; DELETE FROM own WHERE id % 1000 = 2; VACUUM own") for 0, 1;
is($sessions[0]->query_safe($nearest), '1,3,4', 'a temporary table');
is($sessions[1]->query_safe($nearest), '1001,1003,1004', 'a temporary table of another session');
is($sessions[0]->query_safe("CALL pgwarp_merge('own_exact'); CALL pgwarp_merge('own_graph'); CALL pgwarp_merge('own_pqtree'); INSERT INTO own VALUES (7777, '[0.5,0]'); $nearest"), '7777,1,3', 'a temporary table, merged');
is($sessions[0]->query_safe("SELECT string_agg(live_rows::text, ' ') FROM (VALUES ('own_exact'::regclass), ('own_ivfadc'), ('own_graph'), ('own_pqtree')) v (i), pgwarp_check(i, true)"), '500 500 500 500', 'a temporary table: pgwarp_check');
is($sessions[1]->query_safe("TRUNCATE own; INSERT INTO own VALUES (5, '[5,5]'); $nearest"), '5', 'a temporary table, truncated');
$_->quit for @sessions;
is(sql(sprintf($temporary, 'DELETE ROWS') . "; BEGIN; INSERT INTO own VALUES (1, '[1,1]'), (2, '[2,2]'); $nearest; COMMIT; $nearest; BEGIN; INSERT INTO own VALUES (3, '[3,3]'); $nearest; COMMIT; SELECT live_rows FROM pgwarp_check('own_exact', true)"),
	"1,2\n\n3\n0", 'rows deleted at commit');

# Prepared transactions: their rows are seen when they are committed, also over a restart and a crash.
my $prepared = "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> array_fill(1, ARRAY[16])::vector LIMIT 100000) s WHERE id > 9000";
sql('BEGIN; INSERT INTO items', row_values(9001 + 100 * $_, 9010 + 100 * $_), "; PREPARE TRANSACTION 'insert$_'") for 0 .. 3;
sql("BEGIN; DELETE FROM items WHERE id IN (1, 2); PREPARE TRANSACTION 'delete'");
sql("BEGIN; CREATE TABLE made (v vector(2)); CREATE INDEX made_v ON made USING ivfadc (v); INSERT INTO made VALUES ('[1,1]'); SET LOCAL enable_seqscan = off; SELECT v FROM made ORDER BY v <-> '[0,0]'; PREPARE TRANSACTION 'create'");
$before = answers($node, 'postgres');
sub hidden
{
	my ($name) = @_;
	is(sql($prepared), 0, "$name: rows of prepared transactions are not returned");
	same_answers_as($before, $node, 'postgres', $name);
	return;
}
hidden('prepared');
sql("VACUUM (INDEX_CLEANUP ON) items; CALL pgwarp_merge('items_exact')");
is(sql($prepared), 0, 'prepared and merged: rows of prepared transactions are not returned');
$before = answers($node, 'postgres');
$node->restart;
hidden('prepared, after a restart');
$node->stop('immediate');
$node->start;
hidden('prepared, after a crash');
sql("COMMIT PREPARED 'insert0'");
is(sql($prepared), 10, 'committed');
sql("ROLLBACK PREPARED 'insert1'");
is(sql($prepared), 10, 'rolled back');
$node->restart;
is(sql($prepared), 10, 'and after a restart');
sql("COMMIT PREPARED 'insert2'; ROLLBACK PREPARED 'insert3'; COMMIT PREPARED 'delete'; COMMIT PREPARED 'create'");
is(sql($prepared), 20, 'all ended');
is(sql("SET enable_seqscan = off; SELECT v FROM made ORDER BY v <-> '[0,0]'"), '[1,1]', 'an index of a prepared transaction');
is(sql("SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> array_fill(1, ARRAY[16])::vector LIMIT 100000) s WHERE id IN (1, 2)"), 0, 'a prepared DELETE');
sql('VACUUM (INDEX_CLEANUP ON) items');
whole($node, 'postgres', 'after prepared transactions');

$node->stop;
done_testing();
