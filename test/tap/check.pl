# pgwarp_check finds what is wrong between an index and its table, and in lists that no search reads.
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

# What pgwarp_check says.
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
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) items');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'after VACUUM');

behind_its_back("INSERT INTO items VALUES (5000, array_fill(1, ARRAY[16])::vector)");
like(check('true'), qr/row \(\d+,\d+\) of table "items" is not in index "items_v"/, 'a row that the index lacks');
like(check('false'), qr/^\d+$/, 'which only a look at the table tells');
$node->safe_psql('postgres', 'REINDEX INDEX items_v');
is(check('true'), $node->safe_psql('postgres', 'SELECT count(*) FROM items'), 'REINDEX mends that');

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
