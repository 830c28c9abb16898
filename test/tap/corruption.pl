# Altered pages of every kind are reported, never believed, and REINDEX mends them.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('corruption', 'autovacuum' => 'off');
my $page = 8192;

# The kind of a page, from its trailer (see src/postgres/storage/page.h).
sub page_kinds
{
	my ($path) = @_;
	my %blocks;
	open my $file, '<:raw', $path or die $!;
	for (my $block = 0; read($file, my $bytes, $page) == $page; $block++)
	{
		my ($kind, $id) = unpack('S x4 S', substr($bytes, $page - 8, 8));
		push @{ $blocks{$kind} }, $block if $id == 0xF9A7;
	}
	close $file;
	return \%blocks;
}

# The checksum that pages carry (Castagnoli), bit by bit.
sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xFFFFFFFF;
	for my $byte (unpack('C*', $bytes))
	{
		$crc ^= $byte;
		$crc = ($crc >> 1) ^ ($crc & 1 ? 0x82F63B78 : 0) for 1 .. 8;
	}
	return $crc ^ 0xFFFFFFFF;
}

my %names = (1 => 'metapage', 2 => 'directory', 3 => 'array', 4 => 'log head', 5 => 'log entries', 6 => 'log values',
	7 => 'tombstones');

load_grid($node, 'items', 2000);
for my $kind (sort keys %names)
{
	for my $where ('content', 'trailer')
	{
		$node->safe_psql('postgres', "DROP INDEX IF EXISTS items_v; CREATE INDEX items_v ON items USING exact (v);
			INSERT INTO items SELECT 2000 + coalesce(max(id), 0) + 1, array_fill(3, ARRAY[16])::vector FROM items;
			DELETE FROM items WHERE id > 4000 AND id % 2 = 0;");
		$node->safe_psql('postgres', 'VACUUM (FREEZE, INDEX_CLEANUP ON) items');
		my $path = index_pages($node, 'items_v');
		my $blocks = page_kinds($path);
		ok($blocks->{$kind}, "$names{$kind}: such a page exists") or next;
		$node->stop;
		for my $block (@{ $blocks->{$kind} })
		{
			# Content starts after the page header; the metapage's second word is its format version.
			my $offset = $where eq 'content' ? 24 + 4 : $page - 24;
			flip_bytes($path, $block * $page + $offset, 8);
		}
		$node->start;
		my ($rc, $out, $err) = $node->psql('postgres',
			"SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 3");
		isnt($rc, 0, "$names{$kind} $where: refused");
		like($err, qr/ERROR:.*(corrupt|not a pgwarp|unexpected|checksum|damaged)/i, "$names{$kind} $where: says so");
		like($err, qr/REINDEX/, "$names{$kind} $where: hints at REINDEX");
		($rc, $out, $err) = $node->psql('postgres', "SELECT pgwarp_check('items_v')");
		isnt($rc, 0, "$names{$kind} $where: pgwarp_check finds it");
		like($err, qr/ERROR:.*(corrupt|not a pgwarp|unexpected|checksum|damaged)/i, "$names{$kind} $where: pgwarp_check says so");
		$node->safe_psql('postgres', 'REINDEX INDEX items_v');
		same_rows($node, 'items', "$names{$kind} $where: REINDEX mends");
	}
}

# An index of another format: whole, but not readable by this version.
{
	my $path = index_pages($node, 'items_v');
	$node->stop;
	open my $file, '+<:raw', $path or die $!;
	my $bytes;
	read $file, $bytes, $page;
	my $length = unpack('S', substr($bytes, 12, 2)) - 24;
	my $content = substr($bytes, 24, $length - 4);
	substr($content, 4, 4) = pack('L', 7);
	substr($bytes, 24, $length) = $content . pack('L', crc32c($content));
	seek $file, 0, 0;
	print {$file} $bytes;
	close $file;
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT pgwarp_check('items_v')");
	like($err, qr/ERROR:  0A000: index "items_v" has storage format 7, this pgwarp reads formats up to 2/, 'another format is named');
	like($err, qr/REINDEX/, 'another format: hints at REINDEX');
	$node->safe_psql('postgres', 'REINDEX INDEX items_v');
	same_rows($node, 'items', 'another format: REINDEX mends');
}

# A truncated index.
{
	my $path = index_pages($node, 'items_v');
	$node->stop;
	truncate($path, $page * 2) or die $!;
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 1) LIMIT 3");
	isnt($rc, 0, 'truncated index: refused');
	$node->safe_psql('postgres', 'REINDEX INDEX items_v');
	same_rows($node, 'items', 'truncated index: REINDEX mends');
}

# Rows without a distance, which the engine never gets: their array, log and tombstones.
$node->safe_psql('postgres', 'CREATE TABLE nulls (id int, v vector(3)); INSERT INTO nulls SELECT i FROM generate_series(1, 3000) i');
for my $kind (3, 5, 7)
{
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS nulls_v; CREATE INDEX nulls_v ON nulls USING exact (v);
		INSERT INTO nulls SELECT i FROM generate_series(1, 400) i; DELETE FROM nulls WHERE id % 40 = 0');
	$node->safe_psql('postgres', 'VACUUM (FREEZE, INDEX_CLEANUP ON) nulls');
	my $path = index_pages($node, 'nulls_v');
	my $blocks = page_kinds($path)->{$kind};
	$node->stop;
	flip_bytes($path, $_ * $page + 24 + 4, 8) for @$blocks;
	$node->start;
	for my $statement ("SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM nulls ORDER BY v <-> '[1,2,3]') s", "SELECT pgwarp_check('nulls_v')")
	{
		my ($rc, $out, $err) = $node->psql('postgres', $statement);
		like($err, qr/ERROR:.*(corrupt|checksum)/i, "unplaced rows, $names{$kind}: refused by $statement");
	}
	$node->safe_psql('postgres', 'REINDEX INDEX nulls_v');
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM nulls ORDER BY v <-> '[1,2,3]') s"),
		$node->safe_psql('postgres', 'SELECT count(*) FROM nulls'), "unplaced rows, $names{$kind}: REINDEX mends");
}

$node->stop;
done_testing();
