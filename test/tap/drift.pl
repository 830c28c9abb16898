# Quantizers are trained again when rows have become unlike the rows of the training, all at once or bit by bit, by the
# error of centroids or by that of codes; and not when rows are like them.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('drift', 'autovacuum' => 'off', 'jit' => 'off');

sub sql { return $node->safe_psql('postgres', @_) }

# The work that a merge reports.
sub merged
{
	my ($index) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; CALL pgwarp_merge('$index')");
	note $1 if $err =~ /(mean quantization error.*)/;
	return $err =~ /was (appended|built anew|written anew)/ ? $1 : $err;
}

# Rows around 40 places: noise of this width in dimensions [from, to) of 16.
sql(q{
	CREATE TABLE places (id int, v vector(16));
	SELECT setseed(0.25);
	INSERT INTO places SELECT i, ARRAY(SELECT random() * 40 FROM generate_series(1, 16) WHERE i IS NOT NULL)::real[]::vector FROM generate_series(1, 40) i;
	CREATE FUNCTION draw(i int, width float8, first int, behind int) RETURNS vector LANGUAGE sql VOLATILE AS $$
		SELECT (SELECT v FROM places WHERE id = i % 40 + 1) + ARRAY(SELECT CASE WHEN d >= first AND d < behind THEN (random() - 0.5) * width ELSE 0 END
			FROM generate_series(0, 15) d WHERE i IS NOT NULL)::real[]::vector $$;
	CREATE TABLE items (id int, v vector(16));
	INSERT INTO items SELECT i, draw(i, 8, 0, 8) FROM generate_series(1, 9000) i;
	CREATE INDEX items_half ON items USING ivfadc (v) WITH (lists = 160);
	CREATE INDEX items_full ON items USING ivfadc (v) WITH (lists = 160, refine = full);
	CREATE INDEX items_opq ON items USING ivfadc (v) WITH (lists = 160, opq = on);
	CREATE INDEX items_int8 ON items USING ivfadc (v) WITH (lists = 160, codes = int8);
});
my @indexes = ('items_half', 'items_full', 'items_opq', 'items_int8');
is(sql("SELECT string_agg(drift->>'compares' || ': ' || (drift->>'answer'), ', ' ORDER BY i::text) FROM unnest(ARRAY['items_half', 'items_int8', 'items_opq']::regclass[]) i, pgwarp_index_info(i)"),
	'centroids and codes: merge, centroids: merge, centroids and codes: merge', 'what is compared');
sql("CREATE INDEX items_codes ON items USING ivfadc (v) WITH (lists = 160, refine = none); CREATE INDEX items_exact ON items USING exact (v)");
is(sql("SELECT drift FROM pgwarp_index_info('items_codes') UNION ALL SELECT drift FROM pgwarp_index_info('items_exact')"),
	'{"answer": "REINDEX", "compares": "centroids, by codes"}' . "\n", 'without vectors, without quantizers');
sql('DROP INDEX items_codes, items_exact');
my $next = 10000;
sub add
{
	my ($rows, $width, $first, $behind) = @_;
	# Each session has a seed of its own.
	sql("SELECT setseed($next / 1e6); INSERT INTO items SELECT i, draw(i, $width, $first, $behind) FROM generate_series($next, $next + $rows - 1) i");
	$next += $rows;
	return;
}
sub merge_all { return join ', ', map { merged($_) } @indexes }

for my $round (1 .. 3)
{
	add(800, 8, 0, 8);
	is(merge_all(), 'appended, appended, appended, appended', "rows like the old ones, $round");
}
# As near to the centroids as ever, but where no code looks.
add(1000, 7, 8, 16);
is(merge_all(), 'built anew, built anew, built anew, appended', 'rows that the codes know nothing of');
add(300, 7, 8, 16);
is(merge_all(), 'appended, appended, appended, appended', 'they are known now');

# Each time a little wider than the time before.
sql('DELETE FROM items; VACUUM (INDEX_CLEANUP ON) items');
$next = 10000;
add(9000, 8, 0, 16);
sql("REINDEX TABLE items");
my ($width, %anew) = (8);
for my $round (1 .. 10)
{
	$width *= 1.05;
	add(800, $width, 0, 16);
	for my $index (@indexes) { $anew{$index} //= $round if merged($index) eq 'built anew'; }
}
for my $index (@indexes)
{
	cmp_ok($anew{$index} // 99, '<=', 10, "$index: rows that drift bit by bit: built anew in round " . ($anew{$index} // '-'));
	cmp_ok($anew{$index} // 99, '>=', 2, "$index: not at once");
}
is(sql("SELECT bool_and(live_rows = (SELECT count(*) FROM items)) FROM unnest(ARRAY['items_half', 'items_full', 'items_opq', 'items_int8']::regclass[]) i, pgwarp_check(i, true)"), 't', 'whole');
$node->stop;
done_testing();
