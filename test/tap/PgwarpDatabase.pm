# A database with an index of every kind, and checks of its answers: for tests that copy, move or crash whole databases.
package PgwarpDatabase;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(fill_database row_values same_answers_as found answers whole);

# The searches that the indexes of `items` serve: condition, column and operator.
my %searches = (
	items_exact => [ 'true', 'v', '<->' ],
	items_partial => [ 'id % 2 = 0', 'v', '<+>' ],
	items_ivfadc => [ 'true', 'v', '<=>' ],
	items_codes => [ 'true', 'v', '<#>' ],
	items_tree => [ 'id % 5 = 1', 'v', '<=>' ],
	items_tree_codes => [ 'id % 5 = 2', 'v', '<#>' ],
	items_graph => [ 'id % 2 = 1', 'v', '<+>' ],
	items_hashes => [ 'id % 3 = 1', 'v', '<+>' ],
	items_bits => [ 'true', 'b', '<%>' ],
	items_bit_graph => [ 'true', 'b', '<~>' ],
	items_note => [ 'true', 'note', '<~~>' ],
	items_tags => [ 'true', 'tags', '<&>' ],
	items_traits => [ 'true', 'traits', '<&>' ]);
my @exact = ('items_exact', 'items_partial', 'items_bits', 'items_bit_graph', 'items_note', 'items_tags', 'items_traits');
my @approximate = ('items_ivfadc', 'items_codes', 'items_tree', 'items_tree_codes', 'items_graph', 'items_hashes');

# Rows number $from to $to of `items`, as a query.
sub row_values
{
	my ($from, $to) = @_;
	return "SELECT i AS id, repeat('n', i % 30) AS note, v, (binary_quantize(v - array_fill(-5, ARRAY[16])::vector) || binary_quantize(v - array_fill(4, ARRAY[16])::vector))::bit(32) AS b,
			ARRAY(SELECT i * d % 31 FROM generate_series(1, i % 7) d) AS tags,
			attributes('x', i % 97, 'y', i % 53, 'kind', chr(97 + i % 5)) AS traits
		FROM generate_series($from, $to) i, LATERAL (SELECT ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16) AS v) drawn";
}

# Make table `items` with its indexes. These have rows of their builds, dead ones, and rows inserted since.
sub fill_database
{
	my ($node, $db, $kind, $table_options) = @_;
	$kind //= '';
	$table_options //= '';
	$node->safe_psql($db, "CREATE EXTENSION IF NOT EXISTS pgwarp");
	$node->safe_psql($db, $_) for split /;/, qq{
		CREATE $kind TABLE items (id int PRIMARY KEY, note text, v vector(16), b bit(32), tags int[], traits attributes) $table_options;
		INSERT INTO items @{[ row_values(1, 1500) ]};
		CREATE INDEX items_exact ON items USING exact (v) INCLUDE (id);
		CREATE INDEX items_partial ON items USING exact (v vector_l1_ops) WHERE id % 2 = 0;
		CREATE INDEX items_ivfadc ON items USING ivfadc (v vector_cosine_ops) INCLUDE (id, note) WITH (codes = half, lists = 20);
		CREATE INDEX items_codes ON items USING ivfadc (v vector_ip_ops) WITH (refine = none, subquantizers = 16, opq = on);
		CREATE INDEX items_tree ON items USING pqtree (v vector_cosine_ops) INCLUDE (id) WHERE id % 5 = 1;
		CREATE INDEX items_tree_codes ON items USING pqtree (v vector_ip_ops) WITH (refine = none, parts = 4, line_parts = 16) WHERE id % 5 = 2;
		CREATE INDEX items_graph ON items USING graph (v vector_l1_ops) WHERE id % 2 = 1;
		CREATE INDEX items_hashes ON items USING matchcount (v vector_l1_ops) WITH (lsh = rbh) WHERE id % 3 = 1;
		CREATE INDEX items_bits ON items USING exact (b bit_jaccard_ops);
		CREATE INDEX items_bit_graph ON items USING graph (b bit_hamming_ops) INCLUDE (id);
		CREATE INDEX items_note ON items USING matchcount (note);
		CREATE INDEX items_tags ON items USING matchcount (tags);
		CREATE INDEX items_traits ON items USING matchcount (traits);
		DELETE FROM items WHERE id % 50 = 0;
		VACUUM (INDEX_CLEANUP ON) items;
		INSERT INTO items @{[ row_values(2001, 2100) ]}};
	return;
}

