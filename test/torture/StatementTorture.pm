# Round after round: random tables, then random statements about them, each compared with and without the index.
package StatementTorture;

use strict;
use warnings FATAL => 'all';

use ConcurrentWriters;
use PsqlSession;
use RandomChoice;
use RandomStatements;
use RandomTables;
use SearchProperties;
use StatementOracle;
use Time::HiRes 'time';

# StatementTorture->new(connection => ..., log => file handle, report => function that is called with each failure,
#     statements => of a round, variants => of a statement, ignore => pattern of failures without interest,
#     writers => sessions that change the tables meanwhile, all_pages => whether pages of approximate answers are checked,
#     settings => SQL that is run before each statement)
sub new
{
	my ($class, %self) = @_;
	my $self = bless { statements => 60, variants => 4, counts => {}, failures => 0, writers => 0, %self }, $class;
	$self->{session} = PsqlSession->new($self->{connection}, $self->{log});
	$self->{locker} = PsqlSession->new($self->{connection}, $self->{log});
	my ($made) = $self->{session}->rows("SELECT to_regproc('leak') IS NOT NULL");
	if ($made eq 'f') { $self->{session}->rows($_) for RandomTables::database_ddl() }
	return $self;
}

sub close { my ($self) = @_; $_->close for @$self{qw(session locker)}; return }

# Report a failure, with all that is needed to reproduce it.
sub fail
{
	my ($self, $seed, @wrong) = @_;
	@wrong = grep { !/$self->{ignore}/ } @wrong if defined $self->{ignore};
	# Searches in functions that are called for each row take minutes on a busy machine.
	my @late = grep { /57014/ } @wrong;
	$self->{counts}{'timed out'} += @late;
	@wrong = grep { !/57014/ } @wrong;
	return if !@wrong;
	$self->{failures} += @wrong;
	$self->{report}->("seed $seed: $_") for @wrong;
	$self->{report}->("-- tables of seed $seed:\n" . join '', map { s/\s*\n\s*/ /gr . ";\n" } splice @{ $self->{ddl} });
	return;
}

# How a round's indexes are tested: exact ones alone, all methods with every graph and list searched, or as they are.
sub random_kind { return pick('exact', 'exact', 'exhaustive', 'approximate') }

# The source of true answers: the tables without index, or, when others write, one snapshot that a session holds.
sub ground
{
	my ($self, $round) = @_;
	my %ground = (session => $self->{session}, round => $round, begin => 'BEGIN', truth => 'SET LOCAL search_path = plain, public');
	return \%ground if !$self->{writers};
	my ($snapshot) = $self->{locker}->rows('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_export_snapshot()');
	$ground{begin} = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot'";
	$ground{truth} = 'SET LOCAL search_path = indexed, public; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL pgwarp.knn_batch = off';
	return \%ground;
}

# One comparison of the round's kind: returns the failures.
sub compare_once
{
	my ($self, $kind, $round) = @_;
	my $ground = $self->ground($round);
	return SearchProperties::check_pages($ground) if ($self->{all_pages} || $kind eq 'exact') && chance($kind eq 'approximate' ? 0.3 : 0.03);
	return SearchProperties::check_approximate($ground) if $kind eq 'approximate' && chance(0.7);
	return SearchProperties::check_partitions($ground) if chance(0.1);
	return SearchProperties::check_filter($ground) if chance(0.1);
	return SearchProperties::check_policy($ground) if chance(0.1);
	return () if $kind eq 'approximate';
	my $oracle = StatementOracle->new(%$ground, locker => $self->{locker}, counts => $self->{counts}, exhaustive => $kind eq 'exhaustive', settings => $self->{settings}, concurrent => $self->{writers} > 0);
	my $statement;
	do { $statement = RandomStatements::random_statement($round) } while $self->{writers} && $statement->{shape} =~ /^(?:locking|writing)$/;
	return $oracle->compare($statement, $self->{variants});
}

# One round, all of it determined by the seed.
sub round
{
	my ($self, $seed, $until) = @_;
	srand($seed);
	my $kind = random_kind();
	my $round = RandomTables::make_round($kind);
	$self->{ddl} = [ RandomTables::round_ddl($round) ];
	print { $self->{log} } "-- seed $seed\n" if $self->{log};
	$self->{session}->rows($_) for @{ $self->{ddl} };
	my $writers = $self->{writers} ? ConcurrentWriters->start($self->{connection}, $round, $self->{writers}) : undef;
	for (1 .. $self->{statements})
	{
		my @wrong = $self->compare_once($kind, $round);
		++$self->{counts}{statements};
		$self->fail($seed, @wrong);
		return if grep { /the connection ended/ } @wrong;
		$writers->pump if $writers;
		last if time() > $until;
	}
	return if !$writers;
	$self->{locker}->run('ROLLBACK');
	my ($written, $errors) = $writers->stop($self->{session});
	$self->{counts}{written} += $written;
	$self->fail($seed, "a writer: $errors") if $errors ne '';
	return;
}

# Rounds until the time is up: returns counts of the work and the failures, by name. Rounds of approximate searches compare
# no answers, and a busy machine ends only one in the time: rounds follow until more than `least` answers are compared, or
# ten times the seconds are over.
sub run
{
	my ($self, $seed, $seconds, $least) = @_;
	my $until = time() + $seconds;
	my $last = time() + 10 * $seconds;
	my $rounds = 0;
	do {
		$self->round($seed + $rounds++, $until);
		my $few = ($self->{counts}{compared} // 0) <= ($least // -1);
		$until = time() + $seconds if $few && time() >= $until && time() < $last;
	} while (time() < $until && $self->{failures} < ($self->{most_failures} // 20));
	$self->{counts}{rounds} = $rounds;
	return $self->{counts};
}

1;
