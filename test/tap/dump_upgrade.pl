# pg_dump and restore keep options, operator classes and INCLUDE; pg_upgrade takes indexes over as they are.
#   PGWARP_OLD_INSTALL   prefix of an older PostgreSQL, to be upgraded from (unset: the one under test); pgwarp is installed
#                        there, or staged in PGWARP_OLD_DESTDIR
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpDatabase;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Cwd;

my $old = PostgreSQL::Test::Cluster->new('old', install_path => $ENV{PGWARP_OLD_INSTALL} || undef);
# Newer servers have checksums by default.
$old->init(allows_streaming => 1, extra => ['--data-checksums']);
configure($old, 'autovacuum' => 'off', 'jit' => 'off');
$old->start;
sub sql { return $old->safe_psql(@_) }

fill_database($old, 'postgres');
sql('postgres', q{
	CREATE TABLE others (id int, v vector(3), w vector, name text) PARTITION BY LIST (id);
	CREATE TABLE others_1 PARTITION OF others FOR VALUES IN (1);
	CREATE TABLE others_2 PARTITION OF others FOR VALUES IN (2);
	CREATE INDEX others_v ON others USING ivfadc (v) INCLUDE (name) WITH (codes = int8, refine = full, lists = 1);
	CREATE INDEX others_expression ON others USING exact ((w::vector(2)) vector_cosine_ops) WITH (vectors = half) WHERE name IS NOT NULL;
	CREATE INDEX others_l1 ON others_1 USING exact ((l2_normalize(v)::vector(3)) vector_l1_ops);
	INSERT INTO others SELECT 1 + i % 2, ARRAY[i, i % 3, -i]::vector, ARRAY[i + 1, 1]::vector, 'name ' || i FROM generate_series(1, 300) i;
	CREATE UNLOGGED TABLE unlogged (v vector(2)); CREATE INDEX unlogged_v ON unlogged USING exact (v);
	INSERT INTO unlogged VALUES ('[1,2]');
	CREATE MATERIALIZED VIEW viewed AS SELECT id, v FROM items; CREATE INDEX viewed_v ON viewed USING exact (v);
	CREATE INDEX viewed_graph ON viewed USING graph (v vector_ip_ops) INCLUDE (id) WITH (vectors = bits, bits = 64, degree = 8);
	CREATE TABLE empty (v vector(4)); CREATE INDEX empty_v ON empty USING ivfadc (v);
	CREATE TABLE halves (id int, h halfvec(3));
	INSERT INTO halves SELECT i, ARRAY[i, i % 3 + 0.1, -i]::halfvec FROM generate_series(1, 200) i;
	CREATE INDEX halves_exact ON halves USING exact (h halfvec_cosine_ops) INCLUDE (id);
	CREATE INDEX halves_ivfadc ON halves USING ivfadc (h) WITH (lists = 1);
	CREATE INDEX halves_pqtree ON halves USING pqtree ((h::vector(3)) vector_ip_ops) INCLUDE (id) WITH (parts = 3, refine = full);
	CREATE INDEX halves_graph ON halves USING graph (h halfvec_ip_ops);
	INSERT INTO halves SELECT i, ARRAY[i, i % 3 + 0.1, -i]::halfvec FROM generate_series(201, 250) i;
	CREATE TABLE documents (id int, words tsvector);
	INSERT INTO documents SELECT i, array_to_tsvector(ARRAY['w' || i % 7, 'v' || i % 11]) FROM generate_series(1, 200) i;
	CREATE INDEX documents_words ON documents USING matchcount (words tsvector_bm25_ops);
	-- A default and a view that hold the name of the index: a dump creates them before it.
	ALTER TABLE documents ADD asked bm25_query DEFAULT bm25_query('public.documents_words', 'w1 & v1'::tsquery);
	CREATE VIEW answered AS SELECT id FROM documents ORDER BY words <&> bm25_query('public.documents_words', 'w1 & v1'::tsquery), id LIMIT 3});
my $definitions = q{SELECT string_agg(pg_get_indexdef(i.oid) || coalesce(' ' || array_to_string(i.reloptions, ','), ''), E'\n' ORDER BY i.relname COLLATE "C")
	FROM pg_class i JOIN pg_am a ON a.oid = i.relam WHERE a.amhandler::text LIKE '%pgwarp%'};
my $expected = sql('postgres', $definitions);
is(scalar(() = $expected =~ /^CREATE/mg), 29, 'indexes to be dumped');

