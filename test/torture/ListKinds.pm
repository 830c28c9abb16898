# The kinds of values that statements about lists are of: texts, sets, attributes, documents. Each is a hash:
#   name
#   type        of the column
#   functions   SQL that makes functions in the schema indexed
#   value       an expression of i, which may use $M and $N for numbers of the round
#   empty       an empty value
#   changed     of a column: another value of the type
#   expression  of a column: what an index of an expression is on
#   query       of a value: the query that it asks; undef: the value itself
#   literals    queries
#   size        of a column: an integer
#   distances   lists of operator, function, whether the operator has a commutator, bounds (constants), and the bound that a
#               column of numbers from -1 to 2 makes
#   classes     what stands for the key in indexes: the usual one first; %s is the column
package ListKinds;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use RandomChoice;
our @EXPORT = qw(list_kinds);

my @edits = (0, 1, 1, 2, 2, 3, -1, '2::bigint', '1.5::float8', '0.5::float8', '0.3::real', "'nan'::float8", 'NULL::int', '(SELECT 2)');
my @counts = (0, -1, -1, -2, -2, -3, 1, '-2::bigint', '(-1)::smallint', '-1.5::float8', "'nan'::float8", 'NULL::int', '(SELECT -2)');
my @shares = (0, 0.4, '0.3::real', '0.5::float8', '0.25::float8', '(2.0/7)::float8', '0.75::real', 1, "'nan'::float8", '(SELECT 0.6::float8)');
my @scores = (0, -1, -2, '-2.5::float8', '-3.5::float8', '-5::bigint', 1, "'nan'::float8", '(SELECT -2.5::float8)');
my $overlap = [ '<&>', 'overlap_distance', 1, \@counts, '(-%s)' ];
my $jaccard = [ '<%>', 'set_jaccard_distance', 1, \@shares, '(%s / 2.0)' ];
my $hash = '(hashint4(i % $M * 31 + g) & 15)';

sub texts
{
	my $letters = pick("aabbccdd eéжжΩ漢😀", 'aaaabbbbcccc ddd');
	return {
		name => 'texts', type => 'text', functions => '', value => "translate(left(md5((i % \$M)::text), 3 + i % 7), '0123456789abcdef', '$letters')", empty => "''",
		changed => "(%s || 'a')", expression => 'lower(%s)', literals => [ "'abc'", "''", "'жΩ漢'", 'NULL::text', "repeat('ab', 40)" ], size => 'length(%s) / 4',
		distances => [ ([ '<~~>', 'edit_distance', 1, \@edits, '%s' ]) x 3, [ '<~^~>', 'edit_distance_transpositions', 1, \@edits, '%s' ], [ '<%%>', 'gram_distance', 1, \@edits, '%s' ] ],
		classes => [ '%s', '(lower(%s))', '%s text_transpositions_ops', '%s text_gram_ops' ] };
}

sub arrays
{
	my ($type, $name, $element, @literals) = @_;
	return {
		name => $type, type => $type, functions => '', value => "ARRAY(SELECT $element FROM generate_series(1, i % \$N) g)", empty => "'{}'",
		changed => "(%s || $literals[0]\::$type)", expression => "(%s || $literals[0]\::$type)", literals => [ map { "$_\::$type" } @literals, "'{}'", 'NULL' ], size => '(-cardinality(%s) / 2)',
		distances => [ $overlap, $overlap, $jaccard ], classes => [ '%s', "((%s || $literals[0]\::$type))", "%s ${name}_jaccard_ops" ] };
}

sub words
{
	return (type => 'tsvector', value => "array_to_tsvector(ARRAY(SELECT DISTINCT chr(97 + $hash) FROM generate_series(1, i % \$N) g))", empty => "''::tsvector",
		changed => "(%s || 'k:1'::tsvector)", expression => "(%s || 'k:1'::tsvector)", size => '(-length(%s) / 2)');
}

