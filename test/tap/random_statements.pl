# Random statements about random tables have the same answers with and without an index, in whatever way they are run.
#   PGWARP_STATEMENT_SECONDS   how long (40)
#   PGWARP_SEED                of the first round (unset: another one each time, which is told)
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../torture";
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StatementTorture;
use Test::More;

my $seconds = $ENV{PGWARP_STATEMENT_SECONDS} || 40;
my $seed = $ENV{PGWARP_SEED} // time % 1_000_000_000;
diag("PGWARP_SEED=$seed");

my $node = new_cluster('statements', 'jit' => 'off', 'autovacuum' => 'off', 'log_statement' => 'none', 'log_error_verbosity' => 'verbose',
	'fsync' => 'off', 'max_connections' => 20);
my $torture = StatementTorture->new(connection => $node->connstr('postgres'), report => sub { diag($_[0]) });
my $least = 20;
my $counts = $torture->run($seed, $seconds, $least);
$torture->close;
note "$_: $counts->{$_}" for sort keys %$counts;
is($torture->{failures}, 0, "$counts->{statements} statements in $counts->{rounds} rounds have one answer each (seed $seed)");
cmp_ok($counts->{compared} // 0, '>', $least, "@{[ $counts->{compared} // 0 ]} answers were compared");
cmp_ok($counts->{'timed out'} // 0, '<=', 2 + $counts->{statements} / 50, 'hardly any statement took too long');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP|wrong distance|wrong included/, 'nothing worse in the log');

# The same with sessions that write, VACUUM and checkpoints beside it, within one snapshot.
$seconds = $ENV{PGWARP_STATEMENT_SECONDS} || 15;
$torture = StatementTorture->new(connection => $node->connstr('postgres'), report => sub { diag($_[0]) }, writers => 3);
$counts = $torture->run($seed + 1_000_000, $seconds);
$torture->close;
note "with writers: $_: $counts->{$_}" for sort keys %$counts;
is($torture->{failures}, 0, "$counts->{statements} statements beside writers have one answer each (seed @{[ $seed + 1_000_000 ]})");
cmp_ok($counts->{written} // 0, '>', 0, 'the writers wrote');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP|wrong distance|wrong included|XX00\d/, 'nothing worse in the log then either');
$node->stop;
done_testing();
