# An index of text by edit distance: built by several processes and while others write, inserted, vacuumed and merged, and
# crashed in between; the engine is killed, and the answers stay those of the table. Needs a build with PGWARP_FAULTS.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGWARP_WAL_CONSISTENCY} = 1;
my $node = new_cluster('matchcount', 'autovacuum' => 'off', 'restart_after_crash' => 'on', 'max_worker_processes' => 16);
sub sql { return $node->safe_psql('postgres', @_) }

sql(q{
	CREATE TABLE titles (id int, title text);
	ALTER TABLE titles ALTER title SET STORAGE external;
	-- of some dozen characters; a few are empty, NULL, long or of several bytes
	CREATE FUNCTION made_text(i int) RETURNS text LANGUAGE sql AS $$
		SELECT CASE WHEN i % 97 = 3 THEN NULL WHEN i % 89 = 5 THEN '' WHEN i % 500 = 11 THEN repeat(md5(i::text), 300)
			ELSE translate(left(md5(i::text), 8 + i % 20), '0123456789abcdef', 'aabbccdd eéжжΩ漢😀') END $$;
	CREATE FUNCTION insert_titles(first int, last int) RETURNS void LANGUAGE sql AS
		'INSERT INTO titles SELECT i, made_text(i) FROM generate_series(first, last) i';
	SELECT insert_titles(1, 3000);
});

# The index holds the rows of the table, and the nearest are those of the sort.
sub expect_whole
{
	my ($name) = @_;
	my $query = q{SELECT string_agg(d::text, ' ') FROM (SELECT q FROM (VALUES (made_text(77)), ('x' || made_text(1500)), (''), ('no such title at all')) v (q)) q,
		LATERAL (SELECT title <~~> q AS d FROM titles ORDER BY title <~~> q LIMIT 20) n};
	is(sql("SET enable_seqscan = off; SET enable_sort = off; $query"), sql("SET enable_indexscan = off; $query"), "$name: answers");
	is(sql("SELECT live_rows >= (SELECT count(*) FROM titles) FROM pgwarp_check('titles_title', true)"), 't', "$name: whole");
	return;
}

sql('ALTER TABLE titles SET (parallel_workers = 2); SET max_parallel_maintenance_workers = 2; CREATE INDEX titles_title ON titles USING matchcount (title)');
expect_whole('built in parallel');
sql('SELECT insert_titles(3001, 3500)');
expect_whole('inserted');
sql(q{CALL pgwarp_merge('titles_title')});
expect_whole('merged');
sql('DELETE FROM titles WHERE id % 3 = 1; VACUUM (INDEX_CLEANUP ON) titles; SELECT insert_titles(4001, 4300)');
expect_whole('deleted and inserted');
sql(q{CALL pgwarp_merge('titles_title')});
expect_whole('written anew without dead rows');
my $bytes = sql("SELECT bytes FROM pgwarp_index_info('titles_title')");

# Writers go on while the index is built.
sql('DROP INDEX titles_title');
my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; SELECT insert_titles(5001, 5100)');
my $builder = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CREATE INDEX CONCURRENTLY titles_title ON titles USING matchcount (title)' ],
	'>', \my $out, '2>', \my $err);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_progress_create_index}) or die 'the build has not begun';
$writer->query_safe('COMMIT');
$writer->query_safe('SELECT insert_titles(5101, 5200)');
$writer->quit;
$builder->finish;
is($err, '', 'built concurrently');
expect_whole('built concurrently');

# A crash at any step leaves the old generation of the index or the new one.
my $crashes = 0;
for (my $step = 1; $step < 3000; $step += 1 + int($step / 2))
{
	sql("SELECT insert_titles(10000 + $step * 10, 10000 + $step * 10 + 9); DELETE FROM titles WHERE id % 7 = $step % 7");
	sql('VACUUM (INDEX_CLEANUP ON) titles') if $step % 2;
	my $log_end = -s $node->logfile;
	my ($rc) = $node->psql('postgres', "SELECT FROM pgwarp_index_info('titles_title'); SET pgwarp.fault_step = $step; CALL pgwarp_merge('titles_title')");
	last if $rc == 0;
	++$crashes;
	await_restart($node, $log_end);
	expect_whole("merge crashed at step $step");
}
cmp_ok($crashes, '>', 3, "$crashes crashes of merges");
for my $step (1, 2, 4, 7, 11)
{
	my $log_end = -s $node->logfile;
	my ($rc) = $node->psql('postgres', "SELECT FROM pgwarp_index_info('titles_title'); SET pgwarp.fault_step = $step; SELECT insert_titles(60000 + $step * 100, 60000 + $step * 100 + 30)");
	next if $rc == 0;
	await_restart($node, $log_end);
	expect_whole("insert crashed at step $step");
}
sql(q{VACUUM (INDEX_CLEANUP ON) titles; CALL pgwarp_merge('titles_title')});
expect_whole('merged after crashes');

# The engine is killed: a search starts another, which loads the index from its pages.
my $engine = engine_pid($node);
kill 'KILL', $engine;
expect_whole('another engine');
isnt(engine_pid($node), $engine, 'it is another one');

sql('DELETE FROM titles; VACUUM (INDEX_CLEANUP ON) titles');
sql(q{CALL pgwarp_merge('titles_title')});
expect_whole('emptied');
sql(q{SELECT insert_titles(1, 300); CALL pgwarp_merge('titles_title')});
expect_whole('merged into an emptied index');
cmp_ok(sql("SELECT bytes FROM pgwarp_index_info('titles_title')"), '<', $bytes, 'it is smaller');
sql('REINDEX TABLE titles');
expect_whole('built anew');

# An unlogged index is empty after a crash, and takes rows.
sql('CREATE UNLOGGED TABLE loose (title text); CREATE INDEX loose_title ON loose USING matchcount (title); INSERT INTO loose SELECT title FROM titles');
$node->stop('immediate');
$node->start;
expect_whole('after a crash of the server');
is(sql('SELECT count(*) FROM loose'), 0, 'unlogged: empty');
sql(q{INSERT INTO loose VALUES ('house'), ('mouse')});
is(sql(q{SET enable_seqscan = off; SELECT title FROM loose ORDER BY title <~~> 'moose' LIMIT 1}), 'mouse', 'unlogged: takes rows');

$node->stop;
done_testing();
