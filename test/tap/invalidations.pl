# Invalidations of the relation cache in the middle of searches: the cache frees what it keeps of an index, and the
# search goes on. The server's allocator overwrites freed memory, so that nobody can use it unnoticed.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{MALLOC_PERTURB_} = 165;
my $node = new_cluster('invalidations', allow_system_table_mods => 'on', allow_in_place_tablespaces => 'on');

# Each evaluation of the index's expression invalidates the index, as taking another session's invalidation does.
$node->safe_psql('postgres', q{
	CREATE FUNCTION invalidate(index text) RETURNS void LANGUAGE sql AS
		'UPDATE pg_class SET reltuples = reltuples WHERE relname = index';
	CREATE FUNCTION invalidating(a real) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		IF current_setting('my.invalidates', true) = 'on' THEN PERFORM public.invalidate('moved_v'); END IF;
		RETURN ARRAY[a, a * a * 0.001, 1]::public.vector;
	END $$;
	CREATE TABLE moved (id int, a real);
	INSERT INTO moved SELECT i, i FROM generate_series(1, 2000) i;
	CREATE INDEX moved_v ON moved USING graph ((invalidating(a)::vector(3))) INCLUDE (id);
	INSERT INTO moved SELECT i, i FROM generate_series(2001, 2100) i;
	VACUUM ANALYZE moved});
my $recall = q{SELECT pgwarp_recall('moved_v', 5, 20)};
my $invalidates = 'SET my.invalidates = on; SET enable_seqscan = off;';
is($node->safe_psql('postgres', "$invalidates $recall"), $node->safe_psql('postgres', $recall), 'recall of an index that is invalidated by each row');

# A sort's first temporary file looks for its tablespace, and takes the invalidations of other sessions.
$node->safe_psql('postgres', q{
	CREATE TABLESPACE elsewhere LOCATION '';
	CREATE TABLE late (id int, v vector(2));
	INSERT INTO late SELECT i, CASE WHEN i <= 50 THEN ARRAY[i, 1]::vector END FROM generate_series(1, 300000) i;
	CREATE INDEX late_v ON late USING exact (v);
	VACUUM ANALYZE late});
my $query = q{SELECT count(*), count(v), sum(id) FROM (SELECT * FROM late ORDER BY v <-> '[1,1]' LIMIT %s) s;};
my ($reader, $changer) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$reader->query_safe("SET enable_seqscan = off; SET temp_tablespaces = 'elsewhere'; SET work_mem = '64kB'; " . sprintf($query, 10));  # the planner looks for tablespaces too, once
$changer->query_safe('BEGIN; LOCK pg_tablespace');
$reader->query_until(qr/begun/, "\\echo begun\n" . sprintf($query, 'ALL') . "\n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted'), 'the sort waits for its tablespace');
$changer->query_safe(q{SELECT invalidate('late_v'); COMMIT});
is($reader->query('SELECT 1'), "300000|50|45000150000\n1", 'rows without a place behind an invalidation');
$_->quit for $reader, $changer;

$node->stop;
done_testing();
