# Rows that are lists of words, with attributes and included columns: inserted, vacuumed, merged in every way, with and
# without the engine, and crashed in between. The access methods are test/overlap_index. Needs a build with PGWARP_FAULTS.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $node = new_cluster('lists', 'autovacuum' => 'off', 'restart_after_crash' => 'on');
sub sql { return $node->safe_psql('postgres', @_) }

sql(q{
	CREATE TABLE lists (id bigint, l int[]);
	ALTER TABLE lists ALTER l SET STORAGE external;
	CREATE FUNCTION overlap_handler(internal) RETURNS index_am_handler AS '$libdir/pgwarp', 'pgwarp_test_overlap_handler' LANGUAGE C;
	CREATE FUNCTION element_list(internal) RETURNS int AS '$libdir/pgwarp', 'pgwarp_test_element_list' LANGUAGE C STRICT;
	CREATE FUNCTION element_weighted_list(internal) RETURNS int AS '$libdir/pgwarp', 'pgwarp_test_element_weighted_list' LANGUAGE C STRICT;
	CREATE FUNCTION overlap_encoded_handler(internal) RETURNS index_am_handler AS '$libdir/pgwarp', 'pgwarp_test_encoded_overlap_handler' LANGUAGE C;
	CREATE FUNCTION rows_of(regclass, OUT place text, OUT address tid, OUT words int[], OUT weights real[], OUT attributes bigint[])
		RETURNS SETOF record AS '$libdir/pgwarp', 'pgwarp_test_rows' LANGUAGE C STRICT;
	-- The rows that an index must hold.
	CREATE FUNCTION truth(weighted bool, OUT kind text, OUT address tid, OUT words int[], OUT weights real[], OUT attributes bigint[])
		RETURNS SETOF record LANGUAGE sql AS $$
		SELECT CASE WHEN l IS NULL THEN 'null' WHEN l[1] < 0 THEN 'not a number' ELSE 'placed' END, ctid,
			CASE WHEN l[1] < 0 THEN NULL ELSE l END,
			CASE WHEN weighted THEN ARRAY(SELECT (w / 8.0)::real FROM unnest(l) w ORDER BY w) END,
			ARRAY[(split_part(btrim(ctid::text, '()'), ',', 1)::bigint << 16) + split_part(btrim(ctid::text, '()'), ',', 2)::bigint,
				coalesce(cardinality(l), 0)] FROM lists $$;
	-- Differences between an index and its table.
	CREATE FUNCTION wrong(index regclass, weighted bool) RETURNS bigint LANGUAGE sql AS $$
		WITH held AS (SELECT CASE WHEN place IN ('array', 'log') THEN 'placed' ELSE place END, address, words, weights, attributes
			FROM rows_of(index)), wanted AS (
			SELECT kind, address, words, CASE WHEN words IS NOT NULL THEN weights END, attributes FROM truth(weighted))
		SELECT (SELECT count(*) FROM ((TABLE held EXCEPT ALL TABLE wanted) UNION ALL (TABLE wanted EXCEPT ALL TABLE held)) d) $$;
	CREATE FUNCTION list_of(i bigint) RETURNS int[] LANGUAGE sql AS $$
		SELECT CASE WHEN i % 97 = 3 THEN NULL WHEN i % 89 = 5 THEN '{-1}' WHEN i % 31 = 7 THEN '{}'
			ELSE ARRAY(SELECT DISTINCT abs(hashint8(i * 1000 + j) % 5000) AS w
				FROM generate_series(1, CASE WHEN i % 500 = 11 THEN 20000 ELSE i % 60 END) j ORDER BY w) END $$;
	CREATE FUNCTION insert_lists(first bigint, last bigint) RETURNS void LANGUAGE sql AS
		'INSERT INTO lists SELECT i, list_of(i) FROM generate_series(first, last) i';
});