# The answers to searches for eight rows, each with $limit rows: a line for each named index. For bits, texts, sets and
# attributes, of which many rows are equally far, the line has the distances; a graph of bits is searched whole.
sub found
{
	my ($node, $db, $limit, $settings, @indexes) = @_;
	my @lines;
	for my $index (@indexes)
	{
		my ($condition, $column, $operator) = @{ $searches{$index} };
		my $distance = "$column $operator q.$column" . ($column eq 'traits' ? '::attribute_query' : '');
		my $shown = $column eq 'v' ? 'id' : $distance;
		push @lines, "$index " . $node->safe_psql($db, qq{$settings; @{[ $column eq 'b' ? 'SET pgwarp.graph_ef_search = 10000;' : '' ]}
			SELECT string_agg(q.id || ':' || ids, ' ' ORDER BY q.id) FROM (SELECT * FROM items WHERE id <= 8) q,
			LATERAL (SELECT string_agg(shown::text, ',') AS ids FROM (SELECT $shown AS shown FROM items WHERE $condition ORDER BY $distance LIMIT $limit) s) l});
	}
	return join("\n", @lines);
}

# The answers of all indexes when searched whole. Two databases with the same bytes have the same answers. With less
# effort they would depend on whether the engine has indexed the delta rows yet, which it does in the background.
sub answers
{
	my ($node, $db) = @_;
	my $whole = 'SET pgwarp.ivfadc_probes = 65536; SET pgwarp.refine_factor = 100; SET pgwarp.graph_ef_search = 10000; SET pgwarp.matchcount_candidates = 65536; SET pgwarp.pqtree_candidates = 65536';
	return found($node, $db, 20, "SET enable_seqscan = off; SET enable_sort = off; $whole", sort keys %searches);
}

# The searches are served by the indexes, not by something else.
sub uses_indexes
{
	my ($node, $db) = @_;
	for my $index (sort keys %searches)
	{
		my ($condition, $column, $operator) = @{ $searches{$index} };
		my $query = { b => "repeat('01', 16)::bit(32)", v => 'array_fill(1, ARRAY[16])::vector', note => "'nnn'", tags => 'ARRAY[1, 2]', traits => "'x:[1,2] kind:a'" }->{$column};
		my $plan = $node->safe_psql($db, "SET enable_seqscan = off; SET enable_sort = off;
			EXPLAIN (COSTS OFF) SELECT id FROM items WHERE $condition ORDER BY $column $operator $query LIMIT 20");
		return 0 if $plan !~ /Scan using $index on items/;
	}
	return 1;
}

# Mean part of the ten nearest of sequential scans that the approximate indexes find.
sub mean_recall
{
	my ($node, $db) = @_;
	my ($common, $all) = (0, 0);
	my @lines = map { [ split /[ \n]/, found($node, $db, 10, $_, @approximate) ] } 'SET enable_indexscan = off; SET enable_indexonlyscan = off', 'SET enable_seqscan = off';
	for my $i (0 .. $#{ $lines[0] })
	{
		next if $lines[0][$i] !~ /:/;
		my %true = map { $_ => 1 } split /,/, $lines[0][$i] =~ s/.*://r;
		$all += keys %true;
		$common += grep { $true{$_} } split /,/, $lines[1][$i] =~ s/.*://r;
	}
	return $all == 0 ? 1 : $common / $all;
}

# Every index of pgwarp is whole, has the table's rows, and answers right.
sub whole
{
	my ($node, $db, $name) = @_;
	my $checks = $node->safe_psql($db, q{
		SELECT string_agg(c.relname || CASE WHEN i.indpred IS NULL AND k.live_rows < (SELECT count(*) FROM items) THEN ' lacks rows' ELSE '' END, ' ' ORDER BY c.relname)
		FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid, pgwarp_check(c.oid::regclass, true) k
		WHERE a.amhandler::text LIKE '%pgwarp%' AND c.relkind = 'i' AND i.indrelid = 'items'::regclass});
	is($checks, join(' ', sort keys %searches), "$name: pgwarp_check");
	ok(uses_indexes($node, $db), "$name: plans");
	is(found($node, $db, 20, 'SET enable_seqscan = off; SET enable_sort = off', @exact),
		found($node, $db, 20, 'SET enable_indexscan = off; SET enable_indexonlyscan = off', @exact), "$name: exact answers");
	my $recall = mean_recall($node, $db);
	cmp_ok($recall, '>=', 0.9, sprintf('%s: recall %.3f', $name, $recall));
	return;
}

# The database is whole and answers every search as was answered before.
sub same_answers_as
{
	my ($expected, $node, $db, $name) = @_;
	whole($node, $db, $name);
	is(answers($node, $db), $expected, "$name: the same answers");
	return;
}

1;
