# Random statements about the tables of RandomTables, of which the answer is determined by the rows.
#
# A statement is { sql, params, ordered, locks, writes }: {p1} ... in sql stand for params, {k} and {o} for the LIMIT and
# OFFSET of a search; `ordered` says that the first column is a distance by which rows are sorted.
package RandomStatements;

use strict;
use warnings FATAL => 'all';

use RandomChoice;
use RandomTables;

# A parameter of a statement: its place in the text.
sub param
{
	my ($statement, $type, $value) = @_;
	push @{ $statement->{params} }, { type => $type, value => $value };
	return '{p' . @{ $statement->{params} } . '}';
}

# The text with literals, or with the numbers of parameters.
sub render
{
	my ($statement, $numbered) = @_;
	my $params = $statement->{params};
	return $statement->{sql} =~ s/\{p(\d+)\}/$numbered ? "\$$1::$params->[$1 - 1]{type}" : "'$params->[$1 - 1]{value}'::$params->[$1 - 1]{type}"/ger;
}

sub new_statement
{
	my ($round) = @_;
	return { round => $round, params => [], sql => '' };
}

# The query of a search: a constant, a parameter, or columns of `asked` where that is an outer row.
sub operand
{
	my ($statement, $table, $outer) = @_;
	if ($outer)
	{
		return "$outer.b" if $table->{type} eq 'bit';
		my $operand = pick("$outer.v", "$outer.v", "$outer.w", "$outer.v + $outer.w", "l2_normalize($outer.w)");
		return $table->{ties} || $table->{type} eq 'vector' || chance(0.5) ? $operand : "($operand)::halfvec";
	}
	my $text = RandomTables::operand_text($table);
	my $type = RandomTables::column_type($table);
	my $column = $table->{type} eq 'bit' ? 'b' : 'v';
	return pick(param($statement, $type, $text), param($statement, $type, $text), "'$text'",
		"(SELECT $column FROM asked WHERE id = 1)", "(SELECT $column FROM asked ORDER BY id LIMIT 1)");
}

# A condition on a table's row.
sub condition
{
	my ($statement, $table, $row, $distance, $outer) = @_;
	my $far = $table->{type} eq 'bit' ? pick(0.6, 12) : pick(0, 0.5, 1, 2);
	my @conditions = ("$row.kind = @{[ between(0, 7) ]}", "$row.kind < @{[ between(0, 7) ]}", "$row.n % @{[ pick(2, 10, 50) ]} = 1", "$row.kind IS NULL",
		"$row.txt LIKE @{[ pick(q('a%'), q('%b'), q('%')) ]}", "$distance < $far", "$distance <= " . param($statement, 'float8', $far), "$far > $distance",
		"NOT ($row.kind = 3)", "$row.kind IN (1, 3, 4)", "passes($row.n, @{[ between(0, 4) ]})", "random() >= 0",
		"$row.n BETWEEN " . param($statement, 'int', between(0, 60)) . ' AND 80', "$row.n > @{[ between(0, 110) ]} OR $row.kind = 2",
		"EXISTS (SELECT FROM asked e WHERE e.kind = $row.kind)", "$row.kind IN (SELECT e.kind FROM asked e WHERE e.id < 4)",
		"$row.kind NOT IN (SELECT e.kind FROM asked e WHERE e.id < 3)", "$row.n > (SELECT avg(e.id) FROM asked e)",
		"search_again('$table->{name}', '$table->{operator}', '" . RandomTables::random_operand($table) . "', $row.n) > 30");
	push @conditions, "$row.kind = $outer.kind", "$row.n % 7 = $outer.id % 7", "$row.uid <> $outer.id" if $outer;
	return join pick(' AND ', ' AND ', ' OR '), map { '(' . pick(@conditions) . ')' } 1 .. pick(1, 1, 2);
}

