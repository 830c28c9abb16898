# Random statements that bound distances of texts, sets, attributes and documents have the same rows with indexes and without:
# joins of all kinds, sub-selects, partitions, inheritance, views, rows that change, in whatever plan.
#   PGWARP_STATEMENT_SECONDS   how long (30), at least a round of each kind
#   PGWARP_SEED                of the first statement (unset: another one each time, which is told)
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../torture";
use ListKinds;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RandomChoice;
use Test::More;

my $seconds = $ENV{PGWARP_STATEMENT_SECONDS} || 30;
my $seed = $ENV{PGWARP_SEED} // time % 1_000_000_000;
srand($seed);
diag("PGWARP_SEED=$seed");

my $node = new_cluster('text_statements', 'jit' => 'off', 'log_statement' => 'none', 'fsync' => 'off');
# Runs a statement without indexes and with them, and takes back what it changed. Returns 'plain', or 'used' where pgwarp's
# nodes or indexes are in the plan, or the difference.
$node->safe_psql('postgres', q{
	CREATE FUNCTION rows_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		one record;
		found text[] := '{}';
	BEGIN
		FOR one IN EXECUTE statement LOOP found := found || one::text; END LOOP;
		SELECT cardinality(found) || ' ' || md5(string_agg(f, E'\n' ORDER BY f COLLATE "C")) INTO one FROM unnest(found) f;
		RAISE EXCEPTION USING ERRCODE = 'P0099', MESSAGE = coalesce(one::text, 'none');
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE || ' ' || SQLERRM;
	END $$;
	CREATE FUNCTION compared(statement text, settings text[]) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		right_rows text;
		found text;
		setting text;
		used text := 'plain';
	BEGIN
		SET LOCAL search_path = plain, public;
		right_rows := rows_of(statement);
		SET LOCAL search_path = indexed, public;
		FOREACH setting IN ARRAY settings LOOP PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true); END LOOP;
		found := rows_of(statement);
		IF found IS DISTINCT FROM right_rows THEN RETURN format(E'%s\n  %s\n  %s\n  %s', statement, settings, right_rows, found); END IF;
		FOR setting IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || statement LOOP
			IF setting ~ 'Knn|_of_t' THEN used := 'used'; END IF;
		END LOOP;
		RETURN used;
	END $$});

# The same rows in both schemas; a partition and a child have their columns in another order, or more of them.
my $kind;
sub tables_sql
{
	my $columns = "id int, k int, t $kind->{type}, tau int, wide float8";
	my ($few, $many) = $kind->{name} eq 'documents' ? (pick(20, 40), pick(60, 120)) : (pick(30, 120), pick(100, 500));
	my $sql = qq{DROP SCHEMA IF EXISTS plain, indexed CASCADE; CREATE SCHEMA plain; CREATE SCHEMA indexed; $kind->{functions}
		CREATE FUNCTION indexed.made_value(i int) RETURNS $kind->{type} LANGUAGE sql IMMUTABLE AS
			\$\$ SELECT CASE WHEN i % 37 = 5 THEN NULL WHEN i % 41 = 3 THEN $kind->{empty} ELSE $kind->{value} END \$\$;
		CREATE TABLE indexed.a ($columns);
		CREATE TABLE indexed.b ($columns);
		CREATE TABLE indexed.p ($columns) PARTITION BY LIST (k);
		CREATE TABLE indexed.p_0 (wide float8, dropped int, tau int, t $kind->{type}, k int, id int);
		ALTER TABLE indexed.p_0 DROP dropped;
		ALTER TABLE indexed.p ATTACH PARTITION indexed.p_0 FOR VALUES IN (0);
		CREATE TABLE indexed.p_1 PARTITION OF indexed.p FOR VALUES IN (1, 2);
		CREATE TABLE indexed.p_3 PARTITION OF indexed.p DEFAULT;
		CREATE TABLE indexed.i ($columns);
		CREATE TABLE indexed.i_1 (extra text) INHERITS (indexed.i);};
	my $offset = 0;
	for ([ 'a', $few ], [ 'b', $many ], [ 'p', $many ], [ 'i', $few ], [ 'i_1', $few ])
	{
		my ($table, $count) = @$_;
		$offset += 1000;
		$sql .= "INSERT INTO indexed.$table SELECT i + $offset, i % @{[ between(3, 5) ]}, indexed.made_value(i + @{[ between(0, 99) ]}), CASE WHEN i % 11 > 0 THEN i % 4 - 1 END,
			CASE i % 13 WHEN 0 THEN 'nan' WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' WHEN 3 THEN NULL ELSE i % 5 / 2.0 END FROM generate_series(1, $count) i;\n";
	}
	my ($usual, @others) = map { sprintf $_, 't' } @{ $kind->{classes} };
	my $indexes = '';
	for my $table ('a', 'b', 'p', 'i', 'i_1')
	{
		$indexes .= "CREATE INDEX ${table}_of_t ON indexed.$table USING matchcount ($usual)" . pick('', '', ' INCLUDE (id)') . ";\n" if chance(0.85);
		$indexes .= "CREATE INDEX ${table}_of_t_2 ON indexed.$table USING matchcount (" . pick(@others) . ')' . pick('', ' WHERE k = 1') . ";\n" if chance(0.5);
		$indexes .= "CREATE INDEX ON indexed.$table (k);\n" if chance(0.5);
	}
	$indexes .= "CREATE INDEX counted ON indexed.b USING matchcount ($usual);\n" if $kind->{name} eq 'documents';
	my $changed = sprintf $kind->{changed}, 't';
	my $changes = "INSERT INTO indexed.b SELECT i, i % 3, indexed.made_value(i), 1, 1 FROM generate_series(10001, 10060) i; DELETE FROM indexed.b WHERE id % 7 = 2; UPDATE indexed.p SET t = $changed WHERE id % 9 = 1;\n";
	$sql .= chance(0.5) ? $indexes . $changes : $changes . $indexes;
	$sql .= "VACUUM indexed.b, indexed.p;\n" if chance(0.3);
	$sql .= "CREATE TABLE plain.$_ AS SELECT * FROM indexed.$_;\n" for 'a', 'b', 'p', 'i';
	for my $schema ('plain', 'indexed')
	{
		$sql .= "CREATE VIEW $schema.u AS SELECT * FROM $schema.a UNION ALL SELECT * FROM $schema.b WHERE k < 3;
			CREATE VIEW $schema.barrier WITH (security_barrier) AS SELECT * FROM $schema.b WHERE k <> 1;
			CREATE VIEW $schema.made AS SELECT id, k, coalesce(t, $kind->{empty}) AS t, tau, coalesce(wide, 1) AS wide FROM $schema.a WHERE k < 3;\n";
	}
	return $sql . (chance(0.8) ? 'ANALYZE' : '');
}

