# VACUUM merges when delta rows add a quarter to the cost of searches. Searches measure that cost; without searches it is
# the cost of comparing delta rows one by one.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('merge_threshold', 'autovacuum' => 'off', 'jit' => 'off');
sub sql { return $node->safe_psql('postgres', join(' ', @_)) }
sub in_logs { return sql("SELECT delta_rows FROM pgwarp_index_info('items_v')") }

my $row = 'ARRAY(SELECT random() FROM generate_series(1, 32) WHERE i IS NOT NULL)::real[]::vector(32)';
sub insert { my ($from, $to) = @_; return sql("SELECT setseed($from / 1e6); INSERT INTO items SELECT i, $row FROM generate_series($from, $to) i") }

# Searches with $probes probes; returns the cost of delta rows, their number, and the number that the engine has indexed.
sub search
{
	my ($searches, $probes) = @_;
	return sql("SET enable_seqscan = off; SET pgwarp.ivfadc_probes = $probes;
		DO 'BEGIN FOR i IN 1..$searches LOOP PERFORM id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1 + i % 1000) LIMIT 10; END LOOP; END';
		SELECT delta_cost, delta_rows, delta_rows_indexed FROM pgwarp_status WHERE index = 'items_v'::regclass");
}

sql('CREATE TABLE items (id int PRIMARY KEY, v vector(32))');
insert(1, 60000);
sql('CREATE INDEX items_v ON items USING ivfadc (v) WITH (lists = 20)');
insert(60001, 61100);
# In a search of all lists two in a hundred rows are next to nothing, many as they are for one that probes a few lists;
# but a GPU may be through with all lists before the delta rows are compared.
my ($cost, $rows, $indexed) = split /\|/, search(300, 65536);
my $gpu = ($ENV{PGWARP_DEVICE} // '') eq 'cuda';
cmp_ok($cost, '<', $gpu ? 2 : 0.25, "fresh rows cost $cost of a search");
is($rows, 1100, 'fresh rows');
sql('VACUUM items');
is(in_logs(), $cost > 0.25 ? 0 : 1100, 'they are merged or not by that');

# Many more of them, without a search since: their cost was not measured.
insert(70001, 74000);
sql('VACUUM items');
is(in_logs(), 0, 'many more are merged');

# Three times as many delta rows as rows of the build.
sql('TRUNCATE items');
insert(1, 3000);
sql('REINDEX INDEX items_v');
insert(3001, 12000);
($cost, $rows, $indexed) = split /\|/, search(2000, 65536);
cmp_ok($indexed, '<=', $rows, "of $rows rows $indexed are indexed in the engine");
sql('VACUUM items');
if ($gpu)
{
	# There they may cost next to nothing.
	is(in_logs(), $cost > 0.25 ? 0 : 9000, "fresh rows cost $cost of a search: merged or not by that");
	sql("CALL pgwarp_merge('items_v')");
}
else
{
	cmp_ok($cost, '>', 0.3, "fresh rows cost $cost of a search");
}
is(in_logs(), 0, 'they are merged');
search(1, 1);
is(sql("SELECT coalesce(max(delta_rows_indexed), 0) FROM pgwarp_status WHERE index = 'items_v'::regclass"), '0', 'and no part remains');
$node->stop;
done_testing();
