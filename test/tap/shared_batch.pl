# Sessions whose searches are answered together: scans that go on do so each from where its own search ended.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('shared_batch', 'autovacuum' => 'off', 'jit' => 'off', 'max_connections' => 40, 'log_statement' => 'none');
load_grid($node, 'items', 3000);
$node->safe_psql('postgres', q{CREATE INDEX items_v ON items USING exact (v);
	CREATE FUNCTION same_rows(a float8[], b float8[]) RETURNS boolean LANGUAGE plpgsql AS
		$$BEGIN IF a IS DISTINCT FROM b THEN RAISE EXCEPTION 'rows are left out: % instead of %', a, b; END IF; RETURN true; END$$});

# One row in twenty passes, so every scan goes on after its first search, and all ask for the same number of rows.
my $search = $node->basedir . '/search.sql';
append_to_file($search, q{\set q random(1, 3000)
SET enable_seqscan = off;
SELECT same_rows((SELECT array_agg(d) FROM (SELECT v <-> (SELECT v FROM items WHERE id = :q) AS d FROM items WHERE id % 20 = 3 ORDER BY d LIMIT 20) s),
	(SELECT array_agg(d) FROM (SELECT v <-> (SELECT v FROM items WHERE id = :q) AS d FROM items WHERE id % 20 = 3 ORDER BY (v <-> (SELECT v FROM items WHERE id = :q)) + 0 LIMIT 20) s));
});
my $printed = '';
my $running = IPC::Run::start([ 'pgbench', '-n', '-c', 16, '-T', 4, '-f', $search, $node->connstr('postgres') ], '>', \$printed, '2>&1');
$running->finish;
like($printed, qr/number of transactions actually processed: \d{2}/, 'searches were made');
unlike($printed, qr/ERROR|FATAL/, 'scans with a filter, side by side') or diag $printed;
cmp_ok($node->safe_psql('postgres', "SELECT max_batch_width FROM pgwarp_status WHERE index = 'items_v'::regclass"), '>', 1, 'searches were answered together');
$node->stop;
done_testing();