# A query by a value of another row, or a constant one.
sub query
{
	my ($one) = @_;
	my $value = pick("$one.t", "$one.t", sprintf($kind->{expression}, "$one.t"), sprintf($kind->{changed}, "$one.t"));
	return defined $kind->{query} ? sprintf $kind->{query}, $value : $value;
}

# A clause that bounds a distance of $of by columns of the tables @outer.
sub bound
{
	my ($of, @outer) = @_;
	my $one = @outer ? pick(@outer) : '';
	my $key = pick("$of.t", "$of.t", "$of.t", sprintf($kind->{expression}, "$of.t"));
	my $query = @outer && chance(0.85) ? query($one) : pick(@{ $kind->{literals} });
	my ($operator, $function, $commutes, $bounds, $of_column) = @{ pick(@{ $kind->{distances} }) };
	my @columns = @outer ? ((map { sprintf $of_column, $_ } "$one.tau", "$one.tau", "$one.wide", "CASE WHEN $one.k = 1 THEN 2 ELSE 0 END"), sprintf($kind->{size}, "$one.t")) : ();
	my $value = pick(@$bounds, @columns);
	my $distance = pick("($key $operator $query)", "($key $operator $query)", $commutes ? "($query $operator $key)" : (), "$function($key, $query)");
	return pick("$distance <= $value", "$distance <= $value", "$distance < $value", "$value >= $distance", "NOT $distance > $value", "$distance BETWEEN -2 AND $value");
}

sub conditions
{
	my ($of, @outer) = @_;
	my @clauses = bound($of, @outer);
	push @clauses, pick("$of.k = 1", "$of.id % 3 = 1", "$of.t IS NOT NULL", map { ("$of.k = $_.k", "$of.id <> $_.id") } @outer) if chance(0.5);
	push @clauses, bound($of, @outer) if chance(0.1);
	return join ' AND ', @clauses;
}

