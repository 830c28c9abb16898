# A database whose catalogs are those of version 0.1.0 works with the library, and ALTER EXTENSION UPDATE makes them
# those of a new one.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
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

# The members of the extension, their definitions and rights, and the members of operator families.
my $members = q{SELECT m FROM (
	SELECT concat_ws(' ', pg_describe_object(d.classid, d.objid, 0), pg_get_functiondef(p.oid), p.proacl, obj_description(p.oid, 'pg_proc')) AS m
		FROM pg_depend d LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid AND p.prokind <> 'a'
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pgwarp')
	UNION ALL
	SELECT concat_ws(' ', c.relname, pg_get_viewdef(c.oid), c.relacl, obj_description(c.oid, 'pg_class')) FROM pg_class c WHERE c.relname LIKE 'pgwarp%'
	UNION ALL
	SELECT concat_ws(' ', m.amname, f.opfname, a.amproclefttype::regtype, a.amprocnum, a.amproc::regproc)
		FROM pg_amproc a JOIN pg_opfamily f ON f.oid = a.amprocfamily JOIN pg_am m ON m.oid = f.opfmethod WHERE m.amhandler::text LIKE '%pgwarp%'
	UNION ALL
	SELECT concat_ws(' ', m.amname, f.opfname, a.amopstrategy, a.amopopr::regoperator)
		FROM pg_amop a JOIN pg_opfamily f ON f.oid = a.amopfamily JOIN pg_am m ON m.oid = f.opfmethod WHERE m.amhandler::text LIKE '%pgwarp%'
	) s WHERE m NOT LIKE 'function answers%' ORDER BY m COLLATE "C"};
my $updated = old($members);
cmp_ok(length $updated, '>', 20000, 'members are listed');
is($updated, $node->safe_psql('postgres', $members), 'updated catalogs are those of a new database');
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
