# Databases go by pg_dump and pg_restore -j 4 from pgvector to pgwarp's extension `vector`, back, and between databases that
# have pgvector and the bridge. What a server lacks is refused by name, and the rest is restored.
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
plan skip_all => 'no pgvector: neither PGVECTOR_SOURCE nor an installed one' if !stage_pgvector();

sub start_node
{
	my ($name, @lines) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	configure($node, 'client_min_messages' => 'warning', 'jit' => 'off');
	$node->append_conf('postgresql.conf', $_) for @lines;
	$node->start;
	return $node;
}
my $theirs = start_node('pgvector');
chomp(my $libraries = `pg_config --pkglibdir`);
$ENV{PGWARP_DESTDIR} = $staged;
my $ours = start_node('shim', "dynamic_library_path = '$staged$libraries:\$libdir'");

# What an application of pgvector may have. Dumps create its objects without a search_path.
my $application = q{
	CREATE SCHEMA shop; SET search_path = shop, public;
	CREATE DOMAIN unit AS vector(3) CHECK (vector_norm(VALUE) < 1.001);
	CREATE TYPE pair AS (v vector(2), s sparsevec(5));
	CREATE FUNCTION similarity(a vector, b vector) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1 - (a OPERATOR(public.<=>) b)';
	CREATE AGGREGATE total(vector) (sfunc = vector_add, stype = vector, parallel = safe);
	CREATE TABLE items (id int PRIMARY KEY, kind int,
		v vector(8) NOT NULL DEFAULT '[1,2,3,4,5,6,7,8]' CHECK (vector_dims(v) = 8 AND v <-> '[0,0,0,0,0,0,0,0]' < 100),
		h halfvec(8), b bit(8), s sparsevec(8), any_length vector, list vector(2)[], u unit, p pair,
		half halfvec(8) GENERATED ALWAYS AS (v::halfvec(8)) STORED, signs bit(8) GENERATED ALWAYS AS (binary_quantize(v)::bit(8)) STORED,
		first_three vector(3) GENERATED ALWAYS AS (subvector(v, 1, 3)) STORED);
	ALTER TABLE items ALTER v SET STORAGE PLAIN, ALTER h SET STATISTICS 50;
	INSERT INTO items SELECT i, i % 5, a, a, (i % 251)::bit(8), a::vector(8)::sparsevec(8), a[1:3 + i % 2], ARRAY[a[1:2]::vector(2), a[3:4]::vector(2)], l2_normalize(a[1:3]::vector),
		ROW(a[1:2]::vector, '{1:1,5:2}/5')::pair
		FROM (SELECT i, ARRAY(SELECT (hashint8(i * 8 + j) % 1000) / 1000.0 FROM generate_series(1, 8) j)::real[] a FROM generate_series(1, 1200) i) drawn;
	INSERT INTO items VALUES (0);
	CREATE INDEX items_l2 ON items USING hnsw (v vector_l2_ops) WITH (m = 8, ef_construction = 40);
	CREATE INDEX items_ip ON items USING ivfflat (v vector_ip_ops) WITH (lists = 10);
	CREATE INDEX items_l1 ON items USING hnsw (h halfvec_l1_ops);
	CREATE INDEX items_half ON items USING ivfflat (half halfvec_cosine_ops) WITH (lists = 5);
	CREATE INDEX items_bits ON items USING ivfflat (b bit_hamming_ops) WITH (lists = 4);
	CREATE INDEX items_signs ON items USING hnsw (signs bit_jaccard_ops);
	CREATE INDEX items_sparse ON items USING hnsw (s sparsevec_cosine_ops);
	CREATE INDEX items_any ON items USING hnsw ((any_length::vector(4)) vector_l2_ops) WHERE vector_dims(any_length) = 4;
	CREATE INDEX items_quantized ON items USING hnsw ((binary_quantize(v)::bit(8)) bit_hamming_ops);
	CREATE UNIQUE INDEX items_tree ON items (v, id);
	COMMENT ON INDEX items_l2 IS 'searched most';
	CREATE TABLE parts (id int, kind int, v vector(8)) PARTITION BY LIST (kind);
	CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (0, 1); CREATE TABLE parts_b PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT id, kind, v FROM items;
	CREATE INDEX parts_v ON parts USING hnsw (v vector_cosine_ops);
	CREATE INDEX parts_lists ON parts USING ivfflat (v vector_l2_ops) WITH (lists = 3);
	CREATE TABLE guarded (id int, v vector(8), near boolean);
	CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql SET search_path = shop, public AS $$ BEGIN new.near := new.v <-> '[0,0,0,0,0,0,0,0]' < 1.2; RETURN new; END $$;
	CREATE TRIGGER judge BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION judge();
	ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
	CREATE POLICY near ON guarded USING (v <-> '[0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5]' < 1);
	INSERT INTO guarded SELECT id, v FROM items WHERE id <= 100;
	CREATE FUNCTION nearest(q vector, n int) RETURNS SETOF int LANGUAGE sql STABLE SET search_path = shop, public AS 'SELECT id FROM items ORDER BY v <-> q LIMIT n';
	CREATE VIEW means AS SELECT kind, avg(v) AS mean, sum(h) AS halves, total(v) AS total FROM items GROUP BY kind;
	CREATE MATERIALIZED VIEW top AS SELECT id, l2_normalize(v)::vector(8) AS v FROM items WHERE id % 3 = 0;
	CREATE INDEX top_v ON top USING hnsw (v vector_ip_ops);
	ANALYZE};