sub statement
{
	my ($outer, $inner, $third) = (pick('a', 'a', 'p', 'i', 'u', 'made', 'barrier'), pick('b', 'b', 'p', 'p', 'i', 'u', 'barrier'), pick('b', 'p', 'made'));
	my $changed = pick('a', 'b', 'p', 'i');
	my ($left, $not) = (pick('', 'LEFT '), pick('', 'NOT '));
	my $nearest = "b.t $kind->{distances}[0][0] " . sprintf($kind->{query} // '%s', 'a.t');
	return pick(
		sub { "SELECT b FROM $inner b WHERE " . conditions('b') },
		sub { "SELECT a.id, b FROM $outer a ${left}JOIN $inner b ON " . conditions('b', 'a') },
		sub { "SELECT a.id, b.id FROM $outer a ${left}JOIN $inner b ON " . conditions('b', 'a') . ' WHERE ' . pick('a.k = 1', 'b.id IS NULL', 'b.k < 2') },
		sub { "SELECT a.id FROM $outer a WHERE ${not}EXISTS (SELECT FROM $inner b WHERE " . conditions('b', 'a') . ')' },
		sub { "SELECT a.id, (SELECT count(*) FROM $inner b WHERE " . conditions('b', 'a') . ") AS n FROM $outer a" },
		sub { "SELECT a.id, n.d FROM $outer a CROSS JOIN LATERAL (SELECT $nearest AS d FROM $inner b WHERE " . conditions('b', 'a') . " ORDER BY $nearest LIMIT " . between(1, 5) . ') n' },
		sub { "SELECT a.id, b.id, c.id FROM $outer a ${left}JOIN $inner b ON " . conditions('b', 'a') . ' ' . pick('', 'LEFT ') . "JOIN $third c ON " . conditions('c', pick('a', 'b')) . ' WHERE a.id % 4 = 0' },
		sub { "SELECT a.id, x.id, b.id FROM a LEFT JOIN made x ON x.id = a.id + " . between(0, 2) . " ${left}JOIN $inner b ON " . conditions('b', 'x') },
		sub { "SELECT a.id, b.id FROM $outer a " . pick('RIGHT', 'FULL') . " JOIN $inner b ON a.id = b.id AND " . conditions('b', 'a') },
		sub { "WITH q AS (SELECT * FROM $outer a WHERE a.id % 3 = 0) SELECT q.id, count(b.id) FROM q JOIN $inner b ON " . conditions('b', 'q') . ' GROUP BY q.id' },
		sub { "UPDATE $changed b SET tau = -5 FROM $outer a WHERE " . conditions('b', 'a') . ' RETURNING b.id, b.tau' },
		sub { "DELETE FROM $changed b USING $outer a WHERE " . conditions('b', 'a') . ' RETURNING b.id' },
		sub { "SELECT b.id FROM $changed b WHERE " . conditions('b') . ' FOR UPDATE' })->();
}

sub settings
{
	my @off = grep { chance(0.4) } qw(enable_hashjoin enable_mergejoin enable_material enable_memoize enable_bitmapscan enable_sort enable_hashagg);
	push @off, 'enable_seqscan' if chance(0.9);
	push @off, 'pgwarp.knn_batch' if chance(0.1);
	my @set = map { "$_=off" } @off;
	push @set, 'enable_partitionwise_join=on' if chance(0.5);
	push @set, map { "$_=0" } qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size) if chance(0.3);
	push @set, 'pgwarp.batch_size=' . pick(1, 2, 16) if chance(0.2);
	push @set, 'work_mem=64kB' if chance(0.2);
	push @set, 'geqo_threshold=2' if chance(0.1);
	return "'{" . join(',', @set) . "}'";
}

my %counts = (plain => 0, used => 0, 'not planned' => 0);
my %used_of;
my @kinds;
my $end = time + $seconds;
while (@kinds || time < $end)
{
	@kinds = list_kinds() if !@kinds;
	$kind = shift @kinds;
	$node->safe_psql('postgres', 'SET client_min_messages = warning; ' . tables_sql());
	my $sql = join '', map { "SELECT compared(\$fz\$@{[ statement() ]}\$fz\$, @{[ settings() ]});\n" } 1 .. 40;
	my $used = $counts{used};
	my ($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '8s'; $sql", on_error_stop => 0);
	is($rc, 0, 'the session lives') or last;
	# PostgreSQL joins some with FULL in no way.
	$counts{'not planned'} += () = $err =~ /ERROR/g;
	my @wrong = grep { defined } map { exists $counts{$_} ? (++$counts{$_}, undef)[1] : $_ } split /\n(?!  )/, $out;
	is(join("\n", @wrong), '', "$kind->{name}: the same rows");
	$used_of{ $kind->{name} } += $counts{used} - $used;
}
cmp_ok($used_of{$_}, '>', 0, "$_: $used_of{$_} statements were searches") for sort keys %used_of;
note "$_: $counts{$_}" for sort keys %counts;
cmp_ok($counts{used}, '>', $counts{plain} / 10, "$counts{used} statements of @{[ $counts{used} + $counts{plain} ]} were searches (seed $seed)");
cmp_ok($counts{'not planned'}, '<', 5 + $counts{used} / 10, 'hardly any failed');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP|wrong distance|wrong included/, 'nothing worse in the log');
$node->stop;
done_testing();
