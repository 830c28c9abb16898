# Delta logs under many writers, VACUUM, a standby and crashes: every row that the heap has is in the index, once.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $primary = new_cluster('log', 'autovacuum' => 'off', 'max_wal_senders' => 4, 'wal_keep_size' => "'4GB'");

sub sql { return $primary->safe_psql('postgres', @_) }

# Rows of an index that aren't dead.
sub live_rows
{
	my ($node, $index) = @_;
	return $node->safe_psql('postgres', "SELECT live_rows FROM pgwarp_check('$index')");
}

# VACUUM passes over a page that the checkpointer or the background writer is writing, unless it freezes.
sub vacuum { sql("VACUUM (FREEZE, INDEX_CLEANUP ON) $_") for 'narrow', 'wide' }

# A value of `wide` spans pages.
load_grid($primary, 'narrow', 3000);
sql('CREATE INDEX narrow_v ON narrow USING exact (v);
	CREATE SEQUENCE numbers START 100001;
	CREATE TABLE wide (id int, v vector(3000)); ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
	CREATE INDEX wide_v ON wide USING exact (v vector_cosine_ops);
	CREATE UNLOGGED TABLE unlogged (id int, v vector(3)); CREATE INDEX unlogged_v ON unlogged USING exact (v)');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('log_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $script = $primary->basedir . '/write.sql';
append_to_file($script, q{\set n random(1, 3000)
INSERT INTO narrow VALUES (nextval('numbers'), array_fill(:n, ARRAY[16])::vector);
INSERT INTO narrow VALUES (nextval('numbers'), NULL);
INSERT INTO wide VALUES (:n, array_fill(:n - 10, ARRAY[3000])::vector), (:n % 20, CASE WHEN :n % 2 = 0 THEN array_fill(0, ARRAY[3000])::vector END);
INSERT INTO unlogged VALUES (:n, array_fill(:n, ARRAY[3])::vector);
DELETE FROM narrow WHERE id IN (:n, currval('numbers') - 51);
DELETE FROM wide WHERE id = :n % 20 AND random() < 0.5;
});

# Start eight writers.
sub start_writers
{
	my ($seconds, $output) = @_;
	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', $seconds, '-f', $script, $primary->connstr('postgres') ],
		'>', $output, '2>&1');
}

my $output = '';
my $writers = start_writers(5, \$output);
for my $round (1 .. 3)
{
	usleep(1_500_000);
	vacuum();
}
ok($writers->finish, 'eight writers beside VACUUM') or diag $output;
vacuum();
for my $table ('narrow', 'wide', 'unlogged')
{
	is(live_rows($primary, "${table}_v"), sql("SELECT count(*) FROM $table"), "$table: rows of index and heap");
}

my $info = "SELECT rows, delta_rows, dead_rows, generation, options->'unplaced_rows' FROM";
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
for my $index ('narrow_v', 'wide_v')
{
	is($standby->safe_psql('postgres', "$info pgwarp_index_info('$index')"), sql("$info pgwarp_index_info('$index')"),
		"$index: standby equals primary");
}
unlike(slurp_file($_->logfile), qr/inconsistent page|PANIC/, $_->name . ': replay is consistent') for $primary, $standby;
$standby->stop;

# Crashes between any two records of an append.
for my $round (1 .. 3)
{
	my $lost = '';
	my $interrupted = start_writers(30, \$lost);
	usleep(1_200_000);
	$primary->stop('immediate');
	$interrupted->finish;
	$primary->start;
	is(live_rows($primary, 'unlogged_v'), 0, "crash $round: UNLOGGED is empty");
	sql("INSERT INTO narrow VALUES (nextval('numbers'), array_fill(1, ARRAY[16])::vector);
		INSERT INTO wide VALUES (1, array_fill(1, ARRAY[3000])::vector); DELETE FROM narrow WHERE id = (SELECT min(id) FROM narrow);
		DELETE FROM wide WHERE id = (SELECT min(id) FROM wide)");
	vacuum();
	is(live_rows($primary, 'narrow_v'), sql('SELECT count(*) FROM narrow'), "crash $round: narrow rows of index and heap");
	is(live_rows($primary, 'wide_v'), sql('SELECT count(*) FROM wide'), "crash $round: wide rows of index and heap");
}
cmp_ok(sql("SELECT sum((options->>'unplaced_rows')::int) FROM unnest('{narrow_v,wide_v}'::regclass[]) i, pgwarp_index_info(i)"), '>', 100, 'some have no place');
same_rows($primary, 'narrow', 'answers after crashes');

$primary->stop;
done_testing();