# The answers of the other tables, by their indexes.
sub others
{
	my ($node, $db) = @_;
	return $node->safe_psql($db, q{SET enable_seqscan = off; SET enable_sort = off;
		SELECT string_agg(name, ',') FROM (SELECT name FROM others ORDER BY v <-> '[40.2,1,-40]' LIMIT 6) s;
		SELECT string_agg(name, ',') FROM (SELECT name FROM others WHERE name IS NOT NULL ORDER BY w::vector(2) <=> '[5.1,1]' LIMIT 3) s;
		SELECT string_agg(name, ',') FROM (SELECT name FROM others_1 ORDER BY l2_normalize(v)::vector(3) <+> '[0.7,0,-0.7]' LIMIT 1) s;
		SELECT string_agg(id::text, ',') FROM (SELECT id FROM viewed ORDER BY v <-> (SELECT v FROM items WHERE id = 5) LIMIT 5) s;
		SELECT string_agg(id || ':' || h, ',') FROM (SELECT id, h FROM halves ORDER BY h <=> '[240.2,1,-240]' LIMIT 6) s;
		SELECT string_agg(id::text, ',') FROM (SELECT id FROM halves ORDER BY h <-> '[240.2,1,-240]' LIMIT 6) s;
		SELECT string_agg(id::text, ',') FROM answered;
		SELECT v FROM unlogged ORDER BY v <-> '[0,0]'});
}
my $others = others($old, 'postgres');
sub all_checked
{
	my ($node, $db, $name) = @_;
	is($node->safe_psql($db, q{SELECT count(*) FROM pg_class i JOIN pg_am a ON a.oid = i.relam, pgwarp_check(i.oid, true) WHERE a.amhandler::text LIKE '%pgwarp%' AND i.relkind = 'i'}),
		27, "$name: every index is whole");
	return;
}
whole($old, 'postgres', 'old');
all_checked($old, 'postgres', 'old');

# Dump and restore.
my $dump = $old->basedir . '/dump';
for my $format ('plain', 'custom', 'directory')
{
	sql('postgres', "CREATE DATABASE $format");
	$old->command_ok([ 'pg_dump', '-F', $format, '-f', "$dump.$format", $old->connstr('postgres') ], "$format: pg_dump");
	$old->command_ok($format eq 'plain'
		? [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dump.$format", '-d', $old->connstr($format) ]
		: [ 'pg_restore', '-e', '-j', '2', '-d', $old->connstr($format), "$dump.$format" ], "$format: restore");
	is(sql($format, $definitions), $expected, "$format: definitions");
	whole($old, $format, $format);
	all_checked($old, $format, $format);
	is(others($old, $format), $others, "$format: other tables' answers");
	is(found($old, $format, 20, 'SET enable_seqscan = off', 'items_exact', 'items_partial'),
		found($old, 'postgres', 20, 'SET enable_seqscan = off', 'items_exact', 'items_partial'), "$format: exact answers");
}
sql('postgres', 'CREATE DATABASE schema_only');
$old->command_ok([ 'pg_dump', '-s', '-f', "$dump.schema", $old->connstr('postgres') ], 'schema only: pg_dump');
$old->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dump.schema", '-d', $old->connstr('schema_only') ], 'schema only: restore');
$old->command_ok([ 'bash', '-c', 'pg_dump -a -t items "$1" | psql -X -q -v ON_ERROR_STOP=1 -d "$2"', '-', $old->connstr('postgres'), $old->connstr('schema_only') ], 'rows into empty indexes');
sql('schema_only', 'VACUUM items');
whole($old, 'schema_only', 'rows into empty indexes');
sql('postgres', "DROP DATABASE $_") for 'plain', 'custom', 'directory', 'schema_only';

# pg_upgrade: the files of indexes are taken as they are, so that all answers stay the same.
my $answers = answers($old, 'postgres');
my $generations = "SELECT string_agg(i.relname || pgwarp_index_info(i.oid)::text, E'\n' ORDER BY i.relname) FROM pg_class i JOIN pg_am a ON a.oid = i.relam WHERE a.amhandler::text LIKE '%pgwarp%' AND i.relkind = 'i' AND i.relpersistence = 'p'";
my $info = sql('postgres', $generations);
$old->stop;
for my $mode ('copy', 'link')
{
	my $new = PostgreSQL::Test::Cluster->new("new_$mode");
	$new->init(allows_streaming => 1, extra => ['--data-checksums']);
	configure($new, 'autovacuum' => 'off', 'jit' => 'off');
	# pg_upgrade writes into the current folder.
	my $start = getcwd;
	chdir $new->basedir;
	my ($printed, $warned) = run_command([ 'pg_upgrade', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $old->config_data('--bindir'),
		'-B', $new->config_data('--bindir'), '-s', $new->host, '-p', $old->port, '-P', $new->port, $mode eq 'link' ? '--link' : () ]);
	chdir $start;
	like($printed, qr/Upgrade Complete/, "$mode: pg_upgrade ends") or BAIL_OUT("$printed$warned");
	$new->start;
	same_answers_as($answers, $new, 'postgres', $mode);
	is($new->safe_psql('postgres', $generations), $info, "$mode: the indexes of before");
	all_checked($new, 'postgres', $mode);
	is(others($new, 'postgres'), $others, "$mode: other tables' answers");
	is($new->safe_psql('postgres', $definitions), $expected, "$mode: definitions");
	$new->safe_psql('postgres', 'DELETE FROM items WHERE id % 7 = 3; VACUUM (INDEX_CLEANUP ON) items; INSERT INTO items ' . row_values(3001, 3300) . "; CALL pgwarp_merge('items_codes'); CALL pgwarp_merge('items_ivfadc'); CALL pgwarp_merge('items_tree'); CALL pgwarp_merge('items_tree_codes'); CALL pgwarp_merge('items_graph'); REINDEX TABLE others; INSERT INTO empty SELECT ARRAY[i, 1, 1, 1]::vector FROM generate_series(1, 10) i");
	whole($new, 'postgres', "$mode, changed");
	all_checked($new, 'postgres', "$mode, changed");
	$new->stop;
}
done_testing();
