# Text in databases of other encodings: characters are those of the encoding, by the index as by the operators; bytes
# that are no characters of the encoding reach neither.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('matchcount_encodings', 'autovacuum' => 'off');

# Encoding, some characters as bytes, and their number.
my @cases = ([ 'SQL_ASCII', 'e9ff80', 3 ], [ 'LATIN1', 'e9e8', 2 ], [ 'EUC_JP', 'a4a2a4a4b4c1', 3 ], [ 'EUC_TW', '8ea2a1a1c4e3', 2 ], [ 'WIN1251', 'e6e9', 2 ], [ 'UTF8', 'e6bca2f09f9880', 2 ]);
for my $case (@cases)
{
	my ($encoding, $bytes, $count) = @$case;
	my $db = 'db_' . lc($encoding);
	$node->safe_psql('postgres', "CREATE DATABASE $db ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	my $sql = sub { return $node->safe_psql($db, $_[0]) };
	my $characters = "convert_from('\\x$bytes'::bytea, '$encoding')";
	if ($encoding eq 'SQL_ASCII') { $characters = "(SELECT string_agg(chr(get_byte(b, i)), '') FROM (SELECT '\\x$bytes'::bytea AS b) v, generate_series(0, length(b) - 1) i)"; }
	$sql->("CREATE EXTENSION pgwarp; CREATE TABLE t (id serial, title text);
		INSERT INTO t (title) SELECT left(md5(i::text), i % 12) || CASE WHEN i % 3 = 0 THEN $characters ELSE '' END || right(md5(i::text), i % 5) FROM generate_series(1, 1500) i;
		CREATE INDEX ON t USING matchcount (title); CREATE INDEX ON t USING matchcount (title text_substring_ops); CREATE INDEX ON t USING matchcount (title text_gram_ops)");
	is($sql->("SELECT edit_distance('ab', 'a' || $characters || 'b'), length($characters)"), "$count|$count", "$encoding: characters");
	for my $operator ('<~~>', '>>~~<<', '<%%>')
	{
		my $query = "SELECT string_agg(d::text, ' ') FROM (SELECT q FROM (VALUES ('a' || $characters || 'b'), ($characters), ('abc'), ('')) v (q)) q,
			LATERAL (SELECT title $operator q AS d FROM t ORDER BY title $operator q LIMIT 30) n";
		is($sql->("SET enable_seqscan = off; SET enable_sort = off; $query"), $sql->("SET enable_indexscan = off; $query"), "$encoding: $operator");
	}
	is($sql->("SELECT count(*) FROM t WHERE title <~~> ('a' || $characters || 'b') <= 3"),
		$sql->("SELECT count(*) FROM (SELECT title <~~> ('a' || $characters || 'b') AS d FROM t OFFSET 0) n WHERE d <= 3"), "$encoding: within a bound");
}
my ($rc, $out, $err) = $node->psql('db_utf8', q{SELECT convert_from('\xff61', 'UTF8') <~~> 'a'});
like($err, qr/invalid byte sequence for encoding "UTF8"/, 'bytes that are no characters');
($rc, $out, $err) = $node->psql('db_utf8', qq{INSERT INTO t (title) VALUES (E'\\xff')});
like($err, qr/invalid byte sequence for encoding "UTF8"/, 'nor in a row');

$node->stop;
done_testing();
