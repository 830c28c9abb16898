# A session that has few file descriptors left: a search raises a clear error or is answered, INSERT always goes on, and
# nothing that raises an error leaves half a connection to the engine behind.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# The least number that a server takes: extensions may have a third of it, less the server's own descriptors.
my $node = new_cluster('descriptors', 'max_files_per_process' => 64, 'max_connections' => 60);
plan skip_all => 'dblink is not installed' if $node->psql('postgres', 'CREATE EXTENSION dblink') != 0;

load_grid($node, 'items', 500);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
wait_for_engine($node, 'items');
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 3) LIMIT 1';

# Statements of one session after it has opened this many connections by dblink; the messages of those that failed.
my $inserted = 0;
sub run_with_connections
{
	my ($count) = @_;
	my $open = join '', map { "SELECT dblink_connect('c$_', \$\$" . $node->connstr('postgres') . "\$\$);\n" } 1 .. $count;
	my ($rc, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off;\n$open"
			. "\\echo opened\n$search;\n\\echo :SQLSTATE\n"
			. "INSERT INTO items SELECT $inserted + 1001, v FROM items WHERE id = 5;\n\\echo :SQLSTATE\n"
			. "$search;\n\\echo :SQLSTATE\nSELECT 'alive';\n",
		on_error_stop => 0);
	$inserted++;
	return if $err =~ /could not establish connection/;
	my ($states) = $out =~ /opened\n(.*)/s;
	return ($states, $err);
}

my ($answered, $refused) = (0, 0);
for my $count (0 .. 40)
{
	my ($states, $err) = run_with_connections($count);
	last if !defined $states;
	if ($states eq "3\n00000\n00000\n3\n00000\nalive")
	{
		$answered++;
		next;
	}
	is($states, "53000\n00000\n53000\nalive", "$count connections: searches are refused, INSERT and the session go on");
	like($err, qr/no file descriptors left to connect to pgwarp-engine/, "$count connections: the error says why");
	$refused++;
}
cmp_ok($answered, '>', 0, 'sessions with enough descriptors are answered');
cmp_ok($refused, '>', 0, 'sessions with too few were met');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $postmaster, 'the server did not restart');
unlike(slurp_file($node->logfile), qr/terminated by signal 11/, 'no session crashed');
is($node->safe_psql('postgres', 'SELECT count(*) FROM items WHERE id > 1000'), $inserted, 'every INSERT is there');

$node->stop;
done_testing();
