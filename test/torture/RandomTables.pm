# Random tables with vectors, twice: schema `plain` has no index of pgwarp, schema `indexed` has them.
#
# Every answer that is compared must be determined by the data: distances are all different, or a table has `ties` and
# statements show nothing of its rows but distances. Duplicates are equal in all columns.
package RandomTables;

use strict;
use warnings FATAL => 'all';

use RandomChoice;

my %operators = (
	vector => { l2 => '<->', ip => '<#>', cosine => '<=>', l1 => '<+>' },
	halfvec => { l2 => '<->', ip => '<#>', cosine => '<=>', l1 => '<+>' },
	bit => { hamming => '<~>', jaccard => '<%>' });
my @layouts = ('flat', 'flat', 'flat', 'list', 'mixed', 'mixed', 'nested', 'inherited');

# Functions that statements use.
my @functions = (
	q{CREATE FUNCTION random_array(dims int, ties bool) RETURNS real[] LANGUAGE sql VOLATILE AS
		'SELECT array_agg(CASE WHEN ties THEN floor(random() * 4)::real + 1 ELSE (random() * 2 - 1)::real END) FROM generate_series(1, dims)'},
	q{CREATE FUNCTION random_bits(dims int) RETURNS varbit LANGUAGE sql VOLATILE AS
		$$SELECT string_agg(CASE WHEN random() < 0.4 THEN '1' ELSE '0' END, '')::varbit FROM generate_series(1, dims)$$},
	q{CREATE FUNCTION passes(a int, b int) RETURNS bool LANGUAGE plpgsql STABLE COST 5 AS 'BEGIN RETURN a % 5 <> b; END'},
	# notes the rows that a query evaluates
	q{CREATE FUNCTION leak(uid int) RETURNS bool LANGUAGE plpgsql COST 0.01 AS $$BEGIN RAISE NOTICE 'leaked <%>', uid; RETURN true; END$$},
	# a search that may stand anywhere in another one
	q{CREATE FUNCTION search_again(name text, operator text, operand text, shift float8) RETURNS float8 LANGUAGE plpgsql STABLE AS $$
		DECLARE found float8;
		BEGIN
			EXECUTE format('SELECT max(d) FROM (SELECT v %s %L AS d FROM %I ORDER BY v %s %L LIMIT 3) s', operator, operand, name, operator, operand) INTO found;
			RETURN coalesce(found, 0) + shift;
		END$$});

# The tables of a round: { kind, dims, tables }. Approximate indexes are approximate where there are many rows.
sub make_round
{
	my ($kind) = @_;
	my $round = { kind => $kind, dims => between(1, 8), tables => [] };
	$round->{dims} = between(2, 8) if chance(0.8);
	push @{ $round->{tables} }, random_table($round, $_) for 1 .. 3;
	return $round;
}

sub random_table
{
	my ($round, $number) = @_;
	my $type = pick('vector', 'vector', 'halfvec', $number == 3 ? 'bit' : 'vector');
	my @metrics = grep { $round->{dims} > 2 || !/cosine|ip/ } sort keys %{ $operators{$type} };
	my $metric = pick(@metrics, ($type eq 'bit' ? () : 'l2'));
	my @methods = ('exact', 'exact', 'graph', ($metric =~ /l2|ip|cosine/ ? ('ivfadc', 'pqtree') : 'graph'), ($metric =~ /l2|cosine|l1/ ? 'matchcount' : ()));
	my $table = {
		name => "t$number", type => $type, dims => $type eq 'bit' ? 32 : $round->{dims}, metric => $metric,
		operator => $operators{$type}{$metric}, method => $round->{kind} eq 'exact' ? 'exact' : pick(@methods),
		# Distances of few halves, L1 distances of halves and those of one dimension have too few values to be all different.
		ties => ($type eq 'bit' || ($type eq 'halfvec' && ($round->{dims} < 5 || $metric eq 'l1')) || $round->{dims} == 1 || chance(0.2)) ? 1 : 0,
		nulls => chance(0.5) ? 1 : 0, layout => pick(@layouts), rows => $round->{kind} eq 'approximate' ? pick(60, 400, 2000, 5000) : pick(0, 7, 60, 200, 400, 400), policy => chance(0.35) };
	# Approximate answers are judged on a table whose rows are all different: there is always one.
	$table->{duplicates} = $number > 1 && $table->{method} eq 'exact' && chance(0.3) ? 1 : 0;
	return $table;
}

