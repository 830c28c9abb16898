# Properties of searches that hold without knowing their answers: TLP (a predicate, its negation and its being null
# divide the rows), NoREC (a filter keeps the rows for which it is true), the limits of approximate answers, pages as
# parts of one sequence, and row security.
package SearchProperties;

use strict;
use warnings FATAL => 'all';

use List::Util qw(max min);
use RandomChoice;
use RandomStatements;
use RandomTables;

my $forced = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off';

# Run a query with the index preferred, or for the truth: (rows, error text). `ground` is { session, round, begin,
# truth }, the last being settings under which no index of pgwarp is used.
sub run_on
{
	my ($ground, $which, $sql, $settings) = @_;
	my $session = $ground->{session};
	$session->run("$ground->{begin}; " . ($which eq 'truth' ? "$ground->{truth}; " : "SET LOCAL search_path = indexed, public; $forced; ") . ($settings // ''));
	my ($rows, $errors) = $session->run($sql);
	$session->run('ROLLBACK');
	return ($rows, $errors);
}

# A table, a distance and a predicate.
sub random_filter
{
	my ($round) = @_;
	my $statement = RandomStatements::new_statement($round);
	my $table = pick(@{ $round->{tables} });
	my $distance = "s.v $table->{operator} '" . RandomTables::random_operand($table) . "'";
	# A predicate that differs between evaluations does not divide the rows. Rows within a distance are those that an
	# approximate search finds.
	my ($predicate, $unfit);
	do
	{
		$statement->{params} = [];
		$predicate = RandomStatements::condition($statement, $table, 's', $distance);
		$unfit = $predicate =~ /random|search_again/ || ($table->{method} ne 'exact' && index($predicate, $table->{operator}) >= 0);
	} while $unfit;
	$statement->{sql} = $predicate;
	return ($table, $distance, RandomStatements::render($statement));
}

# Each of the three parts has only rows of its own, and together they are all.
sub check_partitions
{
	my ($ground) = @_;
	my ($table, $distance, $predicate) = random_filter($ground->{round});
	my $search = sub { return "SELECT s.uid FROM $table->{name} s WHERE ($_[0]) ORDER BY $distance" };
	my $whole = $search->('true');
	my @parts = map { $search->($_) } $predicate, "NOT ($predicate)", "($predicate) IS NULL";
	my ($all, $errors) = run_on($ground, 'index', $whole);
	return "TLP: $errors\n$whole" if $errors ne '';
	my @found;
	for my $part (@parts)
	{
		my ($rows, $failed) = run_on($ground, 'index', $part);
		return "TLP: $failed\n$part" if $failed ne '';
		push @found, @$rows;
	}
	return join(' ', sort @found) eq join(' ', sort @$all) ? () : 'TLP: ' . @$all . ' rows, but ' . @found . " in parts\n" . join(";\n", $whole, @parts);
}

# The number of rows that pass in a search is the number for which the predicate is true.
sub check_filter
{
	my ($ground) = @_;
	my ($table, $distance, $predicate) = random_filter($ground->{round});
	my $optimised = "SELECT count(*) FROM (SELECT FROM $table->{name} s WHERE ($predicate) ORDER BY $distance LIMIT 100000) f";
	my $plain = "SELECT coalesce(sum(CASE WHEN ($predicate) THEN 1 ELSE 0 END), 0) FROM $table->{name} s";
	my ($got, $errors) = run_on($ground, 'index', $optimised);
	my ($expected, $failed) = run_on($ground, 'index', $plain, 'SET LOCAL enable_indexscan = off');
	return "NoREC: $errors$failed\n$optimised;\n$plain" if "$errors$failed" ne '';
	return $got->[0] eq $expected->[0] ? () : "NoREC: $got->[0] rows pass, the filter is true for $expected->[0]\n$optimised;\n$plain";
}

# A function that notes its rows gets none that a policy hides, also where it is cheap.
sub check_policy
{
	my ($ground) = @_;
	my ($table) = grep { $_->{policy} } @{ $ground->{round}{tables} } or return ();
	my $distance = "v $table->{operator} '" . RandomTables::operand_text($table) . "'";
	my ($allowed, $errors) = run_on($ground, 'truth', "SELECT uid FROM $table->{name}", 'SET LOCAL ROLE knn_reader');
	my $far = pick(0.5, 1, 3);
	my $sql = "SELECT uid FROM $table->{name} WHERE " . pick('leak(uid)', "leak(uid) AND $distance < $far", "$distance < $far AND leak(uid)", 'NOT leak(uid)')
		. " ORDER BY $distance LIMIT @{[ pick(1, 10, 1000) ]}";
	my %may = map { $_ => 1 } @$allowed;
	my ($rows, $notices) = run_on($ground, 'index', $sql, 'SET LOCAL client_min_messages = notice; SET LOCAL ROLE knn_reader');
	my @hidden = grep { !$may{$_} } $notices =~ /leaked <(\d+)>/g;
	return "a policy hides row $hidden[0], which a function of the filter saw\nSET ROLE knn_reader;\n$sql;" if @hidden;
	return $notices =~ /ERROR/ ? "$notices\n$sql" : ();
}

# Rows by group: { group => [ [ distance, uid ], ... ] }
sub by_group
{
	my %groups;
	for my $row (@_) { my ($group, $d, $uid) = split /\|/, $row; push @{ $groups{$group} }, [ $d, $uid ] }
	return \%groups;
}

# The faults of one approximate answer, where @$passing is every row that passes in order.
sub judge_answer
{
	my ($answer, $passing, $k, $offset, $within) = @_;
	my %distance = map { $_->[1] => $_->[0] } @$passing;
	my $wanted = max(0, min($k, @$passing - $offset));
	# A bound of the distance ends a search, which may have missed rows within it.
	return @$answer . " rows instead of $wanted" if @$answer > $wanted || (@$answer < $wanted && !$within);
	my (%seen, $last);
	for my $row (@$answer)
	{
		my ($d, $uid) = @$row;
		return "distance $d after $last" if defined $last && $d < $last;
		return "row $uid twice" if $uid ne '~' && $seen{$uid}++;
		return "row $uid, which does not pass" if $uid ne '~' && !exists $distance{$uid};
		return "row $uid at distance $d instead of $distance{$uid}" if $uid ne '~' && $distance{$uid} ne $d;
		$last = $d;
	}
	return '';
}

# The answer is in order, has no row twice, all passing rows or the wanted number, and true distances.
sub check_approximate
{
	my ($ground) = @_;
	my $statement = RandomStatements::approximate_statement($ground->{round});
	my $text = RandomStatements::render($statement);
	my ($k, $offset) = (pick(1, 3, 10, 10, 50, 200), pick(1, 5, 30));
	$offset = 0 if $text !~ /OFFSET/;
	my ($with_ties) = $text =~ /WITH TIES/;
	my ($table) = values %{ $statement->{tables} };
	my ($conditions) = $text =~ / WHERE (.*) ORDER BY /s;
	my $within = index($conditions // '', $table->{operator}) >= 0;
	my $all = $text =~ s/\{k\}/1000000/r =~ s/\{o\}/0/r;
	my $asked = $text =~ s/\{k\}/$k/r =~ s/\{o\}/$offset/r;
	my ($passing, $error) = run_on($ground, 'truth', $all);
	return () if $error ne '';
	my ($rows, $errors) = run_on($ground, 'index', $asked, pick('', '', 'SET LOCAL pgwarp.knn_batch = off', 'SET LOCAL pgwarp.recall = 0.5'));
	return "$errors\n$asked" if $errors ne '';
	my ($answers, $truths) = (by_group(@$rows), by_group(@$passing));
	for my $group (sort keys %$truths)
	{
		# Rows at the last distance come in addition.
		my $wrong = $with_ties ? '' : judge_answer($answers->{$group} // [], $truths->{$group}, $k, $offset, $within);
		return "search $group: $wrong\n$asked;" if $wrong ne '';
	}
	return ();
}

# The nearest k rows are the first of the nearest k', and pages cut the same sequence.
sub check_pages
{
	my ($ground) = @_;
	my $table = pick(grep { !$_->{ties} } @{ $ground->{round}{tables} }) or return ();
	my $placed = RandomTables::placed_condition($table, 's');
	my $search = "SELECT uid FROM $table->{name} s " . ($placed && "WHERE $placed ") . "ORDER BY v $table->{operator} '" . RandomTables::random_operand($table) . "'";
	my $most = pick(12, 40, 130, 1200);
	my ($long, $errors) = run_on($ground, 'index', "$search LIMIT $most");
	return "pages: $errors\n$search" if $errors ne '';
	for my $from (0, between(1, 10), between(1, $most - 1))
	{
		my $page = "$search LIMIT @{[ between(1, $most - $from) ]} OFFSET $from";
		my ($rows, $failed) = run_on($ground, 'index', $page);
		return "pages: $failed\n$page" if $failed ne '';
		my @part = grep { defined } @$long[ $from .. $from + $#$rows ];
		return "pages: $page has other rows than that part of\n$search LIMIT $most;" if "@part" ne "@$rows";
	}
	return ();
}

1;
