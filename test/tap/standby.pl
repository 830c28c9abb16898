# A hot standby answers from its own engine with the same rows, also after promotion.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $primary = new_cluster('primary', 'max_wal_senders' => 4, 'wal_keep_size' => "'256MB'");
my $backup = 'base';
$primary->backup($backup);
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, $backup, has_streaming => 1);
$standby->start;

load_grid($primary, 'items', 2000);
$primary->safe_psql('postgres', "CREATE INDEX items_exact ON items USING exact (v); CREATE INDEX items_ivfadc ON items USING ivfadc (v vector_cosine_ops); CREATE INDEX items_pqtree ON items USING pqtree (v vector_ip_ops);
	CREATE INDEX items_graph ON items USING graph (v vector_l1_ops);
	ALTER TABLE items ADD title text GENERATED ALWAYS AS (md5(id::text)) STORED; CREATE INDEX items_title ON items USING matchcount (title);
	ALTER TABLE items ADD digits text[] GENERATED ALWAYS AS (string_to_array(id::text, NULL)) STORED; CREATE INDEX items_digits ON items USING matchcount (digits);
	ALTER TABLE items ADD words tsvector GENERATED ALWAYS AS (array_to_tsvector(string_to_array(id::text, NULL))) STORED; CREATE INDEX items_words ON items USING matchcount (words tsvector_bm25_ops);
	CREATE INDEX items_signed ON items USING matchcount (digits text_array_minhash_ops);
	CREATE INDEX items_traits ON items USING matchcount (attributes('id', id, 'first', left(title, 1)))");

my %queries = (
	exact => "SET enable_seqscan = off; SELECT id, v <-> (SELECT v FROM items ORDER BY id LIMIT 1) FROM items ORDER BY v <-> (SELECT v FROM items ORDER BY id LIMIT 1) LIMIT 30",
	graph => "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <+> (SELECT v FROM items ORDER BY id LIMIT 1) LIMIT 30",
	matchcount => "SET enable_seqscan = off; SELECT id, title <~~> md5('77') FROM items ORDER BY title <~~> md5('77') LIMIT 30",
	sets => "SET enable_seqscan = off; SELECT id, digits <&> '{1,3,7}' FROM items ORDER BY digits <&> '{1,3,7}' LIMIT 30",
	attributes => "SET enable_seqscan = off; SELECT id FROM items ORDER BY attributes('id', id, 'first', left(title, 1)) <&> 'id:[100,200] first:{a,b,c}' LIMIT 30",
	documents => "SET enable_seqscan = off; SELECT id, words <&> bm25_query('items_words', '1 3 7'::tsvector) FROM items ORDER BY words <&> bm25_query('items_words', '1 3 7'::tsvector) LIMIT 30",
	signatures => "SET enable_seqscan = off; SELECT id, digits <%> '{1,3,7}' FROM items ORDER BY digits <%> '{1,3,7}' LIMIT 30",
	pqtree => "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <#> (SELECT v FROM items ORDER BY id LIMIT 1) LIMIT 30",
	ivfadc => "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <=> (SELECT v FROM items ORDER BY id LIMIT 1) LIMIT 30");

for my $cycle (1 .. 5)
{
	my $base = 10000 * $cycle;
	$primary->safe_psql('postgres', "DELETE FROM items WHERE id % 5 = $cycle % 5");
	$primary->safe_psql('postgres', "VACUUM items");
	$primary->safe_psql('postgres', "SELECT setseed(0.$cycle); INSERT INTO items SELECT $base + i, ARRAY(SELECT random() * 10 FROM generate_series(1, 16) d WHERE i > 0)::real[]::vector FROM generate_series(1, 300) i");
	$primary->safe_psql('postgres', "REINDEX TABLE items") if $cycle == 4;
	$primary->wait_for_catchup($standby);
	for my $method (sort keys %queries)
	{
		is($standby->safe_psql('postgres', $queries{$method}), $primary->safe_psql('postgres', $queries{$method}),
			"$method: standby equals primary, cycle $cycle");
	}
}
my $standby_engine = $standby->safe_psql('postgres', 'SELECT DISTINCT engine_pid FROM pgwarp_status');
isnt($standby_engine, $primary->safe_psql('postgres', 'SELECT DISTINCT engine_pid FROM pgwarp_status'), 'the standby has an engine of its own');

my %before = map { $_ => $standby->safe_psql('postgres', $queries{$_}) } keys %queries;
$primary->stop;
$standby->promote;
is($standby->safe_psql('postgres', $queries{$_}), $before{$_}, "$_: the same after promotion") for sort keys %queries;
$standby->safe_psql('postgres', "INSERT INTO items VALUES (-1, array_fill(1000, ARRAY[16])::vector)");
is($standby->safe_psql('postgres', "SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> array_fill(1000, ARRAY[16])::vector LIMIT 1"),
	-1, 'the promoted server takes rows');
$standby->stop;
done_testing();
