# Settings in sessions that have not used pgwarp yet: without and with the library preloaded, as README says.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('settings');
if ($ENV{PGWARP_DESTDIR})
{
	chomp(my $libraries = `pg_config --pkglibdir`);
	$node->append_conf('postgresql.conf', "dynamic_library_path = '$ENV{PGWARP_DESTDIR}$libraries:\$libdir'");
}
$node->safe_psql('postgres', "CREATE TABLE items (v vector(2)); INSERT INTO items SELECT ARRAY[i, -i]::vector FROM generate_series(1, 200) i; CREATE INDEX items_v ON items USING graph (v)");
my $search = "SET enable_seqscan = off; SELECT count(*) FROM (SELECT v FROM items ORDER BY v <-> '[1,1]' LIMIT 3) s";

# A statement in a new session: its output or its error.
sub fresh
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);
	return $rc == 0 ? $out . $err : $err;
}

# Without: a setting is a placeholder until the library is loaded, which then says that a value is wrong.
like(fresh('SHOW pgwarp.recall'), qr/unrecognized configuration parameter "pgwarp.recall"/, 'not loaded: SHOW fails');
like(fresh("SET pgwarp.recall = 'high'; $search"), qr/WARNING:  invalid value for parameter "pgwarp.recall": "high".*3|3.*WARNING:  invalid value for parameter "pgwarp.recall": "high"/s, 'not loaded: a wrong value is told by the first search');
like(fresh("SET pgwarp.recal = 0.9; $search"), qr/WARNING:  invalid configuration parameter name "pgwarp.recal", removing it/, 'not loaded: so is a misspelt name');
is(fresh("SET pgwarp.recall = 0.9; $search; SHOW pgwarp.recall"), "3\n0.9", 'not loaded: a right value is taken over');

for my $way ('session_preload_libraries', 'shared_preload_libraries')
{
	$node->append_conf('postgresql.conf', "$way = 'pgwarp'");
	$node->restart;
	is(fresh('SHOW pgwarp.recall'), '0', "$way: SHOW");
	like(fresh("SET pgwarp.recall = 'high'"), qr/ERROR:  invalid value for parameter "pgwarp.recall": "high"/, "$way: a wrong value");
	like(fresh('SET pgwarp.recall = 1.5'), qr/ERROR:  1.5 is outside the valid range/, "$way: a value out of range");
	like(fresh('SET pgwarp.recal = 0.9'), qr/ERROR:  invalid configuration parameter name "pgwarp.recal"/, "$way: a misspelt name");
	like(fresh("ALTER SYSTEM SET pgwarp.engine_memory = 'much'"), qr/ERROR:  invalid value for parameter "pgwarp.engine_memory"/, "$way: ALTER SYSTEM with a wrong value");
	is(fresh("ALTER SYSTEM SET pgwarp.engine_memory = '64MB'"), '', "$way: ALTER SYSTEM");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT setting = '64' FROM pg_settings WHERE name = 'pgwarp.engine_memory'") or die 'no reload';
	is(fresh('SHOW pgwarp.engine_memory'), '64MB', "$way: takes effect with a reload");
	is(fresh($search), 3, "$way: searches");
	is(fresh("SELECT host_memory_allowed <= 64 * 1048576 FROM pgwarp_status_server"), 't', "$way: the engine has that memory") if ($ENV{PGWARP_DEVICE} // '') eq 'cpu';
	is(fresh('ALTER SYSTEM RESET pgwarp.engine_memory'), '', "$way: ALTER SYSTEM RESET");
	$node->append_conf('postgresql.conf', "$way = ''");
}
$node->stop;
done_testing();
