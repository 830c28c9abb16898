# A database whose catalogs are those of version 0.1.0 works with the library, and ALTER EXTENSION UPDATE makes them
# those of a new one.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpCatalog;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('update');
$node->safe_psql('postgres', 'CREATE DATABASE old');
sub old { return $node->safe_psql('old', @_) }

old(q{CREATE EXTENSION pgwarp VERSION '0.1.0';
	CREATE TABLE items (id int, v vector(3), h halfvec(3), b bit(16));
	INSERT INTO items SELECT i, ARRAY[i, i % 7, -i]::vector, ARRAY[i, i % 7, -i]::halfvec, i::bit(16) FROM generate_series(1, 300) i;
	CREATE INDEX items_v ON items USING exact (v);
	CREATE INDEX items_ip ON items USING ivfadc (v vector_ip_ops) WITH (lists = 1, refine = full);
	CREATE INDEX items_h ON items USING exact (h halfvec_cosine_ops);
	CREATE INDEX items_b ON items USING graph (b bit_hamming_ops);
	CREATE FUNCTION answers() RETURNS SETOF text LANGUAGE sql SET enable_seqscan = off SET enable_sort = off AS $$
		(SELECT string_agg(id || ' ' || v, ',') FROM (SELECT id, v FROM items ORDER BY v <-> '[40,5,-39.5]' LIMIT 6) s)
		UNION ALL (SELECT string_agg(id::text, ',') FROM (SELECT id FROM items ORDER BY v <#> '[40,5,-39.5]' LIMIT 6) s)
		UNION ALL (SELECT string_agg(id || ' ' || h, ',') FROM (SELECT id, h FROM items ORDER BY h <=> '[40,5,-39.5]' LIMIT 6) s)
		UNION ALL (SELECT id::text FROM items ORDER BY b <~> 40::bit(16) LIMIT 1)
		UNION ALL (SELECT string_agg(query || ' ' || distance, ',') FROM knn_search('items_h', ARRAY['[1,0,-1]'::halfvec], 3))
		UNION ALL (SELECT count(*)::text FROM knn_graph('items_v', 2))
		UNION ALL (SELECT string_agg(centroid::text, ',' ORDER BY id) FROM kmeans('items', 'h', 1))
		UNION ALL (SELECT nearest_centroid('[1,2]', ARRAY['[0,0]', '[1,1]']::vector[]) || ' ' || avg(v) || sum(h) || (v + v) || vector_dims(h) FROM items GROUP BY v, h ORDER BY v LIMIT 1)
	$$});
# A session that has cached the operator classes stays open over the update.
my $session = $node->background_psql('old');
my $before = $session->query_safe('SELECT string_agg(a, E\'\n\') FROM answers() a');
like($before, qr/^40 \[40,5,-40\]/, 'version 0.1.0: searches');
is($session->query_safe('SELECT string_agg(a, E\'\n\') FROM answers() a'), $before, 'version 0.1.0: again');
is($session->query_safe("SELECT count(*) FROM pgwarp_status WHERE index::text LIKE 'items%'"), 4, 'version 0.1.0: its view');
is($session->query_safe('SELECT bool_and(amvalidate(o.oid)) FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod WHERE m.amhandler::text LIKE \'%pgwarp%\''),
	't', 'version 0.1.0: operator classes are valid');

old('ALTER EXTENSION pgwarp UPDATE');
is($session->query_safe('SELECT string_agg(a, E\'\n\') FROM answers() a'), $before, 'updated: the same answers, in an old session');
is(old('SELECT string_agg(a, E\'\n\') FROM answers() a'), $before, 'and in a new one');
is($session->query_safe("SELECT count(*) FROM pgwarp_status_indexes WHERE index::text LIKE 'items%'"), 4, 'updated: the new view');
$session->quit;
old("INSERT INTO items SELECT i, ARRAY[i, 0, -i]::vector, ARRAY[i, 0, -i]::halfvec, i::bit(16) FROM generate_series(301, 320) i; REINDEX TABLE items; SELECT pgwarp_check('items_h', true)");

# Every row of the catalogs: types, functions, aggregates, operators, classes, casts, views, their columns, comments and rights.
my @fresh = catalog_of($node, 'postgres', 'pgwarp');
sub differences
{
	my ($before, @now) = @_;
	my %count;
	$count{$_}++ for @now;
	$count{$_}-- for @$before;
	return map { ($count{$_} > 0 ? 'new: ' : 'gone: ') . $_ } sort grep { $count{$_} } keys %count;
}
cmp_ok(scalar(@fresh), '>', 1000, 'rows of catalogs are compared');
is(join("\n", differences(\@fresh, catalog_of($node, 'old', 'pgwarp'))), '', 'updated catalogs are those of a new database');

# The comparison sees each kind of change.
$node->safe_psql('postgres', 'CREATE DATABASE changed');
$node->safe_psql('changed', 'CREATE EXTENSION pgwarp');
my @before = catalog_of($node, 'changed', 'pgwarp');
is(join("\n", differences(\@fresh, @before)), '', 'two new databases have the same catalogs');
for my $change ('ALTER FUNCTION l2_distance(vector, vector) VOLATILE', 'ALTER FUNCTION l2_distance(vector, vector) COST 7',
	'ALTER FUNCTION vector_dims(vector) PARALLEL UNSAFE', 'GRANT EXECUTE ON FUNCTION pgwarp_release(regclass) TO pg_monitor',
	'ALTER OPERATOR < (vector, vector) SET (RESTRICT = NONE)', q{COMMENT ON FUNCTION pgwarp_release(regclass) IS 'other'},
	'ALTER TYPE halfvec SET (STORAGE = main)', 'ALTER VIEW pgwarp_status ALTER COLUMN index SET DEFAULT 0', 'REVOKE SELECT ON pgwarp_status FROM PUBLIC',
	q{UPDATE pg_opclass SET opcdefault = NOT opcdefault WHERE opcname = 'vector_l1_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'exact')},
	q{UPDATE pg_cast SET castcontext = 'e' WHERE castsource = 'vector'::regtype AND casttarget = 'real[]'::regtype},
	q{UPDATE pg_aggregate SET agginitval = '{1}' WHERE aggfnoid = 'avg(vector)'::regprocedure},
	q{DELETE FROM pg_amproc WHERE oid = (SELECT max(oid) FROM pg_amproc)})
{
	$node->safe_psql('changed', $change);
	my @now = catalog_of($node, 'changed', 'pgwarp');
	cmp_ok(scalar(differences(\@before, @now)), '>', 0, "seen: $change");
	@before = @now;
}
is(old("SELECT count(*) FROM pg_proc WHERE probin LIKE '%pgwarp' AND prosrc NOT LIKE 'pgwarp\\_%'"), 0, 'no function has a C name that others may have');

# A table may have the name of a new type.
$node->safe_psql('postgres', 'CREATE DATABASE taken');
$node->safe_psql('taken', "CREATE EXTENSION pgwarp VERSION '0.1.0'; CREATE TABLE attributes (id int)");
my ($taken, $out, $refusal) = $node->psql('taken', 'ALTER EXTENSION pgwarp UPDATE');
like($refusal, qr/type "attributes" already exists in schema "public"\n.*SET SCHEMA/, 'a table with the name of a new type: refused');
is($node->psql('taken', 'CREATE SCHEMA moved; ALTER EXTENSION pgwarp SET SCHEMA moved; ALTER EXTENSION pgwarp UPDATE'), 0, 'in another schema it is updated');

# Nor does the library export any name but those of version 0.1.0 and its own.
SKIP:
{
	my $library = ($ENV{PGWARP_DESTDIR} // '') . $node->config_data('--pkglibdir') . '/pgwarp.so';
	my ($names) = run_command([ 'nm', '-D', '--defined-only', $library ]);
	skip 'no nm', 1 if $names !~ /_PG_init/;
	my @exported = $names =~ /^\w+ [TWBDRuV] (\w+)$/mg;
	# Templates of the standard library are weak symbols wherever they are used.
	my @foreign = grep { !/^(?:pgwarp_|pg_finfo_|_ZNS?t|_ZNKS?t|Pg_magic_func|_PG_init)/ } @exported;
	my %old_names = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', "CREATE DATABASE names") . $node->safe_psql('names', "CREATE EXTENSION pgwarp VERSION '0.1.0'; SELECT DISTINCT prosrc FROM pg_proc WHERE probin LIKE '%pgwarp'");
	is(join(' ', grep { !$old_names{$_} } @foreign), '', 'no other names are exported');
}
$node->stop;
done_testing();
