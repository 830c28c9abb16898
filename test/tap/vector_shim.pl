# The extension `vector` of pgwarp, which serves pgvector's SQL where pgvector is absent.
#   PGVECTOR_SOURCE   pgvector's source, for a database whose catalogs its script made (unset: that part is skipped)
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $staged = ($ENV{PGWARP_DESTDIR} // '') . '_vector';
plan skip_all => 'the extension vector is not staged' if !-d $staged;
chomp(my $share = `pg_config --sharedir`);
chomp(my $libraries = `pg_config --pkglibdir`);

# A catalog that pgvector's script makes names pgvector's C functions in '$libdir/vector'.
my $source = $ENV{PGVECTOR_SOURCE} // '';
if ($source ne '')
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	chmod 0755, $folder;
	system_or_bail('cp', '-rL', "$staged/.", "$folder/stage");
	$staged = "$folder/stage";
	system_or_bail('cp', "$source/sql/vector.sql", "$staged$share/extension/vector--0.8.7.sql");
}
$ENV{PGWARP_DESTDIR} = $staged;

my $node = PostgreSQL::Test::Cluster->new('company');
$node->init;
configure($node, 'client_min_messages' => 'warning', 'jit' => 'off');
$node->append_conf('postgresql.conf', "dynamic_library_path = '$staged$libraries:\$libdir'");
$node->start;
sub sql { return $node->safe_psql('postgres', shift) }
sub failure { my (undef, undef, $err) = $node->psql('postgres', shift); return $err }

sql('CREATE EXTENSION vector');
like(sql(q{SELECT extversion FROM pg_extension WHERE extname = 'vector'}), qr/^0\.8\./, 'a version as clients of pgvector parse it');
is(sql(q{CREATE TEMP TABLE t (v vector(2)); INSERT INTO t VALUES ('[1,2]'); SHOW hnsw.ef_search}), '40', 'the settings are known from the first value on');

# Tables and indexes of every operator class.
my %classes = (
	vector => { vector_l2_ops => '<->', vector_ip_ops => '<#>', vector_cosine_ops => '<=>', vector_l1_ops => '<+>' },
	halfvec => { halfvec_l2_ops => '<->', halfvec_ip_ops => '<#>', halfvec_cosine_ops => '<=>', halfvec_l1_ops => '<+>' },
	sparsevec => { sparsevec_l2_ops => '<->', sparsevec_ip_ops => '<#>', sparsevec_cosine_ops => '<=>', sparsevec_l1_ops => '<+>' },
	bit => { bit_hamming_ops => '<~>', bit_jaccard_ops => '<%>' });
my %only_hnsw = map { $_ => 1 } qw(vector_l1_ops halfvec_l1_ops bit_jaccard_ops sparsevec_l2_ops sparsevec_ip_ops sparsevec_cosine_ops sparsevec_l1_ops);
sql(q{CREATE TABLE items (id int, vector vector(8), halfvec halfvec(8), sparsevec sparsevec(8), bit bit(8));
	INSERT INTO items SELECT i, a, a, a, (i % 256)::bit(8) FROM (SELECT i, ARRAY(SELECT (hashint8(i * 8 + j) % 1000) / 1000.0 FROM generate_series(1, 8) j)::real[] a FROM generate_series(1, 3000) i) s});
for my $type (sort keys %classes)
{
	my $query = $type eq 'bit' ? "B'01010101'" : $type eq 'sparsevec' ? "'{1:.1,3:.3,8:.8}/8'" : "'[.1,.2,.3,.4,.5,.6,.7,.8]'";
	for my $class (sort keys %{ $classes{$type} })
	{
		for my $method ('hnsw', $only_hnsw{$class} ? () : 'ivfflat')
		{
			my $order = "$type $classes{$type}{$class} $query";
			my $search = "SELECT string_agg(round(d::numeric, 5)::text, ' ') FROM (SELECT $order AS d FROM items ORDER BY $order LIMIT 20) s";
			my $expected = sql($search);
			is($node->psql('postgres', "CREATE INDEX searched ON items USING $method ($type $class)"), 0, "$method ($class)");
			is(sql("SET enable_seqscan = off; SET pgwarp.recall = 0.9999; $search"), $expected, "$method ($class): answers");
			like(sql("SET enable_seqscan = off; EXPLAIN (COSTS OFF) $search"), qr/Index Scan using searched/, "$method ($class): by the index");
			my $insert = 'BEGIN; INSERT INTO items SELECT id + 3000, vector, halfvec, sparsevec, bit FROM items WHERE id % 3 = 0';
			my $all = sql("$insert; SET enable_indexscan = off; $search; ROLLBACK");
			is(sql("$insert; SET enable_seqscan = off; SET pgwarp.recall = 0.9999; $search; ROLLBACK"), $all, "$method ($class): rows that were inserted");
			sql('DROP INDEX searched');
		}
	}
}
is(sql(q{SELECT count(*) FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE amname IN ('hnsw', 'ivfflat') AND NOT amvalidate(o.oid)}), 0, 'operator classes are valid');
is(sql(q{SELECT string_agg(amname || ' ' || opcname, ', ') FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE amname IN ('hnsw', 'ivfflat') AND opcdefault}), 'ivfflat vector_l2_ops', 'defaults as in pgvector');

