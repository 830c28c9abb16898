# pgwarp_check finds faults between an index and its table, in lists that no search reads, and in links.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = 8192;
my $node = new_cluster('check', 'autovacuum' => 'off', 'allow_system_table_mods' => 'on');

# The result of pgwarp_check, or its error.
sub check
{
	my ($heap) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT live_rows FROM pgwarp_check('items_v', $heap)");
	return $rc == 0 ? $out : $err;
}

# Do something that the index does not notice.
sub behind_its_back
{
	my ($sql) = @_;
	$node->safe_psql('postgres', "UPDATE pg_index SET indisready = false WHERE indexrelid = 'items_v'::regclass");
	$node->safe_psql('postgres', $_) for split /;/, $sql;
	$node->safe_psql('postgres', "UPDATE pg_index SET indisready = true WHERE indexrelid = 'items_v'::regclass");
	return;
}

load_grid($node, 'items', 2000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING ivfadc (v);
	INSERT INTO items SELECT i, array_fill(i, ARRAY[16])::vector FROM generate_series(2001, 2100) i');
is(check('true'), 2100, 'a whole index');

# HOT chains, rows of open transactions and of aborted ones are no differences.
$node->safe_psql('postgres', 'ALTER TABLE items ADD note text');
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; INSERT INTO items SELECT i, array_fill(i, ARRAY[16])::vector FROM generate_series(3001, 3050) i');
$node->safe_psql('postgres', 'BEGIN; INSERT INTO items SELECT i, array_fill(i, ARRAY[16])::vector FROM generate_series(3101, 3150) i; ROLLBACK;
	UPDATE items SET note = id WHERE id % 3 = 0; DELETE FROM items WHERE id % 50 = 0');
like(check('true'), qr/^\d+$/, 'an index in use');
$session->query_safe('ROLLBACK');
$session->quit;
$node->safe_psql('postgres', 'VACUUM (FREEZE, INDEX_CLEANUP ON) items');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'after VACUUM');

behind_its_back("INSERT INTO items VALUES (5000, array_fill(1, ARRAY[16])::vector)");
like(check('true'), qr/row \(\d+,\d+\) of table "items" is not in index "items_v"/, 'a row that the index lacks');
like(check('false'), qr/^\d+$/, 'which only a look at the table tells');
$node->safe_psql('postgres', 'REINDEX INDEX items_v');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'REINDEX mends that');

behind_its_back('INSERT INTO items VALUES (5001, NULL)');
like(check('true'), qr/row \(\d+,\d+\) of table "items" is not in index "items_v"/, 'a NULL that the index lacks');
$node->safe_psql('postgres', 'REINDEX INDEX items_v');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'REINDEX mends that too');

behind_its_back('DELETE FROM items WHERE id > 100; VACUUM (TRUNCATE, FREEZE) items');
like(check('true'), qr/an entry points past the end of the table/, 'entries past the end of the table');
$node->safe_psql('postgres', 'REINDEX INDEX items_v');

# The list of free pages, damaged or claiming pages that are in use.
my $path = index_pages($node, 'items_v');
my ($list) = grep { kind_of($path, $_) == 8 } 0 .. (-s $path) / $page - 1;
ok(defined $list, 'there is a list of free pages');
$node->stop;
flip_bytes($path, $list * $page + $page - 16, 4);
$node->start;
like(check('false'), qr/corrupted at block $list/, 'a damaged list of free pages');
my ($rc, $out, $err) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP ON) items');
like($err, qr/corrupted at block $list/, 'VACUUM says so too');
$node->safe_psql('postgres', 'REINDEX INDEX items_v');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'REINDEX mends that too');

