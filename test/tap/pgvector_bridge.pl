# The extension pgwarp_pgvector in a database: hints, casts between the types of both, dependencies, dumps, schemas of any name,
# and other versions of pgvector.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $copy = stage_pgvector();
plan skip_all => 'no pgvector: neither PGVECTOR_SOURCE nor an installed one' if !$copy;

# Install the script of version 0.7.4 beside the others, for a test of its update; false where the source has no history.
sub stage_old_script
{
	return 0 if !-e "$copy/.git" || system("git -C '$copy' rev-parse -q --verify v0.7.4 >/dev/null 2>&1") != 0;
	chomp(my $share = `pg_config --sharedir`);
	return system("git -C '$copy' show v0.7.4:sql/vector.sql >'$ENV{PGWARP_DESTDIR}$share/extension/vector--0.7.4.sql'") == 0;
}
my $has_old_script = stage_old_script();

my $node = PostgreSQL::Test::Cluster->new('bridge');
$node->init;
configure($node, 'client_min_messages' => 'warning');
$node->start;
my $database = 'postgres';

sub run_sql { return $node->safe_psql($database, "SET search_path = public, pgwarp; $_[0]") }

# The error of a statement that must fail.
sub error_of
{
	my ($code, $out, $error) = $node->psql($database, "SET search_path = public, pgwarp; $_[0]");
	return $code == 0 ? 'no error' : $error;
}

# The distances of the nearest rows by pgvector's operator, by an index or not.
sub nearest
{
	my ($query, $sequential) = @_;
	my $settings = $sequential ? 'SET enable_indexscan = off' : 'SET enable_seqscan = off; SET enable_sort = off';
	return run_sql("$settings; SELECT array_agg(d) FROM (SELECT v <=> (SELECT v FROM items WHERE id = $query) AS d FROM items ORDER BY v <=> (SELECT v FROM items WHERE id = $query) LIMIT 10) s");
}

my $create = 'CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp; CREATE EXTENSION pgwarp_pgvector';
run_sql('CREATE EXTENSION vector');
plan skip_all => 'halfvec came with pgvector 0.7.0' if run_sql("SELECT to_regtype('public.halfvec') IS NULL") eq 't';
run_sql($create);
run_sql(q{SELECT setseed(0.5); CREATE TABLE items (id int, v public.vector(24), h public.halfvec(24));
	INSERT INTO items SELECT i, ARRAY(SELECT random() + i * 0 FROM generate_series(1, 24))::real[] FROM generate_series(1, 1500) i; UPDATE items SET h = v::public.halfvec(24)});

# Hints.
like(error_of('CREATE INDEX ON items USING graph (v public.vector_l2_ops) WITH (m = 16)'), qr/unrecognized parameter "m".*degree = 32/s, 'm');
like(error_of('CREATE INDEX ON items USING graph (v public.vector_l2_ops) WITH (ef_construction = 64)'), qr/unrecognized parameter "ef_construction".*build_degree/s, 'ef_construction');
like(error_of('CREATE INDEX ON items USING exact (v public.vector_l2_ops) WITH (m = 16)'), qr/unrecognized parameter "m"$/m, 'm of a method that has no such thing');

# Columns change between the types without a rewrite, and with their dimensions.
run_sql('CREATE TABLE plain AS SELECT id, v::public.vector(24) AS v, h::public.halfvec(24) AS h, v::public.sparsevec(24) AS s FROM items');
my $file = run_sql("SELECT pg_relation_filenode('plain')");
run_sql('ALTER TABLE plain ALTER v TYPE pgwarp.vector(24), ALTER h TYPE pgwarp.halfvec(24), ALTER s TYPE pgwarp.sparsevec(24)');
is(run_sql("SELECT pg_relation_filenode('plain')"), $file, 'ALTER TYPE to pgwarp\'s types rewrites nothing');
is(run_sql("SELECT string_agg(format_type(atttypid, atttypmod), ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'plain'::regclass AND attnum > 1"), 'pgwarp.vector(24) pgwarp.halfvec(24) pgwarp.sparsevec(24)', 'the types');
like(error_of('ALTER TABLE plain ALTER v TYPE pgwarp.vector(23)'), qr/expected 23 dimensions, not 24/, 'other dimensions');
run_sql('ALTER TABLE plain ALTER v TYPE public.vector, ALTER h TYPE public.halfvec, ALTER s TYPE public.sparsevec');
is(run_sql("SELECT pg_relation_filenode('plain')"), $file, 'nor does the way back, without dimensions');
like(error_of('ALTER TABLE plain ALTER v TYPE pgwarp.vector(23)'), qr/expected 23 dimensions, not 24/, 'which are checked where they are unknown');
run_sql('ALTER TABLE plain ALTER v TYPE pgwarp.vector(24)');
isnt(run_sql("SELECT pg_relation_filenode('plain')"), $file, 'by reading all rows');
is(run_sql('SELECT count(*) FROM plain p JOIN items i USING (id) WHERE p.v::public.vector = i.v AND p.h = i.h AND p.s = i.v::public.sparsevec'), 1500, 'the values');

