# The engine's socket: another uid is refused, and a malformed message ends its sender's connection alone.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IO::Socket::UNIX;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOCK_STREAM);
use Test::More;

my $node = new_cluster('socket');
load_grid($node, 'items', 1000);
$node->safe_psql('postgres', 'CREATE INDEX items_v ON items USING exact (v)');
my $engine = wait_for_engine($node, 'items');
my $path = $node->data_dir . '/pg_stat_tmp/pgwarp.sock';
my $search = "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 3) LIMIT 1";

my @stat = stat($path);
is(sprintf('%04o', $stat[2] & 07777), '0600', 'the socket is its owner\'s alone');

# Connect with a path short enough for sun_path, by way of the working directory.
sub connect_engine
{
	chdir $node->data_dir or die $!;
	return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => 'pg_stat_tmp/pgwarp.sock');
}

# The engine closes a connection that sends this, within a second.
sub is_dropped
{
	my ($bytes, $name) = @_;
	my $socket = connect_engine() or die "connect: $!";
	local $SIG{PIPE} = 'IGNORE';
	syswrite $socket, $bytes;
	my $got = '';
	eval {
		local $SIG{ALRM} = sub { die "timeout\n" };
		alarm 5;
		while (sysread $socket, my $more, 65536) { $got .= $more }
		alarm 0;
	};
	is($@, '', "$name: the sender is dropped");
	is($node->safe_psql('postgres', $search), 3, "$name: others are served");
	return;
}

my $hello = sub { pack('L S S L L Q', 0x50475750, 1, 0, shift, 0, 1) };
is_dropped("GET / HTTP/1.1\r\n\r\n" . 'x' x 100, 'not our protocol');
is_dropped($hello->(0xffffffff), 'a length beyond every limit');
is_dropped($hello->(3) . 'abc', 'a hello too short');
is_dropped(pack('L S S L L Q', 0x50475750, 2, 0, 0, 0, 1), 'a search before hello');
is_dropped(pack('L S S L L Q', 0x50475750, 999, 0, 0, 0, 1), 'an unknown message');
is_dropped(join('', map { chr(int(rand(256))) } 1 .. 5000), 'noise');
is(engine_pid($node), $engine, 'the engine lived through it');

# Another uid: only root can become one.
SKIP:
{
	skip 'not root', 1 if $> != 0;
	my $pid = fork // die $!;
	if ($pid == 0)
	{
		$) = 65534; $> = 65534;
		my $socket = connect_engine();
		exit($socket ? 1 : 0);
	}
	waitpid $pid, 0;
	is($?, 0, 'another uid cannot connect');
}

$node->stop;
done_testing();
