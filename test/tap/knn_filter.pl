# Rows change while a scan behind a filter waits for them: it locks the rows whose new version passes.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('knn_filter', 'autovacuum' => 'off', 'jit' => 'off');

sub sql { return $node->safe_psql('postgres', @_) }

sql(q{
	CREATE TABLE items (id integer, kind integer, v vector(4));
	INSERT INTO items SELECT i, i % 7, ARRAY[i % 11, i % 13, i % 17, i]::vector FROM generate_series(1, 3000) i;
	CREATE TABLE first_items AS SELECT * FROM items;
	VACUUM ANALYZE items;
});

# The rows that a session with FOR UPDATE locks after it has waited for another's changes: by its index, or without.
sub locked_by
{
	my ($method) = @_;
	sql('DROP INDEX IF EXISTS items_v; TRUNCATE items; INSERT INTO items SELECT * FROM first_items');
	sql("CREATE INDEX items_v ON items USING $method (v)") if $method ne 'none';
	sql('VACUUM ANALYZE items');
	my $scan = $method eq 'none' ? 'enable_indexscan' : 'enable_seqscan';
	my $query = "SET $scan = off; SELECT id, kind FROM items WHERE kind = 3 ORDER BY v <-> '[3,3,3,3]' LIMIT 6 FOR UPDATE";
	my $plan = sql("SET $scan = off; EXPLAIN SELECT id FROM items WHERE kind = 3 ORDER BY v <-> '[3,3,3,3]' LIMIT 6 FOR UPDATE");
	like($plan, qr/KnnFilter/, "$method: the filter is above the scan") if $method ne 'none';
	return rows_after_waiting($node, 'UPDATE items SET kind = 6 WHERE id IN (3, 10); UPDATE items SET kind = 3 WHERE id IN (4, 5)', $query, $method);
}

my $truth = locked_by('none');
unlike($truth, qr/^(3|10)\|/m, 'rows that no longer pass are left out');
for my $method ('exact', 'graph', 'ivfadc', 'pqtree')
{
	is(locked_by($method), $truth, "$method: rows that changed while FOR UPDATE waited");
}

done_testing();
