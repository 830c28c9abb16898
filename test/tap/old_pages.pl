# Indexes whose pages an earlier build wrote are read, searched, checked, changed and merged by this one, before and after
# ALTER EXTENSION UPDATE.
#
# old_pages/*.gz hold the main forks of indexes that were built at the release of format 1, over the table that
# load_items() makes; their tids fit any server, because the rows lie where INSERT puts them one after the other.
# PGWARP_MAKE_PAGES=folder writes such files with the build that PGWARP_DESTDIR names.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IO::Compress::Gzip qw(gzip $GzipError);
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = 8192;
my $pages = "$FindBin::RealBin/old_pages";
my %indexes = (
	exact_l2 => 'exact (v)',
	exact_half => 'exact ((v::halfvec(16)) halfvec_cosine_ops)',
	ivfadc_pq => 'ivfadc (v vector_ip_ops) INCLUDE (id)',
	ivfadc_int8 => 'ivfadc (v vector_cosine_ops) WITH (codes = int8, refine = full)',
	graph_l2 => 'graph (v) INCLUDE (id)',
	graph_bits => 'graph (v vector_cosine_ops) WITH (vectors = bits)');
my %operators = (l2 => '<->', half => '<=>', pq => '<#>', int8 => '<=>', bits => '<=>');

