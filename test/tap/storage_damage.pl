# INSERT, VACUUM and pgwarp_index_info on damaged pages: an error that names index and block, never a crash.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = 8192;
my $node = new_cluster('damage', 'autovacuum' => 'off');

load_grid($node, 'items', 3000);
$node->safe_psql('postgres', "CREATE INDEX items_v ON items USING exact (v);
	INSERT INTO items SELECT 3000 + i, array_fill(i, ARRAY[16])::vector FROM generate_series(1, 1000) i;
	DELETE FROM items WHERE id % 2 = 0");
my $path = index_pages($node, 'items_v');
$node->stop;
my $intact = slurp_binary($path);

sub slurp_binary
{
	my ($file) = @_;
	open my $handle, '<:raw', $file or die "$file: $!";
	local $/;
	return scalar <$handle>;
}

sub write_binary
{
	my ($file, $bytes) = @_;
	open my $handle, '>:raw', $file or die "$file: $!";
	print {$handle} $bytes;
	close $handle;
	return;
}

# Blocks whose trailer has this kind (see src/postgres/storage/page.h).
sub blocks_of
{
	my ($kind) = @_;
	return grep { (unpack 'S', substr($intact, $_ * $page + $page - 8, 2)) == $kind } 0 .. length($intact) / $page - 1;
}

my %statements = (
	insert => "BEGIN; INSERT INTO items VALUES (-1, array_fill(1, ARRAY[16])::vector); ROLLBACK",
	vacuum => 'VACUUM (INDEX_CLEANUP ON) items',
	info => "SELECT * FROM pgwarp_index_info('items_v')");
my @kinds = (
	[ 1, 'metapage', 'insert', 'vacuum', 'info' ],
	[ 2, 'directory', 'vacuum', 'info' ],
	[ 3, 'array', 'vacuum' ],
	[ 4, 'log head', 'insert', 'vacuum', 'info' ],
	[ 5, 'log entries', 'vacuum', 'info' ],
	[ 6, 'log values', 'insert' ],
	[ 7, 'tombstones', 'vacuum', 'info' ]);

# Damage every page of a kind, and try the statements that read it.
sub try_damage
{
	my ($name, $bytes, @refused) = @_;
	write_binary($path, $bytes);
	$node->start;
	for my $what (@refused)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statements{$what}");
		like($err, qr/ERROR:  XX002: index "items_v" is corrupted at block \d+/, "$name: $what is refused");
		like($err, qr/HINT:  Please REINDEX it/, "$name: $what hints at REINDEX");
	}
	$node->stop;
	return;
}

for my $case (@kinds)
{
	my ($kind, $name, @refused) = @$case;
	my @blocks = blocks_of($kind);
	ok(@blocks > 0, "$name: there are such pages");
	my ($zeroed, $flipped) = ($intact, $intact);
	for my $block (@blocks)
	{
		substr($zeroed, $block * $page, $page) = "\0" x $page;
		# Of value pages these statements read the trailer alone.
		my $offset = $kind == 6 ? $page - 24 : 24 + 9;
		substr($flipped, $block * $page + $offset, 1) ^= "\x10";
	}
	try_damage("$name zeroed", $zeroed, @refused);
	try_damage("$name altered", $flipped, @refused);
}
try_damage('truncated to nothing', '', 'insert', 'vacuum', 'info');
try_damage('truncated to the metapage', substr($intact, 0, $page), 'insert', 'vacuum', 'info');

write_binary($path, $intact);
$node->start;
$node->safe_psql('postgres', $statements{vacuum});
is($node->safe_psql('postgres', "SELECT live_rows FROM pgwarp_check('items_v')"),
	$node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'put back, it is well');
same_rows($node, 'items', 'and answers');
$node->stop;
done_testing();
