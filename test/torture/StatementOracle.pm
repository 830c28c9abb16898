# Whether a statement has one answer: without an index, with it, with it disabled, and in every way of running it.
package StatementOracle;

use strict;
use warnings FATAL => 'all';

use List::Util qw(max min shuffle);
use PsqlSession;
use RandomChoice;
use RandomStatements;

my $forced = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off';
my %variants = (
	'the index preferred' => { settings => $forced },
	'plans by cost' => { settings => '' },
	'the index disabled' => { settings => 'SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off' },
	'without batches' => { settings => "$forced; SET LOCAL pgwarp.knn_batch = off" },
	'small batches' => { settings => "$forced; SET LOCAL pgwarp.batch_size = 3" },
	'a generic plan' => { settings => "$forced; SET LOCAL plan_cache_mode = force_generic_plan", run => \&run_prepared },
	'a cursor' => { settings => $forced, run => \&run_cursor },
	'a created table' => { settings => $forced, run => \&run_created },
	'no hash and merge joins' => { settings => "$forced; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_material = off" },
	'no nested loops' => { settings => "$forced; SET LOCAL enable_nestloop = off; SET LOCAL enable_memoize = off" },
	'parallel plans' => { settings => "$forced; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0" },
	'little memory' => { settings => "$forced; SET LOCAL work_mem = '64kB'" },
	'partitions by pairs' => { settings => "$forced; SET LOCAL enable_partitionwise_join = on; SET LOCAL enable_partitionwise_aggregate = on" },
	'statistics taken' => { settings => $forced, run => \&run_explained },
	'cancelled' => { settings => $forced, run => \&run_cancelled });

# Every graph and list searched, so that approximate indexes answer exactly.
my $exhaustive = 'SET LOCAL pgwarp.graph_ef_search = 20000; SET LOCAL pgwarp.ivfadc_probes = 65536; SET LOCAL pgwarp.refine_factor = 10000; SET LOCAL pgwarp.matchcount_candidates = 65536; SET LOCAL pgwarp.pqtree_candidates = 65536';

sub variant_names { return sort keys %variants }

# StatementOracle->new(session => ..., locker => ..., counts => {}, begin => SQL that begins a transaction,
#     truth => settings under which no index of pgwarp is used, settings => more of them, concurrent => whether others write)
sub new { my ($class, %self) = @_; return bless {%self}, $class }

sub bare { my ($statement) = @_; return RandomStatements::render($statement) }