my $q = q{'[.1,.2,.3,.4,.5,.6,.7,.8]'};
my %orders = (items_l2 => "v <-> $q", items_ip => "v <#> $q", items_l1 => "h <+> $q", items_half => "half <=> $q", items_bits => q{b <~> B'01010101'}, items_signs => q{signs <%> B'01010111'},
	items_sparse => q{s <=> '{1:.1,3:.3,8:.8}/8'}, items_any => q{any_length::vector(4) <-> '[.1,.2,.3,.4]'}, items_quantized => "binary_quantize(v)::bit(8) <~> B'11110000'");
my $database = 0;

sub fill
{
	my ($node, $name, $before) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, "CREATE EXTENSION vector; $before");
	$node->safe_psql($name, $application);
	return;
}

# All objects, as statements.
sub schema
{
	my ($node, $name) = @_;
	my ($out) = run_command([ 'pg_dump', '-s', '-d', $node->connstr($name) ]);
	return $out =~ s/^(?:--.*|\\(?:un)?restrict .*|)\n//mgr;
}

# All rows, and the answers of functions and views. Sums and distances are rounded, since both add up in other ways.
sub rows
{
	my ($node, $name) = @_;
	return $node->safe_psql($name, q{SET search_path = shop, public; SELECT * FROM items ORDER BY id; SELECT tableoid::regclass, * FROM parts ORDER BY id; SELECT * FROM guarded ORDER BY id;
		SELECT kind, l2_distance(mean, '[0,0,0,0,0,0,0,0]')::numeric(12, 4), halves, l1_distance(total, mean)::numeric(12, 2) FROM means ORDER BY kind;
		SELECT id, inner_product(v, v)::numeric(6, 4) FROM top ORDER BY id; SELECT * FROM nearest('[.1,.2,.3,.4,.5,.6,.7,.8]', 5); SELECT similarity('[1,2]', '[2,1]')::numeric(6, 4)});
}

