# Indexes that are dropped leave the engine's memory, whichever way they go: DROP, TRUNCATE, REINDEX, DROP DATABASE, a
# tablespace, a temporary table. And a dropped index never keeps another one from being loaded.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_cluster('dropped');

sub sql { return $node->safe_psql('postgres', @_) }

# How many mirrors the engine holds, of all databases.
sub mirrors { return sql("SELECT count(filenode) FROM pgwarp_status_engine()") }

my $search = 'SET enable_seqscan = off; SELECT id FROM %1$s ORDER BY v <-> (SELECT v FROM %1$s WHERE id = 3) LIMIT 1';

sub search
{
	my ($table, $database) = @_;
	return $node->safe_psql($database // 'postgres', sprintf($search, $table));
}

sub becomes
{
	my ($count, $name) = @_;
	my $until = time + 10;
	usleep(50_000) while mirrors() != $count && time < $until;
	is(mirrors(), $count, $name);
	return;
}

load_grid($node, 'kept', 500);
sql('CREATE INDEX kept_v ON kept USING exact (v)');
is(search('kept'), 3, 'an index that stays');
becomes(1, 'is resident');

for my $method (methods($node))
{
	load_grid($node, 'items', 500);
	sql("CREATE INDEX items_v ON items USING $method (v)");
	search('items');
	becomes(2, "$method: resident");
	sql('REINDEX INDEX items_v');
	becomes(1, "$method: REINDEX");
	search('items');
	sql('TRUNCATE items');
	becomes(1, "$method: TRUNCATE");
	sql("INSERT INTO items SELECT * FROM kept");
	search('items');
	becomes(2, "$method: resident again");
	sql('DROP INDEX items_v');
	becomes(1, "$method: DROP INDEX");
	sql("CREATE INDEX items_v ON items USING $method (v)");
	search('items');
	becomes(2, "$method: resident once more");
	sql('DROP TABLE items');
	becomes(1, "$method: DROP TABLE");
}

# A tablespace.
my $folder = $node->basedir . '/space';
mkdir $folder or die $!;
sql("CREATE TABLESPACE space LOCATION '$folder'");
load_grid($node, 'items', 500);
sql('CREATE INDEX items_v ON items USING exact (v) TABLESPACE space');
search('items');
becomes(2, 'an index in a tablespace');
usleep(2_500_000);
is(mirrors(), 2, 'stays');
sql('ALTER INDEX items_v SET TABLESPACE pg_default');
becomes(1, 'until it is moved');
sql('DROP TABLE items');

# A database.
sql('CREATE DATABASE other');
$node->safe_psql('other', "CREATE EXTENSION pgwarp; CREATE TABLE items (id int, v vector(16));
	INSERT INTO items SELECT i, array_fill(i, ARRAY[16])::vector FROM generate_series(1, 500) i;
	CREATE INDEX ON items USING exact (v)");
is(search('items', 'other'), 3, 'an index of another database');
becomes(2, 'is resident');
sql('DROP DATABASE other');
becomes(1, 'until its database is dropped');

# A temporary table, whose files carry the session's number.
my $session = $node->background_psql('postgres');
$session->query_safe('SET enable_seqscan = off; CREATE TEMP TABLE temporary AS SELECT * FROM kept;
	CREATE INDEX ON temporary USING exact (v)');
$session->query_safe('SELECT id FROM temporary ORDER BY v <-> (SELECT v FROM temporary WHERE id = 3) LIMIT 1');
becomes(2, 'an index of a temporary table');
usleep(2_500_000);
is(mirrors(), 2, 'stays');
$session->quit;
becomes(1, 'as long as its session');
is(search('kept'), 3, 'what stays is still searched');
$node->stop;

# Memory for little more than one index: after REINDEX the next search is answered at once.
$node->append_conf('postgresql.conf', "pgwarp.engine_memory = '10MB'");
$node->start;
sql("CREATE TABLE wide (id int, v vector(1000));
	INSERT INTO wide SELECT i, (SELECT array_agg(hashint8(i::bigint * 1009 + d) % 1000) FROM generate_series(1, 1000) d)::real[]::vector
	FROM generate_series(1, 1000) i;
	CREATE INDEX wide_v ON wide USING exact (v)");
is(search('wide'), 3, 'an index of more than half the memory');
for my $round (1 .. 3)
{
	sql('REINDEX INDEX wide_v');
	my ($rc, $out, $err) = $node->psql('postgres', sprintf($search, 'wide'));
	is($out, 3, "round $round: answered after REINDEX");
	is($err, '', "round $round: without an error");
}

# An index that is larger than the whole memory. The memory of a GPU has no such limit: the CPU serves what it lacks.
SKIP:
{
	skip 'a GPU serves', 4 if sql('SELECT device FROM pgwarp_status_server') =~ /^cuda/;
	$node->append_conf('postgresql.conf', "pgwarp.engine_memory = '1MB'");
	$node->restart;
	my ($rc, $out, $err) = $node->psql('postgres', sprintf($search, 'wide'));
	like($err, qr/ERROR:  pgwarp-engine: the index takes \d+ MiB of memory, and all indexes may take 1 MiB/, 'too large an index: its size');
	like($err, qr/HINT:  Raise pgwarp\.engine_memory\. Until then, SET enable_indexscan = off/, 'what helps');
	like($err, qr/CONTEXT:  loading index "wide_v" into pgwarp-engine/, 'its name');
	is(sql('SET enable_indexscan = off; SELECT id FROM wide ORDER BY v <-> (SELECT v FROM wide WHERE id = 3) LIMIT 1'), 3, 'and it helps');
}

$node->stop;
done_testing();
