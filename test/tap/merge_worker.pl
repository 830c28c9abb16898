# A stream of inserts is merged by a background worker long before autovacuum comes around.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('merge_worker', 'autovacuum' => 'on', 'autovacuum_naptime' => '1d', 'jit' => 'off');

sub sql { return $node->safe_psql('postgres', @_) }

# Rows in the logs of an index.
sub in_logs { my ($index) = @_; return sql("SELECT delta_rows FROM pgwarp_index_info('$index')") }

# Insert this many rows, in statements of 100, by four sessions.
sub insert
{
	my ($rows) = @_;
	my $script = $node->basedir . '/insert.sql';
	open my $file, '>', $script or die $!;
	print {$file} "INSERT INTO items SELECT (random() * 1e9)::int, ARRAY(SELECT random() * 10 FROM generate_series(1, 16) d WHERE i > 0)::real[]::vector FROM generate_series(1, 100) i;\n";
	close $file;
	my $transactions = $rows / 400;
	$node->command_ok([ 'pgbench', '-n', '-c', 4, '-t', $transactions, '-f', $script, $node->connstr('postgres') ], "$rows rows inserted");
	return;
}

load_grid($node, 'items', 2000);
sql('ALTER TABLE items DROP CONSTRAINT items_pkey; CREATE INDEX items_exact ON items USING exact (v); CREATE INDEX items_ivfadc ON items USING ivfadc (v); CREATE INDEX items_pqtree ON items USING pqtree (v)');
$node->append_conf('postgresql.conf', 'pgwarp.merge_worker = off');
$node->reload;
insert(6000);
is(in_logs($_), 6000, "$_: nothing is merged without the worker") for 'items_exact', 'items_ivfadc', 'items_pqtree';
$node->append_conf('postgresql.conf', 'pgwarp.merge_worker = on');
$node->reload;

# Workers come one after the other, some seconds apart, and merge all of a table's indexes.
my %merged;
for my $round (1 .. 15)
{
	insert(4000);
	sleep 1;
	for my $index ('items_exact', 'items_ivfadc', 'items_pqtree')
	{
		$merged{$index} = 1 if in_logs($index) < 6000;
	}
	last if keys %merged == 3;
}
ok($merged{$_}, "$_: a worker merged it") for 'items_exact', 'items_ivfadc', 'items_pqtree';
is(sql("SELECT count(*) FROM pg_stat_all_tables WHERE relname = 'items' AND autovacuum_count > 0"), 0, 'without autovacuum');
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pgwarp merge'") or die 'a worker does not end';
my $rows = sql('SELECT count(*) FROM items');
is(sql("SELECT live_rows FROM pgwarp_check('$_', true)"), $rows, "$_: whole") for 'items_exact', 'items_ivfadc', 'items_pqtree';
sql('DROP INDEX items_ivfadc, items_pqtree');
same_rows($node, 'items', 'exact answers');
$node->stop;
done_testing();