# A search: columns d, uid, kind, n. For tables with ties, columns that ties leave undetermined are null: rows without a
# distance are equal too.
sub search
{
	my ($statement, %about) = @_;
	my $table = $about{table} // pick(@{ $statement->{round}{tables} });
	my $outer = $about{outer};
	my $row = 's' . ++$statement->{names};
	my $operand = operand($statement, $table, $outer);
	my $distance = "$row.v $table->{operator} $operand";
	my $second = "$row.v $table->{operator} " . operand($statement, $table, $outer);
	my $order = pick($distance, $distance, $distance, $distance, "$distance, $row.uid", "$distance, $second", "($operand) $table->{operator} $row.v", "$distance DESC",
		"$row.kind, $distance", "($distance) + 0", "$distance NULLS LAST", "$distance, $distance");
	$order = $distance if $about{plain_order};
	my $ties = $order !~ /\.uid$/ && chance(0.2) && !$about{locking} ? 1 : 0;
	my $unplaced = $table->{nulls} && chance(0.5) && !$about{plain_order};
	my $shown = !($table->{ties} || $unplaced) || $order =~ /\.uid$/ || ($ties && $order eq $distance);
	my @where = grep { $_ ne '' } $unplaced ? '' : RandomTables::placed_condition($table, $row), chance(0.05) ? "$row.v IS NOT NULL" : '';
	push @where, $about{condition} =~ s/ROW/$row/gr if $about{condition};
	push @where, condition($statement, $table, $row, $distance, $outer) if chance(0.55);
	@where = reverse @where if chance(0.5);
	my $from = chance(0.08) && $table->{layout} eq 'flat' && !$about{locking} ? "$table->{name} $row TABLESAMPLE SYSTEM (100)" : "$table->{name} $row";
	my $limit = $ties ? 'FETCH FIRST {k} ROWS WITH TIES' : chance(0.9) || $about{limited} ? 'LIMIT {k}' : '';
	$limit .= ' OFFSET {o}' if !$ties && chance(0.2);
	$limit =~ s/\{k\}/chance(0.15) && !$ties ? param($statement, 'int', pick(1, 4, 30)) : pick(1, 2, 3, 5, 10, 10, 40, 120, 500)/e if !$about{keep_limit};
	$limit =~ s/\{o\}/pick(1, 2, 15, 70)/e if !$about{keep_limit};
	my $columns = $shown ? "$row.uid, $row.kind, $row.n" : 'NULL::int AS uid, NULL::int AS kind, NULL::int AS n';
	$statement->{ordered} = $order =~ /^\Q$distance\E(?:, \S+\.uid|, \Q$distance\E| NULLS LAST)?$/;
	$statement->{tables}{ $table->{name} } = $table;
	my $locking = $about{locking} && !$ties ? " $about{locking}" : '';
	return "SELECT $distance AS d, $columns FROM $from" . (@where ? ' WHERE ' . join(' AND ', map { "($_)" } @where) : '') . " ORDER BY $order $limit$locking";
}

# Rows that a join begins with, under the name `asked`.
sub outer_rows
{
	return pick('asked', 'asked', 'asked', '(SELECT * FROM asked ORDER BY id DESC) asked', '(SELECT * FROM asked WHERE id > 2 OFFSET 0) asked',
		'(SELECT a.id, b.kind, a.v, b.w, b.b FROM asked a JOIN asked b ON a.id = b.kind + 1) asked',
		'(SELECT * FROM asked UNION ALL SELECT id + 100, kind, w, v, b FROM asked WHERE kind = 1) asked');
}

sub join_to
{
	my ($statement) = @_;
	my $found = search($statement, outer => 'asked');
	my $joined = pick("CROSS JOIN LATERAL ($found) n", "LEFT JOIN LATERAL ($found) n ON true", "JOIN LATERAL ($found) n ON n.d < 1.5", "LEFT JOIN LATERAL ($found) n ON n.d > 0.3");
	return 'SELECT asked.id, n.d, n.uid, n.kind FROM ' . outer_rows() . " $joined" . pick('', '', ' WHERE asked.id < 8', ' WHERE asked.kind = 1');
}

# A condition with a search in a sub-select.
sub search_condition
{
	my ($statement) = @_;
	my $found = search($statement, outer => 'asked');
	return pick("asked.kind IN (SELECT s.kind FROM ($found) s)", "asked.kind NOT IN (SELECT s.kind FROM ($found) s WHERE s.kind IS NOT NULL)",
		"EXISTS (SELECT FROM ($found) s WHERE s.kind = asked.kind)", "NOT EXISTS (SELECT FROM ($found) s WHERE s.d < 0.4)",
		"(SELECT min(s.d) FROM ($found) s) < 0.5", "asked.kind < ANY (SELECT s.kind FROM ($found) s)", "asked.kind >= ALL (SELECT s.kind FROM ($found) s WHERE s.kind < 4)",
		"asked.id = ANY (ARRAY(SELECT s.uid % 15 FROM ($found) s))", "CASE WHEN asked.id % 3 <> 0 THEN (SELECT count(*) FROM ($found) s) > 3 END");
}