# Each of these runs a statement within an open transaction: (rows, error text).
sub run_prepared
{
	my ($self, $statement) = @_;
	my $types = join ', ', map { $_->{type} =~ s/\(.*//r } @{ $statement->{params} };
	my $values = join ', ', map { "'$_->{value}'" } @{ $statement->{params} };
	my $execute = 'EXECUTE one' . ($values eq '' ? '' : "($values)");
	my ($rows, $errors) = $self->{session}->run('PREPARE one' . ($types eq '' ? '' : " ($types)") . ' AS ' . RandomStatements::render($statement, 1));
	($rows, $errors) = $self->{session}->run($execute) if $errors eq '';
	# A statement that writes runs once: a second run would find other rows.
	($rows, $errors) = $self->{session}->run($execute) if $errors eq '' && !$statement->{writes};
	return ($rows, $errors);
}

# Piece by piece, with other searches and a subtransaction that is undone in between.
sub run_cursor
{
	my ($self, $statement) = @_;
	return $self->{session}->run(bare($statement)) if $statement->{writes};
	my ($table) = sort { $a->{name} cmp $b->{name} } values %{ $statement->{tables} };
	my $other = "SELECT uid FROM $table->{name} ORDER BY v $table->{operator} '@{[ RandomTables::random_operand($table) ]}' LIMIT 3";
	my $fetch = sub { return "FETCH $_[0] FROM c" };
	my @steps = ($fetch->(between(1, 4)), $other, 'SAVEPOINT s', $fetch->(between(1, 20)), !$statement->{locks} && !$self->{concurrent} && chance(0.3) ? "DELETE FROM $table->{name}" : $other, 'ROLLBACK TO s', $fetch->('ALL'));
	my ($rows, $errors) = $self->{session}->run('DECLARE c ' . pick('NO SCROLL ', '') . 'CURSOR FOR ' . bare($statement));
	my @all;
	for my $step (@steps)
	{
		last if $errors ne '';
		($rows, $errors) = $self->{session}->run($step);
		push @all, @$rows if $step =~ /^FETCH/;
	}
	return (\@all, $errors);
}

sub run_created
{
	my ($self, $statement) = @_;
	return $self->{session}->run(bare($statement)) if $statement->{writes} || $statement->{sql} =~ /^WITH moved/;
	# Columns of a statement may have equal names, those of a table not.
	my ($columns) = $self->{session}->run(bare($statement) . " \\gdesc\n");
	my ($rows, $errors) = $self->{session}->run('CREATE TEMP TABLE created (' . join(', ', map { "c$_" } 1 .. @$columns) . ') AS ' . bare($statement));
	return $errors eq '' ? $self->{session}->run('TABLE created') : ($rows, $errors);
}

# EXPLAIN ANALYZE first, whose nodes are counted.
sub run_explained
{
	my ($self, $statement) = @_;
	my ($plan, $errors) = $self->{session}->run('SAVEPOINT s; EXPLAIN (ANALYZE, VERBOSE, BUFFERS, TIMING OFF) ' . bare($statement));
	return ([], $errors) if $errors ne '';
	my %seen;
	for my $line (@$plan) { $seen{$1} = 1 if $line =~ /(Custom Scan \(\w+\)|Index (?:Only )?Scan using \S*_v_idx)/ }
	my @nodes = map { s/ using .*//r } sort keys %seen;
	++$self->{counts}{$_} for @nodes;
	return $self->{session}->run('ROLLBACK TO s; ' . bare($statement));
}

# First with a time limit that may end it anywhere; then the right answer is expected all the same.
sub run_cancelled
{
	my ($self, $statement) = @_;
	my ($rows, $errors) = $self->{session}->run('SAVEPOINT s; SET LOCAL statement_timeout = ' . between(1, 6) . '; ' . bare($statement));
	return ([], $errors) if $errors ne '' && PsqlSession::state_of($errors) ne '57014';
	++$self->{counts}{cancelled} if $errors ne '';
	# The limit is in force until then, and may end this as well.
	for (1 .. 10) { last if ($self->{session}->run('ROLLBACK TO s'))[1] eq '' }
	return $self->{session}->run(bare($statement));
}

# Run a statement in a transaction that is rolled back: (rows, error text, SQL of the settings).
sub run_variant
{
	my ($self, $statement, $variant, $role) = @_;
	my $settings = join '; ', $variant->{truth} ? $self->{truth} : 'SET LOCAL search_path = indexed, public', $variant->{settings} || (), $self->{exhaustive} ? $exhaustive : (), $self->{settings} || (), $role ne '' ? "SET LOCAL ROLE $role" : ();
	$self->{session}->run("$self->{begin}; $settings");
	my ($rows, $errors) = $variant->{run} ? $variant->{run}->($self, $statement) : $self->{session}->run(bare($statement));
	$self->{session}->run('ROLLBACK; DEALLOCATE ALL');
	return ($rows, $errors, $settings);
}

# The first difference of two answers, or an empty string.
sub difference
{
	my ($statement, $expected, $got) = @_;
	return @$expected . ' rows without the index, ' . @$got . ' with it' if @$expected != @$got;
	if ($statement->{ordered})
	{
		for my $i (0 .. $#$expected)
		{
			my ($one, $other) = map { (split /\|/, $_)[0] // '' } $expected->[$i], $got->[$i];
			return "row $i is $expected->[$i] without the index, $got->[$i] with it" if $one ne $other;
		}
	}
	my ($one, $other) = ([ sort @$expected ], [ sort @$got ]);
	for my $i (0 .. $#$one) { return "of all rows, sorted: $one->[$i] without the index, $other->[$i] with it" if $one->[$i] ne $other->[$i] }
	return '';
}

# Whether an error is a fault of pgwarp itself, in any way of running a statement.
sub is_fault { my ($errors) = @_; return $errors =~ /XX00\d|wrong distance|wrong included|the connection ended|PANIC|TRAP|WARNING/ }

# Run a statement in several ways and compare: returns descriptions of differences.
sub compare
{
	my ($self, $statement, $most) = @_;
	my $role = chance(0.35) ? 'knn_reader' : '';
	my $residue = between(0, 3);
	my @locked = $statement->{locks} ? map { ("plain.$_", "indexed.$_") } keys %{ $statement->{tables} } : ();
	$self->{locker}->run(join '; ', 'BEGIN', map { "SELECT FROM $_ WHERE uid % 4 = $residue FOR UPDATE" } @locked) if @locked;
	my @wrong = $self->compare_variants($statement, $role, $most);
	$self->{locker}->run('ROLLBACK') if @locked;
	return @wrong;
}

sub compare_variants
{
	my ($self, $statement, $role, $most) = @_;
	# A search in a function that is called for each row may take minutes.
	my ($expected, $error) = $self->run_variant($statement, { truth => 1, settings => 'SET LOCAL statement_timeout = 5000' }, $role);
	return "without an index: $error" if is_fault($error);
	if ($error ne '') { ++$self->{counts}{ 'refused ' . PsqlSession::state_of($error) }; $self->{last_refused} = $error; return () }
	my @names = ('the index preferred', (shuffle(grep { $_ ne 'the index preferred' } variant_names()))[0 .. $most - 2]);
	my @wrong;
	for my $name (@names)
	{
		++$self->{counts}{compared};
		my ($got, $errors, $settings) = $self->run_variant($statement, $variants{$name}, $role);
		my $what = $errors ne '' ? $errors : difference($statement, $expected, $got);
		push @wrong, "$name" . ($role ne '' ? " as $role" : '') . ": $what\n$settings;\n" . bare($statement) . ';' if $what ne '';
		last if $errors =~ /the connection ended/;
	}
	return @wrong;
}

1;