# Included columns, which no search reads: one of a row changed on disk. The last array is theirs.
$node->safe_psql('postgres', 'DROP INDEX items_v; CREATE INDEX items_v ON items USING exact (v) INCLUDE (id)');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'a whole index with included columns');
$path = index_pages($node, 'items_v');
my $array_kind = kind_of($path, 1);
my $included = (grep { kind_of($path, $_) == $array_kind } 1 .. (-s $path) / $page - 1)[-1];
$node->stop;
flip_bytes($path, $included * $page + 24 + 16, 1);
$node->start;
like(check('false'), qr/corrupted at block $included/, 'an included column that was changed');
$node->safe_psql('postgres', 'REINDEX INDEX items_v');
is(check('false'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'REINDEX mends that as well');

# Links of a graph that lead nowhere, with all checksums right, and the error of pgwarp_check for each.
my $dead_row = $node->safe_psql('postgres', 'SELECT count(*) - 1 FROM items');
my %faults = (
	'exists' => [ 'neighbours', 0, sub { 999_999 }, qr/a row has a neighbour that does not exist/ ],
	'self' => [ 'neighbours', 0, sub { 0 }, qr/a row is its own neighbour/ ],
	'twice' => [ 'neighbours', 0, sub { $_[1] }, qr/a row has a neighbour twice/ ],
	'unused' => [ 'neighbours', 0, sub { 0xffffffff }, qr/a row has a neighbour after an unused place/ ],
	'seed' => [ 'seeds', 0, sub { 999_999 }, qr/a seed is a row that does not exist/ ],
	'alone' => [ 'seeds', 0, sub { $dead_row }, qr/no edges lead to a row/ ],
	'changed' => [ 'edge_changes', 1, sub { 99 }, qr/an edge is changed that does not exist/ ]);
$node->safe_psql('postgres', 'DROP INDEX items_v');
$node->safe_psql('postgres', "CREATE INDEX link_$_ ON items USING graph (v)") for sort keys %faults;
$node->safe_psql('postgres', 'DELETE FROM items WHERE ctid = (SELECT max(ctid) FROM items)');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) items');
$node->safe_psql('postgres', 'INSERT INTO items SELECT i, array_fill(i, ARRAY[16])::vector FROM generate_series(6001, 6003) i');
$node->safe_psql('postgres', "CALL pgwarp_merge('link_$_')") for sort keys %faults;
my %paths = map { $_ => index_pages($node, "link_$_") } keys %faults;
$node->stop;
for my $name (keys %faults)
{
	my ($array, $number, $value) = @{ $faults{$name} };
	alter_value($paths{$name}, $array, $number, $value);
}
$node->start;
for my $name (sort keys %faults)
{
	($rc, $out, $err) = $node->psql('postgres', "SELECT live_rows FROM pgwarp_check('link_$name')");
	like($err, $faults{$name}[3], "a link: $name");
	next unless $name =~ /exists|seed|changed/;
	# The engine follows no such link.
	($rc, $out, $err) = $node->psql('postgres', "SELECT count(*) FROM knn_search('link_$name', ARRAY[array_fill(1, ARRAY[16])::vector], 3)");
	like($err, qr/ERROR:.*(?:no row of its index|an edge is changed that does not exist)/, "a link: $name, searches refuse it");
}

# crc32c, as pages have it.
sub crc32c
{
	my ($bytes) = @_;
	our @table = map { my $crc = $_; $crc = $crc & 1 ? $crc >> 1 ^ 0x82F63B78 : $crc >> 1 for 1 .. 8; $crc } 0 .. 255 if !@main::table;
	my $crc = 0xffffffff;
	$crc = $crc >> 8 ^ $main::table[($crc ^ $_) & 255] for unpack 'C*', $bytes;
	return $crc ^ 0xffffffff;
}

# Give the u32 with this number, of an array of less than 1 MiB, another value (a function of this one and the next), and
# put the checksums right: the array's in the directory, the directory's in the metapage, and that one's own.
sub alter_value
{
	my ($file, $array, $number, $value) = @_;
	my $bytes = slurp_file($file);
	my ($directory, $directory_bytes) = unpack 'L2', substr($bytes, 24 + 48, 8);
	my $header = index($bytes, pack('a16', $array), $directory * $page);
	my ($rows, $width, $extents) = unpack 'x24 Q2 L', substr($bytes, $header, 48);
	my @extents = unpack 'L*', substr($bytes, $header + 48, 8 * $extents);
	my @blocks = map { my $i = $_; map { $extents[ 2 * $i ] + $_ } 0 .. $extents[ 2 * $i + 1 ] - 1 } 0 .. $extents - 1;
	my $place = $blocks[0] * $page + 24 + 4 * $number;
	substr($bytes, $place, 4) = pack 'L', $value->(unpack 'L2', substr($bytes, $place, 8));
	my $content = substr(join('', map { substr($bytes, $_ * $page + 24, $page - 48) } @blocks), 0, 4 * $rows * $width);
	substr($bytes, $header + 48 + 8 * $extents, 4) = pack 'L', crc32c($content);
	substr($bytes, 24 + 56, 4) = pack 'L', crc32c(substr($bytes, $directory * $page + 24, $directory_bytes));
	my $end = unpack 'S', substr($bytes, 12, 2);
	substr($bytes, $end - 4, 4) = pack 'L', crc32c(substr($bytes, 24, $end - 4 - 24));
	open my $handle, '>:raw', $file or die "$file: $!";
	print {$handle} $bytes;
	close $handle;
	return;
}

# The kind of a page, from its trailer.
sub kind_of
{
	my ($file, $block) = @_;
	open my $handle, '<:raw', $file or die "$file: $!";
	seek $handle, $block * $page + $page - 8, 0;
	read $handle, my $bytes, 2;
	close $handle;
	return unpack 'S', $bytes;
}

$node->stop;
done_testing();