# Dependencies, and dumps.
like(error_of('DROP EXTENSION vector'), qr/cannot drop extension vector because other objects depend on it/, 'pgvector stays');
like(error_of('DROP EXTENSION pgwarp'), qr/cannot drop extension pgwarp because other objects depend on it/, 'pgwarp stays');
run_sql('CREATE INDEX items_exact ON items USING exact (v public.vector_cosine_ops); CREATE INDEX items_graph ON items USING graph (h) WITH (degree = 16)');
like(error_of('DROP EXTENSION pgwarp_pgvector'), qr/index items_exact depends on operator class vector_cosine_ops/, 'the bridge stays');
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-F', 'custom', '-f', $dump, $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '-e', '-j', '2', '-d', $node->connstr('restored'), $dump ], 'pg_restore -j2');
$database = 'restored';
is(nearest(333, 0), nearest(333, 1), 'the restored index answers');
cmp_ok(run_sql("SELECT pgwarp_recall('items_graph')"), '>', 0.9, 'and that of halves');
run_sql('DROP EXTENSION pgwarp_pgvector CASCADE; DROP EXTENSION vector CASCADE');
is(run_sql("SELECT count(*) FROM pg_opclass o JOIN pg_namespace n ON n.oid = o.opcnamespace WHERE n.nspname = 'public'"), 0, 'nothing is left of the bridge');

# Any schemas.
$node->safe_psql('postgres', 'CREATE DATABASE schemas');
$database = 'schemas';
$node->safe_psql($database, 'CREATE SCHEMA "Their ""types"""; CREATE SCHEMA "Our types"; CREATE EXTENSION vector SCHEMA "Their ""types"""; CREATE EXTENSION pgwarp SCHEMA "Our types";
	CREATE EXTENSION pgwarp_pgvector; CREATE TABLE t (v "Their ""types""".vector(2)); INSERT INTO t SELECT format(\'[%s,1]\', i)::"Their ""types""".vector FROM generate_series(1, 50) i; CREATE INDEX t_v ON t USING graph (v "Their ""types""".vector_l2_ops)');
is($node->safe_psql($database, q{SET enable_seqscan = off; SET enable_sort = off; SELECT string_agg(v::text, ' ') FROM (SELECT v FROM t ORDER BY v OPERATOR("Their ""types""".<->) '[7,1]' LIMIT 3) s}), '[7,1] [6,1] [8,1]', 'schemas of any name');

# Versions of pgwarp.
$node->safe_psql('postgres', 'CREATE DATABASE old');
$database = 'old';
run_sql("CREATE EXTENSION vector; CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp VERSION '0.1.0'");
like(error_of('CREATE EXTENSION pgwarp_pgvector'), qr/needs pgwarp 0\.2\.0 or later.*ALTER EXTENSION pgwarp UPDATE/s, 'an old version is refused');
run_sql("ALTER EXTENSION pgwarp UPDATE; CREATE EXTENSION pgwarp_pgvector; CREATE TABLE items AS SELECT i AS id, format('[%s,1]', i)::public.vector(2) AS v FROM generate_series(1, 300) i;
	CREATE INDEX items_index ON items USING exact (v public.vector_cosine_ops)");
is(nearest(20, 0), nearest(20, 1), 'and an updated one is not');

# Versions of pgvector.
SKIP:
{
	skip 'the source of pgvector has no history', 3 if !$has_old_script;
	$node->safe_psql('postgres', 'CREATE DATABASE versions');
	$database = 'versions';
	run_sql("CREATE EXTENSION vector VERSION '0.7.4'; $create");
	run_sql("CREATE TABLE items (id int, v public.vector(2)); INSERT INTO items SELECT i, format('[%s,%s]', i, i % 3)::public.vector FROM generate_series(1, 300) i; CREATE INDEX items_index ON items USING exact (v public.vector_cosine_ops)");
	is(nearest(20, 0), nearest(20, 1), 'beside pgvector 0.7.4');
	run_sql('ALTER EXTENSION vector UPDATE');
	isnt(run_sql("SELECT extversion FROM pg_extension WHERE extname = 'vector'"), '0.7.4', 'ALTER EXTENSION vector UPDATE');
	is(nearest(20, 0), nearest(20, 1), 'and after its update');
}
$node->stop;
done_testing();
