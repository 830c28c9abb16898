# Recall is measured anew by merges when many rows have come or gone: an old calibration gives too low a recall when
# there are fewer rows, and takes too much time when there are more.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('recalibrate', 'autovacuum' => 'off', 'jit' => 'off');
sub sql { return $node->safe_psql('postgres', join(' ', @_)) }

# Rows on a surface of six dimensions: there neighbours lie in the more lists the fewer rows there are.
my $row = 'ARRAY(SELECT sum(sin(d * l * 1.7 + l) * (hashint8(i::bigint * 31 + l) % 10000) / 1000.0) FROM generate_series(1, 16) d, generate_series(1, 6) l WHERE i IS NOT NULL GROUP BY d ORDER BY d)::real[]::vector(16)';
sub add { my ($from, $to) = @_; return "INSERT INTO items SELECT i, $row FROM generate_series($from, $to) i;" }
sql("CREATE TABLE items (id int PRIMARY KEY, v vector(16));", add(1, 20000),
	'CREATE INDEX items_half ON items USING ivfadc (v);
	CREATE INDEX items_full ON items USING ivfadc (v vector_ip_ops) WITH (codes = half, refine = full);
	CREATE INDEX items_int8 ON items USING ivfadc (v vector_cosine_ops) WITH (codes = int8, refine = none);
	CREATE INDEX items_exact ON items USING exact (v);
	CREATE INDEX items_codes ON items USING ivfadc (v) WITH (refine = none)');
my @measured = ('items_half', 'items_full', 'items_int8');

# The fewest probes that were measured to find so much of the ten nearest.
sub effort { return sql("SELECT min((p->>'effort')::int) FILTER (WHERE (p->'recall'->>'10')::float >= 0.95) FROM pgwarp_index_info('$_[0]'), jsonb_array_elements(calibration->'curve') p") }
sub changed { return join(' ', map { sql("SELECT calibration->'changed_rows' FROM pgwarp_index_info('$_')") } @_) }
sub curves { return sql("SELECT string_agg(calibration->>'curve', ' ') FROM unnest('{" . join(',', @_) . "}'::regclass[]) i, pgwarp_index_info(i)") }
sub recall { my ($index, $settings) = @_; return sql($settings // '', "; SELECT pgwarp_recall('$index', 10, 1500)") }

is(sql("SELECT string_agg(calibration->>'renewed_by', ' ') FROM unnest('{items_half,items_int8,items_codes}'::regclass[]) i, pgwarp_index_info(i)"),
	'merge merge REINDEX', 'who measures anew');
is(sql("SELECT calibration->>'renewed_by' FROM pgwarp_index_info('items_exact')"), '', 'nobody, where there is nothing to measure');
my %effort = map { $_ => effort($_) } @measured;
my $built = curves(@measured);

# A few rows change nothing.
sql(add(20001, 21000));
sql("CALL pgwarp_merge('$_')") for @measured, 'items_codes';
is(changed(@measured, 'items_codes'), '1000 1000 1000 1000', 'rows that came are counted');
is(curves(@measured), $built, 'a few rows: the curve is as it was');

# One row in twelve remains.
sql('DELETE FROM items WHERE abs(hashint4(id)) % 12 > 0');
sql('VACUUM (FREEZE, INDEX_CLEANUP ON) items');
is(changed(@measured), '0 0 0', 'many rows gone: measured anew');
isnt(changed('items_codes'), '0', 'but not by codes alone');
for my $index (@measured)
{
	my $now = effort($index);
	cmp_ok($now, '>', $effort{$index}, "$index: more lists are probed than the $effort{$index} of before: $now");
	my ($before, $after) = (recall($index, "SET pgwarp.ivfadc_probes = $effort{$index}"), recall($index));
	# Where bytes propose, a search asks for so many rows that it reads beyond the probed lists.
	cmp_ok($before, '<', 0.93, "$index: the recall would be $before") if $index ne 'items_int8';
	cmp_ok($after, '>=', 0.94, "$index: it is $after");
}

is(sql("SELECT rows < 2500 AND delta_rows = 0 FROM pgwarp_index_info('items_exact')"), 't', 'what needs no measuring is merged as well');

# Four times as many rows are no reason to train anew, but to probe fewer lists; bytes alone are never trained anew.
%effort = map { $_ => effort($_) } @measured;
sql(add(30001, 36000));
my $lists = sql("SELECT options->'lists' FROM pgwarp_index_info('items_int8')");
sql("CALL pgwarp_merge('$_')") for @measured;
is(changed(@measured), '0 0 0', 'many rows came: measured anew');
for my $index (@measured)
{
	my $now = effort($index);
	cmp_ok($now, '<', $effort{$index}, "$index: fewer lists are probed than the $effort{$index} of before: $now");
	my $after = recall($index);
	cmp_ok($after, '>=', 0.94, "$index: recall $after");
}
is(sql("SELECT options->'lists' FROM pgwarp_index_info('items_int8')"), $lists, 'the lists are the same');
is(sql("SELECT bool_and(live_rows = (SELECT count(*) FROM items)) FROM unnest('{items_half,items_full,items_int8,items_codes,items_exact}'::regclass[]) i, pgwarp_check(i, true)"), 't', 'whole');
$node->stop;
done_testing();