# Options keep their names, have pgvector's ranges, and stand for those of the methods.
sql('CREATE INDEX items_hnsw ON items USING hnsw (vector vector_l2_ops) WITH (m = 8, ef_construction = 100)');
sql('CREATE INDEX items_ivfflat ON items USING ivfflat (halfvec halfvec_cosine_ops) WITH (lists = 20)');
like(sql(q{SELECT pg_get_indexdef('items_hnsw'::regclass)}), qr/USING hnsw \(vector vector_l2_ops\) WITH \(m='8', ef_construction='100'\)/, 'a definition has the options as they were given');
like(sql(q{SELECT options FROM pgwarp_index_info('items_hnsw')}), qr/"degree": 16.*"build_degree": 75/, 'm and ef_construction stand for degrees');
like(sql(q{SELECT options FROM pgwarp_index_info('items_ivfflat')}), qr/"codes": "half", "lists": 20, "refine": "none"/, 'lists of 16-bit vectors');
like(failure('CREATE INDEX ON items USING hnsw (vector vector_l2_ops) WITH (m = 1)'), qr/ERROR:  value 1 out of bounds for option "m"/, 'm is too small');
like(failure('CREATE INDEX ON items USING hnsw (vector vector_l2_ops) WITH (ef_construction = 31)'), qr/ERROR:  ef_construction must be greater than or equal to 2 \* m/, 'ef_construction is too small for m');
like(failure('ALTER INDEX items_hnsw SET (m = 60)'), qr/ERROR:  ef_construction must be greater than or equal to 2 \* m/, 'and where m changes');
like(failure('CREATE INDEX ON items USING hnsw (vector vector_l2_ops) WITH (lists = 10)'), qr/ERROR:  unrecognized parameter "lists"/, 'another method\'s option');
like(failure('CREATE INDEX ON items USING hnsw (vector vector_l2_ops, id)'), qr/ERROR:  access method "hnsw" does not support multicolumn indexes/, 'one column, as in pgvector');
like(failure('CREATE INDEX ON items USING hnsw (vector)'), qr/ERROR:  data type vector has no default operator class for access method "hnsw"/, 'no default class');
like(sql('SET client_min_messages = notice; CREATE TABLE few (v vector(3)); CREATE INDEX ON few USING ivfflat (v); SELECT 1'), qr/1/, 'lists for no rows');

