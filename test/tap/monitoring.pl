# The queries of docs/monitoring: postgres_exporter's and those of the dashboard run, and their columns are what the files say.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use CPAN::Meta::YAML;
use JSON::PP;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $files = "$FindBin::RealBin/../../docs/monitoring";
my $exporter = CPAN::Meta::YAML->read_string(slurp_file("$files/queries.yaml"))->[0];
my $dashboard = decode_json(slurp_file("$files/dashboard.json"));

my $node = new_cluster('monitoring');
$node->safe_psql('postgres', q{
	CREATE TABLE items (v vector(2));
	INSERT INTO items SELECT ARRAY[i, -i]::vector FROM generate_series(1, 500) i;
	CREATE INDEX items_v ON items USING exact (v);
	CREATE INDEX "Items again" ON items USING graph (v vector_cosine_ops);
	SELECT pgwarp_prewarm('items_v');
	CREATE ROLE exporter LOGIN;
	GRANT pg_monitor TO exporter});
$node->safe_psql('postgres', "SET enable_seqscan = off; SELECT v FROM items ORDER BY v <-> '[1,1]' LIMIT 3");

# The columns of a query as a hash of names to types.
sub columns_of
{
	my ($query) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "$query \\gdesc", extra_params => ['-U', 'exporter']);
	is($rc, 0, "it is described: $err");
	return { map { split /\|/ } split /\n/, $out };
}

my %is_number = map { $_ => 1 } 'integer', 'bigint', 'double precision', 'numeric';
my %metrics;
for my $name (sort keys %$exporter)
{
	my $query = $exporter->{$name}{query} =~ s/\s+$//r;
	my $types = columns_of($query);
	my %described;
	for my $metric (@{ $exporter->{$name}{metrics} })
	{
		my ($column) = keys %$metric;
		my ($usage, $description) = @{ $metric->{$column} }{qw(usage description)};
		$described{$column} = $usage;
		ok($description, "$name: $column has a description");
		my $type = $types->{$column} // 'none';
		ok($usage eq 'LABEL' ? $type eq 'text' : $usage =~ /^(COUNTER|GAUGE)$/ && $is_number{$type}, "$name: $column is a $usage of type $type");
		$metrics{"${name}_$column"} = $usage unless $usage eq 'LABEL';
	}
	is_deeply([ sort keys %described ], [ sort keys %$types ], "$name: all columns are described");
	# Prometheus takes no number that is missing, and no two rows with the same labels.
	my @labels = grep { $described{$_} eq 'LABEL' } sort keys %described;
	my $numbers = join ' + ', map { "q.\"$_\"" } grep { $described{$_} ne 'LABEL' } sort keys %described;
	my $distinct = @labels ? join ', ', map { "q.\"$_\"" } @labels : '1';
	my $answer = $node->safe_psql('postgres', "SELECT count(*) > 0, count($numbers) = count(*), count(DISTINCT ($distinct)) = count(*) FROM ($query) q", extra_params => ['-U', 'exporter']);
	is($answer, 't|t|t', "$name: rows, all numbers, labels of their own");
}
is($node->safe_psql('postgres', "SELECT \"table\", method, searches > 0, answer_seconds > 0, rows FROM ($exporter->{pgwarp_index}{query}) q WHERE index = 'items_v'"), 'items|exact|t|t|500', 'an index and its searches');

# The dashboard: statements run; formulas name metrics that there are.
my ($statements, $formulas) = (0, 0);
for my $panel (@{ $dashboard->{panels} })
{
	for my $target (@{ $panel->{targets} })
	{
		if (defined $target->{rawSql})
		{
			my ($rc, $out, $err) = $node->psql('postgres', $target->{rawSql}, extra_params => ['-U', 'exporter']);
			is($rc, 0, "$panel->{title}: its statement runs: $err");
			like($out, qr/items_v/, "$panel->{title}: it has the index");
			$statements++;
		}
		else
		{
			my @named = $target->{expr} =~ /\b(pgwarp_\w+)/g;
			ok(@named && !(grep { !$metrics{$_} } @named), "$panel->{title}: metrics of $target->{expr}");
			$formulas++;
		}
	}
}
ok($statements > 1 && $formulas > 10, "$statements statements and $formulas formulas");
my %places;
ok(!(grep { $places{ $_->{id} }++ } @{ $dashboard->{panels} }), 'each panel has an id of its own');

# A server without an engine: still one row of the engine, with zeros.
$node->append_conf('postgresql.conf', "max_worker_processes = 0");
$node->restart;
is($node->safe_psql('postgres', "SELECT up, starts FROM ($exporter->{pgwarp_engine}{query}) q"), '0|0', 'no engine');
is($node->safe_psql('postgres', "SELECT count(*) FROM ($exporter->{pgwarp_index}{query}) q"), '0', 'no engine: no index');
$node->stop;
done_testing();
