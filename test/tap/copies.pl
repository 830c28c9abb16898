# Copies of a cluster and of its databases made while the engine runs: base backups, pg_rewind, templates, tablespaces.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpDatabase;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $primary = new_cluster('original', 'autovacuum' => 'off', 'jit' => 'off', 'wal_log_hints' => 'on', 'max_wal_senders' => 6,
	'wal_keep_size' => "'1GB'", 'allow_in_place_tablespaces' => 'on', 'restart_after_crash' => 'on');
fill_database($primary, 'postgres');
whole($primary, 'postgres', 'original');

# Inserts, deletes, VACUUM and merges in the background, by pgbench.
my $load = $primary->basedir . '/load.sql';
append_to_file($load, q{\set n random(10000, 2000000000)
INSERT INTO items SELECT :n, 'load', array_agg(random() * 10)::real[]::vector, (random() * 2000000000)::int::bit(32) FROM generate_series(1, 16) ON CONFLICT DO NOTHING;
DELETE FROM items WHERE ctid = (SELECT ctid FROM items WHERE id > 9999 LIMIT 1);
});
my $upkeep = $primary->basedir . '/upkeep.sql';
append_to_file($upkeep, qq{CALL pgwarp_merge('items_exact');
VACUUM (INDEX_CLEANUP ON) items;
CALL pgwarp_merge('items_ivfadc');
CALL pgwarp_merge('items_tree');
CALL pgwarp_merge('items_graph');
CALL pgwarp_merge('items_bits');
CALL pgwarp_merge('items_bit_graph');
});
# Run something under this load on a node, which has to go on without an error.
sub under_load
{
	my ($node, $name, $action) = @_;
	my @printed = ('', '');
	my @running = map { IPC::Run::start([ 'pgbench', '-n', '-c', $_->[1], '-t', $_->[2], '-f', $_->[0], $node->connstr('postgres') ], '>', $_->[3], '2>&1') }
		([ $load, 2, 1_000_000, \$printed[0] ], [ $upkeep, 1, 1_000_000, \$printed[1] ]);
	$action->();
	$_->signal('TERM') for @running;
	$_->finish for @running;
	unlike("@printed", qr/ERROR|FATAL|PANIC/, "$name: the load has no error") or diag "@printed";
	return;
}

# A base backup prints nothing, passes verification, and answers.
sub base_backup
{
	my ($node, $name) = @_;
	my $path = $node->backup_dir . '/' . $name;
	my ($printed, $warned) = run_command([ 'pg_basebackup', '-D', $path, '-d', $node->connstr('postgres'), '-c', 'fast', '-X', 'stream', '--no-sync' ]);
	is($printed . $warned, '', "$name: pg_basebackup has nothing to say");
	command_ok([ 'pg_verifybackup', $path ], "$name: pg_verifybackup");
	return;
}
mkdir $primary->backup_dir;
under_load($primary, 'first', sub { base_backup($primary, 'first') });
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'first');
$copy->start;
whole($copy, 'postgres', 'copy');
isnt(engine_pid($copy), engine_pid($primary), 'the copy has an engine of its own');
$copy->stop;

# A standby is promoted while the old primary goes on, and that one follows it after pg_rewind.
base_backup($primary, 'second');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'second', has_streaming => 1);
$standby->start;
whole($standby, 'postgres', 'standby');
$primary->wait_for_catchup($standby);
$standby->promote;
# The load may write more than wal_keep_size while pg_rewind runs, so a slot keeps what the old primary needs.
$standby->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('rewound', true)");
under_load($primary, 'old primary', sub { $standby->safe_psql('postgres', 'INSERT INTO items ' . row_values(5001, 5100)) });
whole($primary, 'postgres', 'old primary');
$primary->safe_psql('postgres', "REINDEX INDEX items_exact; CREATE INDEX lost ON items USING exact (v)");
under_load($standby, 'new primary', sub {
	$primary->stop;
	$standby->safe_psql('postgres', "CHECKPOINT; CALL pgwarp_merge('items_codes')");
	my ($printed, $warned) = run_command([ 'pg_rewind', '-D', $primary->data_dir, '--source-server', $standby->connstr('postgres'), '--no-sync' ]);
	like($warned, qr/Done!/, 'pg_rewind ends');
	unlike($warned, qr/warning|error/i, 'pg_rewind has nothing to warn of');
	$primary->append_conf('postgresql.conf', 'port = ' . $primary->port);
	$primary->append_conf('postgresql.conf', "unix_socket_directories = '" . $primary->host . "'");
	$primary->enable_streaming($standby);
	$primary->set_standby_mode;
	$primary->start; });
$standby->wait_for_catchup($primary, 'replay', $standby->lsn('insert'));
$standby->safe_psql('postgres', "SELECT pg_drop_replication_slot('rewound')");
($primary, $standby) = ($standby, $primary);
sub sql { my ($db, @statements) = @_; return $primary->safe_psql($db, join(' ', @statements)) }
whole($primary, 'postgres', 'new primary');
same_answers_as(answers($primary, 'postgres'), $standby, 'postgres', 'old primary, rewound');
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'lost'"), 0, 'an index made since is gone');