# The settings: ranges and errors are pgvector's; where one is set, it is the effort.
sub cost
{
	my ($settings, $order) = @_;
	my ($cost) = sql("SET enable_seqscan = off; $settings EXPLAIN SELECT id FROM items ORDER BY $order LIMIT 10") =~ /Index Scan using \w+ on items  \(cost=(\d+\.\d+)\.\./;
	return $cost;
}
my $near = q{vector <-> '[1,1,1,1,1,1,1,1]'};
my $usual = cost('', $near);
cmp_ok(cost('SET hnsw.ef_search = 1;', $near), '<', $usual, 'a small ef_search costs less');
is(cost('SET hnsw.ef_search = 1; RESET hnsw.ef_search;', $near), $usual, 'without it the recall decides again');
is(cost('SET pgwarp.graph_ef_search = 1; SET hnsw.ef_search = 5;', $near), cost('SET hnsw.ef_search = 5;', $near), 'it goes before the setting of the method');
isnt(cost('SET hnsw.ef_search = 40;', $near), $usual, 'the default counts where it is set');
my $near_half = q{halfvec <=> '[1,1,1,1,1,1,1,1]'};
cmp_ok(cost('SET ivfflat.probes = 1;', $near_half), '<', cost('SET ivfflat.probes = 20;', $near_half), 'probes cost');
sql('CREATE INDEX items_graph ON items USING graph (vector vector_ip_ops)');
my $near_graph = q{vector <#> '[1,1,1,1,1,1,1,1]'};
is(cost('SET hnsw.ef_search = 1;', $near_graph), cost('', $near_graph), 'the settings are of their own indexes alone');
like(failure('SELECT vector FROM items LIMIT 1; SET hnsw.ef_search = 1001'), qr/ERROR:  1001 is outside the valid range for parameter "hnsw.ef_search" \(1 \.\. 1000\)/, 'out of range');
like(failure('SELECT vector FROM items LIMIT 1; SET hnsw.efsearch = 10'), qr/ERROR:  invalid configuration parameter name "hnsw.efsearch"/, 'the prefix is reserved');
my $warned = failure("SELECT vector FROM items LIMIT 1; SET hnsw.max_scan_tuples = 10; SET hnsw.max_scan_tuples = 20; SET hnsw.iterative_scan = relaxed_order; SELECT count(*) FROM (SELECT FROM items ORDER BY $near) s");
is(scalar(() = $warned =~ /WARNING:  hnsw.max_scan_tuples has no effect/g), 1, 'a setting without effect says so once');
is(sql("SET enable_seqscan = off; SET hnsw.ef_search = 1; SELECT count(*) FROM (SELECT FROM items ORDER BY $near) s"), 3000, 'a scan does not run dry');

# Progress has the phases that clients of pgvector wait for.
is(sql(q{SELECT pg_indexam_progress_phasename(oid, 1) || ', ' || pg_indexam_progress_phasename(oid, 650) FROM pg_am WHERE amname = 'hnsw'}), 'initializing, loading tuples', 'phases of hnsw');
is(sql(q{SELECT string_agg(DISTINCT pg_indexam_progress_phasename(a.oid, (i + 1) * 102), ', ') FROM pg_am a, generate_series(0, 24) i WHERE amname = 'ivfflat'}), 'assigning tuples, loading tuples, performing k-means', 'phases of ivfflat');

# In one database there is only one of pgwarp's extensions.
like(failure('CREATE SCHEMA other; CREATE EXTENSION pgwarp SCHEMA other'), qr/ERROR:  extension "pgwarp" cannot be in one database with extension "vector".*HINT:  Extension "vector" of pgwarp has all/s, 'pgwarp beside the shim');
sql('CREATE DATABASE plain');
$node->safe_psql('plain', 'CREATE EXTENSION pgwarp');
my (undef, undef, $refused) = $node->psql('plain', 'CREATE SCHEMA other; CREATE EXTENSION vector SCHEMA other');
like($refused, qr/ERROR:  extension "vector" cannot be in one database with extension "pgwarp"/, 'the shim beside pgwarp');

# A dump restores, with answers and options.
my $answer = "SET enable_seqscan = off; SELECT string_agg(id::text, ' ') FROM (SELECT id FROM items ORDER BY $near LIMIT 10) s";
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok(['pg_dump', '-f', $dump, $node->connstr('postgres')], 'pg_dump');
sql('CREATE DATABASE restored');
$node->command_ok(['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored')], 'restore');
is($node->safe_psql('restored', $answer), sql($answer), 'the same answers');
is($node->safe_psql('restored', q{SELECT pg_get_indexdef('items_hnsw'::regclass)}), sql(q{SELECT pg_get_indexdef('items_hnsw'::regclass)}), 'the same definition');

# An index file that pgvector wrote: a metapage with its marks, in place of ours.
my $path = sql(q{SELECT pg_relation_filepath('items_hnsw')});
$node->stop;
open my $file, '+<:raw', $node->data_dir . "/$path" or die "$path: $!";
my $page = pack('x8 S S S S S S x4', 0, 0, 24 + 24, 8192 - 8, 8192 - 8, 8192 | 4);
$page .= pack('L L', 0xA953A953, 1);
$page .= "\0" x (8192 - 8 - length $page) . pack('L S S', 0xFFFFFFFF, 0, 0xFF90);
print $file $page;
close $file;
$node->start;
like(sql("SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY $near LIMIT 2"), qr/Seq Scan/, 'an index that pgvector built is no part of plans');
like(failure('INSERT INTO items SELECT * FROM items LIMIT 1'), qr/ERROR:  index "items_hnsw" was built by pgvector\nHINT:  REINDEX it\./, 'an INSERT says what to do');
is($node->psql('postgres', 'DELETE FROM items WHERE id = 7; VACUUM items'), 0, 'VACUUM goes on');
sql('REINDEX INDEX items_hnsw');
like(sql("SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT id FROM items ORDER BY $near LIMIT 2"), qr/Index Scan using items_hnsw/, 'REINDEX makes it pgwarp\'s');
sql('INSERT INTO items SELECT * FROM items LIMIT 1');

SKIP:
{
	skip 'no PGVECTOR_SOURCE', 6 if $source eq '';
	sql('CREATE DATABASE swapped');
	$node->safe_psql('swapped', q{CREATE EXTENSION vector VERSION '0.8.7'; CREATE TABLE items (id int, vector vector(8), bit bit(8));
		INSERT INTO items SELECT i, ARRAY(SELECT (hashint8(i * 8 + j) % 1000) / 1000.0 FROM generate_series(1, 8) j)::real[], (i % 256)::bit(8) FROM generate_series(1, 3000) i});
	for my $index ("hnsw (vector vector_l2_ops)|$near", 'hnsw (bit bit_jaccard_ops)|bit <%> B\'01010101\'', q{ivfflat (vector vector_cosine_ops)|vector <=> '[1,1,1,1,1,1,1,1]'})
	{
		my ($definition, $order) = split /\|/, $index, 2;
		my $search = "SELECT string_agg(d::text, ' ') FROM (SELECT $order AS d FROM items ORDER BY $order LIMIT 5) s";
		my $expected = $node->safe_psql('swapped', $search);
		$node->safe_psql('swapped', "DROP INDEX IF EXISTS searched; CREATE INDEX searched ON items USING $definition");
		is($node->safe_psql('swapped', "SET enable_seqscan = off; SET pgwarp.recall = 0.9999; $search"), $expected, "a catalog of pgvector's own: $definition");
		like($node->safe_psql('swapped', "SET enable_seqscan = off; EXPLAIN $search"), qr/Index Scan using searched/, 'by the index');
	}
}

$node->stop;
done_testing();