sub documents
{
	return {
		words(),
		name => 'documents',
		# Three words, some of them several times.
		value => "(SELECT to_tsvector('simple', coalesce(string_agg(chr(97 + $hash) || ' ' || chr(97 + g % 3), ' '), '')) FROM generate_series(1, i % \$N) g)",
		functions => q{CREATE FUNCTION indexed.asked(tsvector) RETURNS bm25_query LANGUAGE sql IMMUTABLE AS
			$$ SELECT ('[1.2,0.75,6] ' || coalesce(string_agg(lexeme || ':' || 1 + ascii(lexeme) % 5 * 0.5, ' '), ''))::bm25_query FROM unnest($1) $$;},
		query => 'indexed.asked(%s)',
		literals => [ "'[1.2,0.75,6] a:3 c:1.5 h:2'::bm25_query", "'[1,0,6] b:2.5'::bm25_query", "'[1.2,0.75,6]'::bm25_query", 'NULL::bm25_query',
			"(SELECT bm25_query('indexed.counted', 'a c k'::tsvector))", "(SELECT bm25_query('indexed.counted', 'b | !c'::tsquery, 2, 0.5))" ],
		distances => [ [ '<&>', 'bm25_distance', 0, \@scores, '(-%s)' ] ],
		classes => [ '%s tsvector_bm25_ops', "((%s || 'k:1'::tsvector)) tsvector_bm25_ops" ] };
}

sub attributes
{
	return {
		name => 'attributes', type => 'attributes',
		functions => q{CREATE FUNCTION indexed.made_row(a int, b int) RETURNS attributes LANGUAGE sql IMMUTABLE AS $$ SELECT attributes('n', a % 7, 'm',
				CASE WHEN b > 1 THEN a % 11 END, 'c', chr(97 + a % 5), 'd', CASE WHEN b % 2 = 0 THEN chr(97 + (hashint4(a) & 3)) END, 'f', (a % 9) / 2.0) $$;
			CREATE FUNCTION indexed.same(attributes) RETURNS attributes LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN $1 OPERATOR(public.<&>) 'n:3'::public.attribute_query < 0 THEN NULL ELSE $1 END $$;},
		value => 'indexed.made_row(i % $M, i % $N)', empty => "attributes('b', NULL::int)", changed => 'indexed.same(%s)', expression => 'indexed.same(%s)',
		query => '(%s)::text::attribute_query', size => "(%s <&> 'n:[1,3]')::int",
		literals => [ "'n:[1,4] c:{a,b}'::attribute_query", "''::attribute_query", "'n:3 m:(,5) c:a d:b f:[0.5,2)'::attribute_query", 'NULL::attribute_query',
			"'n:{} z:5'::attribute_query", "'n:[1,2] n:[2,3] n:2'::attribute_query" ],
		distances => [ [ '<&>', 'overlap_distance', 0, \@counts, '(-%s)' ] ], classes => [ '%s', '(indexed.same(%s))' ] };
}

# All kinds, with the choices of a round.
sub list_kinds
{
	my @kinds = (texts(), texts(),
		arrays('integer[]', 'int4_array', "$hash / (1 + g % 2)", "'{7,1,15}'", "'{1,2,3}'", "'{5}'"),
		arrays('bigint[]', 'int8_array', "$hash\::int8 * 5000000000", "'{35000000000,5000000000}'", "'{10000000000,0,-1}'"),
		arrays('smallint[]', 'int2_array', "$hash\::int2", "'{7,1,15}'", "'{3,-1}'"),
		arrays('varchar(5)[]', 'varchar_array', "chr(97 + $hash)::varchar", "'{k,a}'", "'{a,b,c}'"),
		arrays('text[]', 'text_array', "chr(97 + $hash)", "'{k,a}'", "'{a,b,c}'", "'{k,k}'"),
		{ words(), name => 'lexemes', functions => '', literals => [ "'a b c'::tsvector", "''::tsvector", 'NULL::tsvector', "'k c d:3A'::tsvector" ], distances => [ $overlap, $overlap, $jaccard ],
			classes => [ '%s', "((%s || 'k:1'::tsvector))", '%s tsvector_jaccard_ops' ] },
		attributes(), documents());
	my %numbers = (M => pick(60, 200), N => pick(5, 9));
	$_->{value} =~ s/\$([MN])/$numbers{$1}/g for @kinds;
	return @kinds;
}

1;