sub column_type { my ($table) = @_; return "$table->{type}($table->{dims})" }

# An expression that makes a vector of a row.
sub value_of
{
	my ($table) = @_;
	my $value = $table->{type} eq 'bit' ? "random_bits($table->{dims})::bit($table->{dims})"
		: "random_array($table->{dims}, " . ($table->{ties} ? 'true' : 'false') . ")::" . column_type($table);
	return $value if !$table->{nulls};
	my $zero = has_zeros($table) ? "WHEN random() < 0.06 THEN array_fill(0, ARRAY[$table->{dims}])::" . column_type($table) : '';
	return "CASE WHEN random() < 0.06 THEN NULL $zero ELSE $value END";
}

# Zero vectors have no cosine distance. By another distance they would be equal rows.
sub has_zeros { my ($table) = @_; return $table->{nulls} && $table->{metric} eq 'cosine' }

# The condition that a row has a place in an order by distance, or an empty string where all rows have one.
sub placed_condition
{
	my ($table, $row) = @_;
	return '' if !$table->{nulls};
	return "$row.v IS NOT NULL" . (has_zeros($table) ? " AND $row.v <> '[" . join(',', (0) x $table->{dims}) . "]'" : '');
}

# DDL of a table without indexes.
sub table_ddl
{
	my ($table) = @_;
	my ($name, $layout) = @$table{qw(name layout)};
	my $columns = "uid int, kind int, n int, txt text, v " . column_type($table);
	return ("CREATE TABLE $name ($columns)") if $layout eq 'flat';
	if ($layout eq 'inherited')
	{
		return ("CREATE TABLE $name ($columns)", "CREATE TABLE ${name}_a () INHERITS ($name)", "CREATE TABLE ${name}_b (more int DEFAULT 3) INHERITS ($name)");
	}
	my @parts = ("CREATE TABLE $name ($columns) PARTITION BY LIST (kind)", "CREATE TABLE ${name}_a PARTITION OF $name FOR VALUES IN (0, 1, 2)");
	if ($layout eq 'nested')
	{
		push @parts, "CREATE TABLE ${name}_b PARTITION OF $name FOR VALUES IN (3, 4) PARTITION BY HASH (n)",
			"CREATE TABLE ${name}_b1 PARTITION OF ${name}_b FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
			"CREATE TABLE ${name}_b2 PARTITION OF ${name}_b FOR VALUES WITH (MODULUS 2, REMAINDER 1)";
	}
	else
	{
		# Columns in another order than the parent's, and one that was dropped.
		push @parts, "CREATE TABLE ${name}_b (v " . column_type($table) . ", gone text, txt text, n int, kind int, uid int)",
			"ALTER TABLE ${name}_b DROP COLUMN gone", "ALTER TABLE $name ATTACH PARTITION ${name}_b FOR VALUES IN (3, 4)";
	}
	return (@parts, "CREATE TABLE ${name}_c PARTITION OF $name DEFAULT");
}