# Databases made from a template have the same generations in their indexes, and go their own ways.
# A database on the standby has the rows of the primary's.
sub on_both
{
	my ($db, $name, $expected) = @_;
	same_answers_as($expected // answers($primary, $db), $primary, $db, $name);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(answers($standby, $db), answers($primary, $db), "$name: the standby's answers");
	return;
}
sql('postgres', 'CREATE DATABASE origin');
fill_database($primary, 'origin');
on_both('origin', 'template');
my $expected = answers($primary, 'origin');
for my $strategy ('wal_log', 'file_copy')
{
	# Rows in the logs that are not yet in the engine are copied too.
	sql('origin', 'INSERT INTO items', row_values($strategy eq 'wal_log' ? (2201, 2220) : (2221, 2240)));
	sql('postgres', "CREATE DATABASE $strategy TEMPLATE origin STRATEGY $strategy");
	$expected = answers($primary, $strategy);
	on_both($strategy, $strategy);
	is(answers($primary, 'origin'), $expected, "$strategy: the template's answers");
}
sql('wal_log', 'INSERT INTO items', row_values(3001, 3050), "; DELETE FROM items WHERE id BETWEEN 100 AND 150; VACUUM (INDEX_CLEANUP ON) items; INSERT INTO items", row_values(3051, 3060));
sql('file_copy', 'DELETE FROM items WHERE id BETWEEN 3 AND 60; VACUUM (INDEX_CLEANUP ON) items; INSERT INTO items', row_values(4001, 4020), "; CALL pgwarp_merge('items_exact')");
on_both('wal_log', 'the first copy, changed');
on_both('file_copy', 'the second copy, changed');
is(answers($primary, 'origin'), $expected, 'the template, not changed');
isnt(answers($primary, 'wal_log'), $expected, 'the copies, changed');
sql('postgres', 'DROP DATABASE wal_log; CREATE DATABASE wal_log TEMPLATE origin STRATEGY wal_log');
on_both('wal_log', 'a copy made again', $expected);

# Tablespaces: an index, a table, all of a kind, a database; and back to where an older copy is resident.
sql('postgres', "CREATE TABLESPACE elsewhere LOCATION ''");
$expected = answers($primary, 'origin');
for my $place ('elsewhere', 'pg_default')
{
	sql('origin', "ALTER INDEX items_exact SET TABLESPACE $place; ALTER INDEX items_codes SET TABLESPACE $place");
	on_both('origin', "indexes in $place", $expected);
	is(sql('origin', "BEGIN; ALTER INDEX items_ivfadc SET TABLESPACE elsewhere; ALTER INDEX items_ivfadc SET TABLESPACE pg_default; ROLLBACK; SELECT count(*) FROM pgwarp_check('items_ivfadc', true)"), 1, 'a move rolled back');
	sql('origin', "ALTER TABLE items SET TABLESPACE $place; ALTER INDEX ALL IN TABLESPACE " . ($place eq 'elsewhere' ? 'pg_default' : 'elsewhere') . " SET TABLESPACE $place");
	on_both('origin', "table in $place", $expected);
}
sql('origin', 'REINDEX (TABLESPACE elsewhere, CONCURRENTLY) TABLE items');
on_both('origin', 'indexes made again elsewhere');
my $next = 6001;
for my $place ('elsewhere', 'pg_default', 'elsewhere')
{
	$expected = answers($primary, 'wal_log');
	sql('postgres', "ALTER DATABASE wal_log SET TABLESPACE $place");
	on_both('wal_log', "database in $place", $expected);
	sql('wal_log', "DELETE FROM items WHERE id IN (SELECT id FROM items WHERE id > 8 ORDER BY id LIMIT 40); VACUUM (INDEX_CLEANUP ON) items; INSERT INTO items", row_values($next, $next + 24));
	$next += 25;
}
on_both('wal_log', 'database moved and changed');
sql('postgres', 'CREATE DATABASE moved TEMPLATE wal_log TABLESPACE pg_default STRATEGY file_copy');
on_both('moved', 'a copy in another tablespace', answers($primary, 'wal_log'));
sql('postgres', "DROP DATABASE $_") for 'wal_log', 'file_copy', 'moved';

# A restarted engine logs nothing about databases that are gone.
kill 'KILL', engine_pid($primary);
whole($primary, 'origin', 'after all');
$standby->promote;
whole($standby, 'origin', 'promoted');
whole($standby, 'postgres', 'promoted');
unlike(slurp_file($_->logfile), qr/inconsistent page|PANIC|TRAP|pgwarp.*(corrupt|wrong)/, $_->name . ': log') for $primary, $standby;
$_->stop for $standby, $primary;
done_testing();
