# Sessions that change the tables of schema `indexed` while statements are compared: rows, VACUUM, merges, checkpoints.
package ConcurrentWriters;

use strict;
use warnings FATAL => 'all';

use File::Temp ();
use IPC::Run ();
use RandomChoice;
use RandomTables;

my $name = 'torture_writer';

# One statement of a writer's.
sub random_write
{
	my ($table) = @_;
	my $value = RandomTables::value_of($table);
	my $target = "indexed.$table->{name}";
	my @insert = map { "INSERT INTO $target (uid, kind, n, txt, v) SELECT nextval('uids'), floor(random() * 7)::int, floor(random() * 100)::int, 'w', $value FROM generate_series(1, $_)" } 1, 8;
	return pick(@insert, "UPDATE $target SET v = $value WHERE uid = (SELECT max(uid) - @{[ between(0, 300) ]} FROM $target)", "UPDATE $target SET n = n + 1 WHERE uid % 97 = @{[ between(0, 96) ]}",
		"UPDATE $target SET kind = @{[ between(0, 6) ]} WHERE uid % 151 = @{[ between(0, 150) ]}", "DELETE FROM $target WHERE uid % 61 = @{[ between(0, 60) ]}",
		"BEGIN; $insert[1]; SAVEPOINT s; DELETE FROM $target; ROLLBACK TO s; COMMIT", "BEGIN; $insert[1]; ROLLBACK");
}

# Statements that the first writer runs instead now and then.
sub random_upkeep
{
	my ($table) = @_;
	my $merge = "SELECT format('CALL pgwarp_merge(%L)', i.indexrelid::regclass) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
		WHERE a.amhandler::text LIKE '%pgwarp%' AND c.relkind = 'i' AND c.relnamespace = 'indexed'::regnamespace ORDER BY random() LIMIT 1 \\gexec\n";
	return pick("VACUUM (INDEX_CLEANUP ON) indexed.$table->{name}", "VACUUM indexed.$table->{name}", 'CHECKPOINT', "ANALYZE indexed.$table->{name}", $merge, $merge);
}

# Start writers on a round's tables.
sub start
{
	my ($class, $connection, $round, $count) = @_;
	my $self = bless { writers => [], scripts => [] }, $class;
	for my $number (1 .. $count)
	{
		my $script = File::Temp->new;
		for (1 .. 3000)
		{
			my $table = pick(@{ $round->{tables} });
			print {$script} $number == 1 && chance(0.3) ? random_upkeep($table) : random_write($table), ";\nSELECT pg_sleep(0.005) \\g /dev/null\n";
		}
		$script->close;
		my %writer = (out => '', err => '');
		$writer{handle} = IPC::Run::start([ 'psql', '-XAt', '-d', "$connection application_name=$name", '-v', 'VERBOSITY=verbose', '-f', $script->filename ], '<', \undef, '>', \$writer{out}, '2>', \$writer{err});
		push @{ $self->{writers} }, \%writer;
		push @{ $self->{scripts} }, $script;
	}
	return $self;
}

# Read the writers' output now and then: they wait for their reader.
sub pump { my ($self) = @_; for my $writer (@{ $self->{writers} }) { $writer->{handle}->pump_nb if $writer->{handle}->pumpable } return }

# End the writers: (statements done, text of unexpected errors).
sub stop
{
	my ($self, $session) = @_;
	$session->rows("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = '$name'");
	my ($done, $wrong) = (0, '');
	for my $writer (@{ $self->{writers} })
	{
		$writer->{handle}->finish;
		$done += () = $writer->{out} =~ /^(?:INSERT|UPDATE|DELETE|VACUUM|CALL|CHECKPOINT)/mg;
		$wrong .= join '', map { "$_\n" } grep { /XX\d\d\d|PANIC|wrong distance/ } split /\n/, $writer->{err};
	}
	return ($done, $wrong);
}

1;