# The forms of statements: name => function that gives the text.
my %shapes = (
	search => sub { my ($statement) = @_; return search($statement, limited => chance(0.9)) },
	locking => sub {
		my ($statement) = @_;
		$statement->{locks} = chance(0.6);
		return search($statement, locking => $statement->{locks} ? pick('FOR UPDATE SKIP LOCKED', 'FOR SHARE SKIP LOCKED') : pick('FOR UPDATE', 'FOR NO KEY UPDATE'));
	},
	lateral => sub { return join_to($_[0]) },
	lateral_sorted => sub { return 'SELECT * FROM (' . join_to($_[0]) . ') j ORDER BY d, id, uid, kind LIMIT ' . pick(1, 7, 50) },
	lateral_twice => sub {
		my ($statement) = @_;
		my ($one, $two) = (search($statement, outer => 'asked'), search($statement, outer => 'asked', condition => chance(0.5) ? 'ROW.n <> n.n' : ''));
		return 'SELECT asked.id, n.d, m.d AS e FROM ' . outer_rows() . " CROSS JOIN LATERAL ($one) n LEFT JOIN LATERAL ($two) m ON true";
	},
	grouped => sub { return 'SELECT j.id, count(*), min(j.d), max(j.d), array_agg(j.uid ORDER BY j.uid) FROM (' . join_to($_[0]) . ') j GROUP BY j.id' },
	sub_selects => sub {
		my ($statement) = @_;
		my ($one, $two) = map { search($statement, outer => 'asked', limited => 1) } 1 .. 2;
		return 'SELECT asked.id, ' . pick("ARRAY(SELECT s.d FROM ($one) s)", "(SELECT max(s.d) FROM ($one) s), (SELECT count(*) FROM ($two) s)",
			"(SELECT s.d FROM ($one) s ORDER BY s.d LIMIT 1)", "ARRAY(SELECT s.uid FROM ($one) s ORDER BY s.uid), ARRAY(SELECT s.d FROM ($two) s ORDER BY 1)")
			. ' FROM ' . outer_rows() . pick('', '', ' WHERE asked.id > 3', ' ORDER BY asked.id, asked.w LIMIT 4');
	},
	condition => sub {
		my ($statement) = @_;
		return 'SELECT asked.id, asked.kind FROM ' . outer_rows() . ' WHERE ' . join ' AND ', pick('true', 'asked.id > 1', '10 / asked.id > 0'), map { search_condition($statement) } 1 .. pick(1, 1, 2);
	},
	unordered => sub { return 'SELECT count(*), min(s.d), max(s.d), min(s.uid) FROM (' . search($_[0]) . ') s' },
	set_operation => sub {
		my ($statement) = @_;
		my ($one, $two) = (search($statement), search($statement));
		return "SELECT d, uid, kind FROM ($one) a " . pick('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'EXCEPT ALL') . " SELECT d, uid, kind FROM ($two) b";
	},
	appended => sub {
		my ($statement) = @_;
		my ($one, @others) = grep { $_->{type} ne 'bit' } @{ $statement->{round}{tables} };
		return search($statement) if !@others;
		my ($text, $k) = (RandomTables::random_operand({ %$one, ties => 0 }), pick(1, 4, 20));
		$statement->{tables}{ $_->{name} } = $_ for $one, @others;
		return "SELECT d FROM (" . join(' UNION ALL ', map { "SELECT v $_->{operator} '$text' AS d FROM $_->{name}" } $one, pick(@others)) . ") u ORDER BY d LIMIT $k";
	},
	distinct => sub {
		my ($statement) = @_;
		my $found = search($statement);
		return pick("SELECT DISTINCT kind FROM ($found) s", "SELECT DISTINCT ON (kind) kind, d FROM ($found) s ORDER BY kind, d", "SELECT DISTINCT d, kind FROM ($found) s ORDER BY d, kind LIMIT 5");
	},
	distinct_distances => sub {
		my ($statement) = @_;
		my $table = pick(@{ $statement->{round}{tables} });
		$statement->{tables}{ $table->{name} } = $table;
		my ($one, $two) = map { "v $table->{operator} " . operand($statement, $table) } 1 .. 2;
		my $where = chance(0.3) ? 'WHERE v IS NOT NULL' : '';
		return pick("SELECT DISTINCT $one, $two FROM $table->{name} $where ORDER BY 1, 2 LIMIT 7", "SELECT $one, rank() OVER (ORDER BY $one, $two) FROM $table->{name} $where ORDER BY 1, 2 LIMIT 9",
			"SELECT $one, $two FROM $table->{name} $where ORDER BY $one, $two LIMIT 6", "SELECT count(*), $one AS d FROM $table->{name} $where GROUP BY d ORDER BY d LIMIT 5");
	},
	window => sub {
		my ($statement) = @_;
		my $found = search($statement);
		return pick("SELECT d, rank() OVER (ORDER BY d) FROM ($found) s", "SELECT d, kind, row_number() OVER (PARTITION BY kind ORDER BY d) FROM ($found) s",
			"SELECT * FROM (SELECT d, dense_rank() OVER (ORDER BY d) AS r FROM ($found) s) w WHERE r <= 3", "SELECT d, lag(d) OVER (ORDER BY d), count(*) OVER () FROM ($found) s");
	},
	with => sub {
		my ($statement) = @_;
		my ($found, $kept) = (search($statement), pick('MATERIALIZED', 'NOT MATERIALIZED'));
		return pick("WITH c AS $kept ($found) SELECT a.d, b.kind FROM c a JOIN c b USING (uid)", "WITH c AS $kept ($found) SELECT d, (SELECT count(*) FROM c) FROM c WHERE kind < 5",
			"WITH c AS $kept (" . join_to($statement) . ') SELECT id, max(d) FROM c GROUP BY id');
	},
	walk => sub {
		my ($statement) = @_;
		my ($table) = grep { $_->{type} eq 'vector' && !$_->{ties} && !$_->{duplicates} } @{ $statement->{round}{tables} };
		return search($statement) if !$table;
		$statement->{tables}{ $table->{name} } = $table;
		return "WITH RECURSIVE walk AS (SELECT 1 AS step, v AS at, 0 AS uid FROM asked WHERE id < 3 UNION ALL SELECT step + 1, n.v, n.uid FROM walk CROSS JOIN LATERAL
			(SELECT v, uid FROM $table->{name} w WHERE @{[ RandomTables::placed_condition($table, 'w') || 'true' ]} AND uid <> walk.uid ORDER BY v $table->{operator} walk.at LIMIT 1) n WHERE step < 6) SELECT step, uid FROM walk";
	},
	joined => sub {
		my ($statement) = @_;
		my $found = search($statement);
		return pick("SELECT s.d, a.id FROM ($found) s JOIN asked a ON a.kind = s.kind", "SELECT a.id, s.d FROM asked a LEFT JOIN ($found) s ON s.uid = a.id",
			"SELECT a.id FROM asked a WHERE a.kind IN (SELECT s.kind FROM ($found) s)", "SELECT s.d FROM ($found) s WHERE NOT EXISTS (SELECT FROM asked a WHERE a.kind = s.kind)");
	},
	nested => sub {
		my ($statement) = @_;
		my $inner = 'SELECT asked.id, asked.kind FROM asked WHERE asked.id = o.id AND ' . search_condition($statement);
		return pick("SELECT o.id FROM asked o WHERE EXISTS ($inner)", "SELECT o.id, (SELECT count(*) FROM ($inner) i) FROM asked o", "SELECT o.id, i.kind FROM asked o LEFT JOIN LATERAL ($inner) i ON true");
	},
	writing => sub {
		my ($statement) = @_;
		my $table = pick(@{ $statement->{round}{tables} });
		$statement->{writes} = 1;
		my $name = $table->{name};
		$statement->{tables}{$name} = $table;
		return search($statement) if $table->{ties};
		my $found = search($statement, table => $table);
		my $joined = search($statement, table => $table, outer => 'asked');
		return pick("UPDATE $name SET n = n + 1000 WHERE uid IN (SELECT uid FROM ($found) s) RETURNING uid, n", "DELETE FROM $name WHERE uid IN (SELECT uid FROM ($found) s) RETURNING uid",
			"UPDATE $name t SET n = 7 FROM ($found) s WHERE s.uid = t.uid RETURNING t.uid, s.d", "DELETE FROM $name t USING asked CROSS JOIN LATERAL ($joined) s WHERE s.uid = t.uid RETURNING t.uid",
			"WITH moved AS (DELETE FROM $name WHERE uid IN (SELECT uid FROM ($found) s) RETURNING uid, kind) SELECT count(*), min(uid), (SELECT count(*) FROM $name) FROM moved",
			"MERGE INTO $name t USING (SELECT DISTINCT uid FROM ($found) s) m ON t.uid = m.uid WHEN MATCHED THEN UPDATE SET n = -1") ;
	});

# A random statement, of any form or of the one named.
sub random_statement
{
	my ($round, $shape) = @_;
	my $statement = new_statement($round);
	$statement->{shape} = $shape // pick(sort(keys %shapes), 'search', 'search', 'search', 'lateral', 'lateral');
	$statement->{sql} = $shapes{ $statement->{shape} }->($statement);
	$statement->{ordered} = 0 if $statement->{shape} !~ /^(?:search|locking)$/;
	return $statement;
}

# A search of which approximate answers are checked: columns group, d, uid, with {k} and {o} left in the text.
sub approximate_statement
{
	my ($round) = @_;
	my $statement = new_statement($round);
	my $joined = chance(0.5);
	my $found = search($statement, table => pick(grep { !$_->{duplicates} } @{ $round->{tables} }), outer => $joined ? 'asked' : undef, plain_order => 1, limited => 1, keep_limit => 1);
	$statement->{sql} = $joined ? "SELECT asked.id, n.d, n.uid FROM asked CROSS JOIN LATERAL ($found) n" : "SELECT 0, s.d, s.uid FROM ($found) s";
	return $statement;
}

1;