# The distances of the nearest rows by each index, beside those without it: how many of these were found.
sub check_answers
{
	my ($node, $name, $label) = @_;
	my $found = 0;
	for my $index (sort keys %orders)
	{
		my $where = $index eq 'items_any' ? 'WHERE vector_dims(any_length) = 4' : '';
		my $search = "SELECT round(($orders{$index})::numeric, 4) AS d FROM items $where ORDER BY $orders{$index} LIMIT 10";
		my $settings = 'SET search_path = shop, public; SET enable_seqscan = off; SET enable_sort = off; SET ivfflat.probes = 10; SET pgwarp.recall = 0.99';
		like($node->safe_psql($name, "$settings; EXPLAIN (COSTS OFF) $search"), qr/Index Scan using \w+/, "$label: $index is used");
		my @exact = split /\n/, $node->safe_psql($name, "SET search_path = shop, public; SET enable_indexscan = off; SET enable_indexonlyscan = off; $search");
		my %left;
		$left{$_}++ for split /\n/, $node->safe_psql($name, "$settings; $search");
		$found += grep { ($left{$_} // 0) > 0 && $left{$_}-- } @exact;
	}
	cmp_ok($found, '>=', 0.9 * 10 * keys %orders, "$label: the nearest rows by the indexes");
	return;
}

# Dump in a format; returns the file or folder.
sub dump_of
{
	my ($node, $name, $format) = @_;
	my $file = $node->basedir . "/$name.$format";
	$node->command_ok([ 'pg_dump', '-F', $format, $format eq 'directory' ? ('-j', 2) : (), '-f', $file, $node->connstr($name) ], "pg_dump of $name, $format");
	return $file;
}

# Restore into a new database in which a statement was run; returns its name, the errors in alphabetical order, and all that was printed.
sub restore
{
	my ($file, $node, $before) = @_;
	my $name = 'restored' . ++$database;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, $before) if $before;
	my ($out, $err) = run_command([ 'pg_restore', '-j', 4, '-d', $node->connstr($name), $file ]);
	return ($name, join("\n", sort $err =~ /^pg_restore: error: .*?: ERROR: +(.*)$/mg), $err);
}

fill($theirs, 'plain', '');
fill($ours, 'served', '');
my $beside = 'CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp; CREATE EXTENSION pgwarp_pgvector';
fill($theirs, 'bridged', $beside);
$theirs->safe_psql('bridged', q{SET search_path = shop, public, pgwarp; CREATE INDEX bridge_graph ON items USING graph (v vector_l2_ops) WITH (degree = 16);
	CREATE INDEX bridge_lists ON items USING ivfadc (half halfvec_cosine_ops, kind); CREATE INDEX bridge_bits ON items USING exact (signs bit_hamming_ops);
	CREATE INDEX bridge_parts ON parts USING pqtree (v vector_ip_ops); CREATE TABLE own (id int, v pgwarp.vector(8)); INSERT INTO own SELECT id, v FROM items; CREATE INDEX own_v ON own USING exact (v)});

# Whole databases, there and back.
for my $way ([ $theirs, 'plain', $ours, 'pgvector to the shim' ], [ $ours, 'served', $theirs, 'the shim to pgvector' ], [ $theirs, 'bridged', $theirs, 'pgvector and the bridge' ])
{
	my ($from, $name, $to, $label) = @$way;
	for my $format ('custom', 'directory')
	{
		my ($restored, undef, $printed) = restore(dump_of($from, $name, $format), $to);
		is($printed, '', "$label, $format: no error");
		is(schema($to, $restored), schema($from, $name), "$label, $format: all objects");
		is(rows($to, $restored), rows($from, $name), "$label, $format: all rows");
		check_answers($to, $restored, "$label, $format");
	}
}

# pgwarp's own indexes, where only pgvector is, and where the bridge was made before.
$ours->safe_psql('served', 'SET search_path = shop, public; CREATE INDEX items_graph ON items USING graph (v vector_l2_ops, kind); CREATE INDEX items_text ON items USING matchcount ((kind::text)); CREATE INDEX items_counts ON items USING matchcount (s sparsevec_ip_ops)');
my $served = dump_of($ours, 'served', 'custom');
my ($name, $errors) = restore($served, $theirs);
is($errors, join("\n", map { qq{access method "$_" does not exist} } 'graph', 'matchcount', 'matchcount'), 'pgvector alone refuses indexes of pgwarp by name');
is(rows($theirs, $name), rows($ours, 'served'), 'and has the rest');
check_answers($theirs, $name, 'and has the rest');
($name, $errors) = restore($served, $theirs, "CREATE EXTENSION vector; $beside");
is($errors, '', 'the bridge, made before, has all their classes');
is($theirs->safe_psql($name, q{SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY indexrelid::regclass::text) FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
	WHERE amname IN ('graph', 'matchcount')}), 'shop.items_counts shop.items_graph shop.items_text', 'and has the indexes');

# A database with the bridge has extensions that the shim's server refuses. The shim has all methods of pgwarp.
my $bridged = dump_of($theirs, 'bridged', 'custom');
my $printed;
($name, $errors, $printed) = restore($bridged, $ours);
like($printed, qr/extension "vector" cannot be in one database with extension "pgwarp"\n.*\nHINT:  Extension "vector" of pgwarp has all/, 'of both extensions the first one stays');
($name, $errors, $printed) = restore($bridged, $ours, 'CREATE EXTENSION vector');
is($errors, join("\n", 'extension "pgwarp" cannot be in one database with extension "vector"', 'extension "pgwarp" does not exist', 'extension "pgwarp_pgvector" does not exist',
	('relation "shop.own" does not exist') x 3, 'required extension "pgwarp" is not installed', 'type "pgwarp.vector" does not exist'),
	'with the shim made before, columns of the type in schema pgwarp are refused');
is(rows($ours, $name), rows($theirs, 'bridged'), 'and the rest is restored');
is($ours->safe_psql($name, q{SELECT count(*) FROM pg_class WHERE relname ~ '^bridge_|^items_' AND relkind = 'i'}), 14, 'with its indexes of pgwarp and of pgvector');
check_answers($ours, $name, 'and the rest is restored');

$theirs->stop;
$ours->stop;
done_testing();