# Fill a table of schema plain.
sub fill_ddl
{
	my ($table) = @_;
	my ($name, $rows) = @$table{qw(name rows)};
	my @targets = $table->{layout} eq 'inherited' ? ($name, "${name}_a", "${name}_b") : ($name);
	my @sql;
	for my $part (0 .. $#targets)
	{
		push @sql, "INSERT INTO $targets[$part] (uid, kind, n, txt, v) SELECT i, CASE WHEN i % 17 = 0 THEN NULL ELSE floor(random() * 7)::int END,
			floor(random() * 100)::int, CASE WHEN random() < 0.1 THEN NULL ELSE repeat(chr(97 + i % 5), i % 40) END, " . value_of($table)
			. " FROM generate_series(1, $rows) i WHERE i % @{[ scalar @targets ]} = $part";
	}
	push @sql, "INSERT INTO $name SELECT * FROM $name WHERE uid % 7 = 0" if $table->{duplicates};
	return @sql;
}

# Tables that hold the rows of one, each by itself.
sub leaves
{
	my ($table) = @_;
	my $name = $table->{name};
	return ($name) if $table->{layout} eq 'flat';
	return ($name, "${name}_a", "${name}_b") if $table->{layout} eq 'inherited';
	return ("${name}_a", $table->{layout} eq 'nested' ? ("${name}_b1", "${name}_b2") : "${name}_b", "${name}_c");
}

# Indexes of a table of schema indexed.
sub index_ddl
{
	my ($table) = @_;
	my $class = "$table->{type}_$table->{metric}_ops";
	my $more = chance(0.3) && $table->{method} ne 'none' ? ' INCLUDE (uid, n)' : '';
	my $options = $table->{method} eq 'ivfadc' ? pick('', ' WITH (codes = half)', ' WITH (codes = int8, lists = 5)', ' WITH (refine = full)')
		: $table->{method} eq 'pqtree' ? pick('', ' WITH (refine = full)', $table->{dims} > 3 ? ' WITH (parts = 4, k1 = 8, k2 = 2)' : ' WITH (parts = 1)')
		: $table->{method} eq 'matchcount' ? pick(' WITH (hashes = 40)', $table->{metric} eq 'l1' ? ' WITH (lsh = rbh)' : '')
		: $table->{method} eq 'graph' && $table->{type} eq 'vector' ? pick('', ' WITH (vectors = half)') : '';
	$more = '' if $options =~ /int8|vectors/;
	my @on = ($table->{name});
	my @leaves = leaves($table);
	@on = @leaves if $table->{layout} eq 'inherited';
	# Partitions of which some have no index of pgwarp.
	@on = grep { chance(0.6) } @leaves if $table->{layout} eq 'mixed' || ($table->{layout} eq 'inherited' && chance(0.5));
	my $partial = chance(0.1) ? ' WHERE kind < 4' : '';
	# Columns to filter by, before or behind the vector.
	my ($before, $behind) = chance(0.5) ? ('', '') : (pick('', 'kind, ', 'n, '), pick(', kind', ', n, kind', ', uid, txt filter_ops', ', txt filter_ops, (n % 10)'));
	my @sql = map { "CREATE INDEX ON $_ USING $table->{method} (${before}v $class$behind)$more$options$partial" } @on;
	push @sql, "CREATE INDEX ON $table->{name} (kind)" if chance(0.3);
	push @sql, "CREATE INDEX ON $table->{name} (n, uid)" if chance(0.3);
	push @sql, "CREATE INDEX ON $table->{name} USING exact (v $class)" if $partial || chance(0.1);
	# The index that only other operators use.
	push @sql, "CREATE INDEX ON $table->{name} USING exact (v $table->{type}_l1_ops)" if $table->{type} ne 'bit' && $table->{metric} ne 'l1' && chance(0.15);
	return @sql;
}

# Changes after the build, for both schemas: rows of the indexes' deltas, and dead ones.
sub change_ddl
{
	my ($table) = @_;
	my $name = $table->{name};
	my @sql;
	push @sql, "DELETE FROM $name WHERE uid % 11 = 3" if chance(0.5);
	push @sql, "UPDATE $name SET n = n + 1 WHERE uid % 13 = 2" if chance(0.5);
	push @sql, "UPDATE $name SET kind = 3 WHERE kind = 1 AND uid % 3 = 0" if chance(0.2);
	return @sql;
}

sub policy_expression
{
	my ($table) = @_;
	$table->{policy_operand} = random_operand($table);
	return pick('kind < 4', 'n % 3 <> 0', 'kind IS NOT NULL AND passes(n, 2)', "EXISTS (SELECT FROM asked p WHERE p.kind = $table->{name}.kind)",
		"v $table->{operator} '$table->{policy_operand}' < @{[ $table->{type} eq 'bit' ? pick(0.5, 10) : pick(0, 0.9) ]}");
}

# A random operand for comparisons with the table's vectors, as text.
sub random_operand
{
	my ($table) = @_;
	return join '', map { chance(0.4) ? 1 : 0 } 1 .. $table->{dims} if $table->{type} eq 'bit';
	return number_list($table->{dims}, $table->{ties});
}

# The same, often the operand of the table's policy.
sub operand_text { my ($table) = @_; return $table->{policy_operand} && chance(0.5) ? $table->{policy_operand} : random_operand($table) }

# Copy rows of schema plain that a condition picks, those of inheritance into the same child.
sub copy_rows
{
	my ($table, $condition) = @_;
	my $columns = 'uid, kind, n, txt, v';
	my @targets = $table->{layout} eq 'inherited' ? leaves($table) : ($table->{name});
	my $only = $table->{layout} eq 'inherited' ? 'ONLY ' : '';
	return map { "INSERT INTO indexed.$_ ($columns) SELECT $columns FROM ${only}plain.$_ WHERE $condition" } @targets;
}

# One table in both schemas, with its indexes, changes and policy.
sub twin_ddl
{
	my ($table) = @_;
	my @changes = change_ddl($table);
	my @policy = $table->{policy} ? ("ALTER TABLE $table->{name} ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON $table->{name} USING (" . policy_expression($table) . ')') : ();
	my $late = chance(0.5) ? 'uid % 10 = 0' : 'false';
	my @sql = ('SET search_path = plain, public', table_ddl($table), fill_ddl($table));
	push @sql, 'SET search_path = indexed, public', table_ddl($table), copy_rows($table, "NOT ($late)"), index_ddl($table), copy_rows($table, $late);
	for my $schema ('plain', 'indexed')
	{
		push @sql, "SET search_path = $schema, public", @changes, "GRANT ALL ON ALL TABLES IN SCHEMA $schema TO knn_reader", @policy;
	}
	push @sql, "VACUUM (INDEX_CLEANUP ON) $table->{name}" if chance(0.3);
	push @sql, "ANALYZE $table->{name}" if chance(0.8);
	return @sql;
}

# Everything of a round as SQL, statement by statement.
sub round_ddl
{
	my ($round) = @_;
	return ('RESET search_path', 'SET client_min_messages = error', 'DROP SCHEMA IF EXISTS plain, indexed CASCADE', 'DROP TABLE IF EXISTS asked',
		'RESET client_min_messages', 'CREATE SCHEMA plain', 'CREATE SCHEMA indexed', 'GRANT USAGE ON SCHEMA plain, indexed TO knn_reader',
		'SELECT setseed(' . sprintf('%.6f', rand) . ')',
		"CREATE TABLE asked (id int, kind int, v vector($round->{dims}), w vector($round->{dims}), b bit(32))",
		"INSERT INTO asked SELECT i, i % 5, random_array($round->{dims}, false)::vector, random_array($round->{dims}, false)::vector, random_bits(32)::bit(32)
			FROM generate_series(1, @{[ pick(1, 8, 30) ]}) i",
		'GRANT SELECT ON asked TO knn_reader', 'ANALYZE asked', map { twin_ddl($_) } @{ $round->{tables} });
}

# The objects that are made once in a database.
sub database_ddl { return (@functions, 'CREATE SEQUENCE uids START 100000', q{DO $$BEGIN CREATE ROLE knn_reader; EXCEPTION WHEN duplicate_object THEN NULL; END$$}) }

1;