# 300 rows of the build, 60 inserted later, a seventh deleted. Some vectors are missing.
sub load_items
{
	my ($node, $with_index) = @_;
	my $row = 'i, CASE WHEN i % 45 <> 44 THEN ARRAY(
		SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16) END';
	$node->safe_psql('postgres', "CREATE TABLE items (id int, v vector(16));
		INSERT INTO items SELECT $row FROM generate_series(1, 300) i");
	create_indexes($node) if $with_index;
	$node->safe_psql('postgres', "INSERT INTO items SELECT $row FROM generate_series(301, 360) i;
		DELETE FROM items WHERE id % 7 = 0");
	$node->safe_psql('postgres', 'VACUUM (TRUNCATE false, INDEX_CLEANUP ON) items');
	return;
}

sub create_indexes
{
	my ($node) = @_;
	$node->safe_psql('postgres', "CREATE INDEX items_$_ ON items USING $indexes{$_}") for sort keys %indexes;
	return;
}

# Write the pages of the indexes that the staged build makes. A cluster's log positions mean nothing elsewhere.
sub make_pages
{
	my ($folder) = @_;
	my $node = new_cluster('make_pages', 'pgwarp.merge_worker' => 'off');
	load_items($node, 1);
	my %path = map { $_ => index_pages($node, "items_$_") } keys %indexes;
	$node->stop;
	for my $index (sort keys %indexes)
	{
		my $bytes = slurp_file($path{$index});
		substr($bytes, $_ * $page, 8) = "\0" x 8 for 0 .. length($bytes) / $page - 1;
		gzip \$bytes => "$folder/$index.gz", -Level => 9, Minimal => 1 or die $GzipError;
	}
	return;
}

if ($ENV{PGWARP_MAKE_PAGES})
{
	make_pages($ENV{PGWARP_MAKE_PAGES});
	plan skip_all => 'pages written';
}

# A cluster whose catalogs are those of version 0.1.0, and whose indexes have the old pages.
my $node = new_cluster('old_pages', 'pgwarp.merge_worker' => 'off');
$node->safe_psql('postgres', "DROP EXTENSION pgwarp; CREATE EXTENSION pgwarp VERSION '0.1.0'");
load_items($node, 0);
create_indexes($node);
my %path = map { $_ => index_pages($node, "items_$_") } keys %indexes;
$node->stop;
for my $index (sort keys %indexes)
{
	gunzip "$pages/$index.gz" => \my $bytes or die "$index: $GunzipError";
	open my $file, '>:raw', $path{$index} or die "$path{$index}: $!";
	print {$file} $bytes;
	close $file or die "$path{$index}: $!";
}
$node->start;

# Of 30 queries the distances of the ten nearest rows, by this index or by none.
sub nearest
{
	my ($index, $how) = @_;
	my ($form) = $index =~ /_(\w+)$/;
	my $value = $form eq 'half' ? 'v::halfvec(16)' : 'v';
	my @others = grep { $_ ne $index } keys %indexes;
	return $node->safe_psql('postgres', join('', map { "DROP INDEX items_$_;" } sort @others) =~ s/^/BEGIN;/r . "
		SET LOCAL $how = off; SET LOCAL pgwarp.recall = 1; SET LOCAL pgwarp.graph_ef_search = 1000;
		SELECT q.id, ARRAY(SELECT round(($value $operators{$form} (q.$value))::numeric, 4) FROM items
			WHERE v IS NOT NULL ORDER BY $value $operators{$form} (q.$value) LIMIT 10)
		FROM (SELECT * FROM items WHERE v IS NOT NULL ORDER BY id LIMIT 30) q ORDER BY q.id; ROLLBACK");
}

# The share of the wanted distances that an index gave. Bits of projections propose rows and may miss some.
sub recall
{
	my ($got, $wanted) = @_;
	my %given = map { $_ => 1 } numbered($got);
	my @wanted = numbered($wanted);
	return (grep { $given{$_} } @wanted) / @wanted;
}

# Each distance of an answer with its query's number.
sub numbered
{
	my ($answer) = @_;
	return map { my ($id, $list) = /^(\d+)\|\{(.*)\}$/; map { "$id $_" } split /,/, $list } split /\n/, $answer;
}

sub try_answers
{
	my ($when) = @_;
	cmp_ok(recall(nearest($_, 'enable_seqscan'), nearest($_, 'enable_indexscan')), '>=', $_ eq 'graph_bits' ? 0.8 : 1, "$_ $when: searched")
		for sort keys %indexes;
	return;
}

# Search and check each index. An index of format 1 lacks the NULLs, and pgwarp_check reports that in a NOTICE.
sub try_indexes
{
	my ($when, $rows, $has_nulls) = @_;
	try_answers($when);
	for my $index (sort keys %indexes)
	{
		my ($rc, $live, $notice) = $node->psql('postgres', "SELECT live_rows FROM pgwarp_check('items_$index', true)");
		is($live, $rows, "$index $when: checked");
		($has_nulls ? \&unlike : \&like)->($notice, qr/index "items_$index" lacks the rows without a distance/, "$index $when: what it lacks");
		is($node->safe_psql('postgres', "SELECT options->'unplaced_rows' FROM pgwarp_index_info('items_$index')"), $has_nulls // 'null', "$index $when: its rows without a distance");
	}
	return;
}

my $count = 'SELECT count(v) FROM items';
my $rows = $node->safe_psql('postgres', $count);
try_answers('under catalogs of version 0.1.0');
$node->safe_psql('postgres', 'ALTER EXTENSION pgwarp UPDATE');
try_indexes('as it was', $rows);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class, pgwarp_index_info(oid::regclass) WHERE relname ~ '^items_' AND delta_rows > 0"),
	scalar keys %indexes, 'each has rows in its logs');
$node->safe_psql('postgres', 'INSERT INTO items SELECT id + 1000, v FROM items WHERE id % 5 = 0');
$rows = $node->safe_psql('postgres', $count);
$node->safe_psql('postgres', 'DELETE FROM items WHERE id % 11 = 0');
# Deleted rows count until VACUUM has seen them.
try_indexes('with rows of this build', $rows);
$rows = $node->safe_psql('postgres', $count);
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) items');
$node->safe_psql('postgres', "CALL pgwarp_merge('items_$_')") for sort keys %indexes;
try_indexes('merged', $rows);
$node->restart;
try_indexes('merged, after a restart', $rows);
$node->safe_psql('postgres', 'REINDEX TABLE items');
my $nulls = $node->safe_psql('postgres', 'SELECT count(*) FROM items WHERE v IS NULL');
cmp_ok($nulls, '>', 5, 'there are NULLs');
try_indexes('built anew', $rows + $nulls, $nulls);
$node->stop;
done_testing();