my @indexes;
for my $method ('overlap', 'overlap_encoded')
{
	sql("CREATE ACCESS METHOD $method TYPE INDEX HANDLER ${method}_handler;
		CREATE OPERATOR CLASS plain_ops FOR TYPE int[] USING $method AS
			FUNCTION 1 (int[]) pgwarp_metric_overlap(internal), FUNCTION 2 (int[]) element_list(internal);
		CREATE OPERATOR CLASS weighted_ops FOR TYPE int[] USING $method AS
			FUNCTION 1 (int[]) pgwarp_metric_overlap(internal), FUNCTION 2 (int[]) element_weighted_list(internal);
		CREATE INDEX ${method}_plain ON lists USING $method (l plain_ops);
		CREATE INDEX ${method}_weighted ON lists USING $method (l weighted_ops) INCLUDE (id)");
	push @indexes, "${method}_plain", "${method}_weighted";
}
my $merge = join '; ', map { "CALL pgwarp_merge('$_')" } @indexes;

# The index holds the table's rows, and its structure is whole.
sub expect_whole
{
	my ($index, $name) = @_;
	my $weighted = $index =~ /weighted/ ? 'true' : 'false';
	is(sql("SELECT wrong('$index', $weighted)"), 0, "$name: $index");
	sql("SELECT pgwarp_check('$index', false)");
	return;
}
# Likewise each index, with this number of rows in its logs.
sub expect_rows
{
	my ($name, $logged) = @_;
	for my $index (@indexes)
	{
		expect_whole($index, $name);
		is(sql("SELECT count(*) FROM rows_of('$index') WHERE place = 'log'"), $logged, "$name: rows in the log of $index");
	}
	return;
}
sub merge { sql($merge); return }
my $placed = 'l IS NOT NULL AND coalesce(l[1], 0) >= 0';

sql('SELECT insert_lists(1, 3000)');
expect_rows('inserted', sql("SELECT count(*) FROM lists WHERE $placed"));
merge();
expect_rows('first merge', 0);
cmp_ok(sql("SELECT count(*) FROM rows_of('overlap_plain') WHERE place IN ('null', 'not a number')"), '>', 60, 'some rows have no place');

sql('SELECT insert_lists(3001, 4200)');
merge();
expect_rows('appended', 0);
sql("INSERT INTO lists SELECT i, '{}' FROM generate_series(5001, 5100) i");
merge();
expect_rows('appended lists without words', 0);

# Few dead rows stay until more have died.
sql('DELETE FROM lists WHERE id % 50 = 0');
sql('VACUUM lists');
sql('SELECT insert_lists(6001, 6300)');
expect_rows('few died', sql("SELECT count(*) FROM lists WHERE id > 6000 AND $placed"));
merge();
expect_rows('appended beside dead rows', 0);
sql('DELETE FROM lists WHERE id % 3 > 0 OR id BETWEEN 1000 AND 1600');
sql('VACUUM lists');
sql('SELECT insert_lists(7001, 7400)');
merge();
expect_rows('written anew without dead rows', 0);

# Steps of a merge.
sql('SELECT insert_lists(8001, 9000)');
sql("SET pgwarp.merge_step_rows = 300; $merge");
expect_rows('merged in steps', 0);

# A crash at any step of a merge leaves the old generation or the new one.
my $crashes = 0;
for (my $step = 1; $step < 3000; $step += 1 + int($step / 2))
{
	sql("SELECT insert_lists(10000 + $step * 10, 10000 + $step * 10 + 9); DELETE FROM lists WHERE id % 7 = $step % 7");
	sql('VACUUM lists') if $step % 2;
	my $log_end = -s $node->logfile;
	my ($rc) = $node->psql('postgres', "SELECT FROM rows_of('$indexes[0]') LIMIT 1; SET pgwarp.fault_step = $step; $merge");
	last if $rc == 0;
	++$crashes;
	await_restart($node, $log_end);
	sql('VACUUM lists');
	expect_whole($_, "crash at step $step") for @indexes;
}
cmp_ok($crashes, '>', 5, "$crashes crashes");
sql('VACUUM lists');
merge();
expect_rows('after crashes', 0);

sql('DELETE FROM lists WHERE l IS NOT NULL');
sql('VACUUM lists');
merge();
expect_rows('emptied', 0);
sql('SELECT insert_lists(1, 500)');
merge();
expect_rows('merged into an emptied index', 0);
sql('REINDEX TABLE lists');
expect_rows('built anew', sql("SELECT count(*) FROM lists WHERE $placed"));
merge();
expect_rows('merged into an index built anew', 0);

$node->stop;
done_testing();
