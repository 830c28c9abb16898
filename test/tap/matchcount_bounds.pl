# Statements that find their rows by a bound of the edit distance, while other sessions change these rows: PostgreSQL
# checks the changed row again, and so does the bound. Also after a cancel, and after the engine was killed.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('matchcount_bounds', 'autovacuum' => 'off');
sub sql { return $node->safe_psql('postgres', @_) }
sql(q{CREATE TABLE titles (id int, title text, hits int DEFAULT 0);
	INSERT INTO titles SELECT i, left(md5(i::text), 20) FROM generate_series(1, 3000) i;
	UPDATE titles SET title = 'neighbours' WHERE id = 17; UPDATE titles SET title = 'neighbour' WHERE id = 18; UPDATE titles SET title = 'the neighbours' WHERE id = 19;
	CREATE INDEX titles_title ON titles USING matchcount (title); ANALYZE titles});
my $bound = q{title <~~> 'neighbor' <= 2};
like(sql("EXPLAIN UPDATE titles SET hits = hits + 1 WHERE $bound"), qr/KnnFilter.*titles_title/s, 'by the index');

# One session changes the three rows and holds them; the other waits for each and checks it again.
for my $statement ("UPDATE titles SET hits = hits + 1 WHERE $bound", "SELECT id FROM titles WHERE $bound FOR UPDATE", "DELETE FROM titles WHERE $bound AND false IS DISTINCT FROM (id > 0)")
{
	sql(q{UPDATE titles SET hits = 0});
	my $first = $node->background_psql('postgres');
	$first->query_safe(q{BEGIN; UPDATE titles SET title = 'something else' WHERE id = 17; UPDATE titles SET title = 'neighbors' WHERE id IN (18, 19)});
	my $second = IPC::Run::start([ 'psql', '-XAt', '-d', $node->connstr('postgres'), '-c', $statement ], '>', \my $out, '2>', \my $err);
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) or die 'nobody waits';
	$first->query_safe('COMMIT');
	$first->quit;
	$second->finish;
	is($err, '', 'no error');
	# Row 17 went away, row 18 changed and still matches, row 19 was no match when the statement began.
	like($out, $statement =~ /SELECT/ ? qr/\A18\n/ : qr/ 1\n\z/, 'the rows that still match');
	sql(q{DELETE FROM titles WHERE id IN (17, 18, 19);
		INSERT INTO titles VALUES (17, 'neighbours'), (18, 'neighbour'), (19, 'the neighbours')});
}

# Cancelled in a search, and in a join; the session goes on.
my ($rc, $out, $err) = $node->psql('postgres', q{CREATE TABLE long AS SELECT i, repeat(md5(i::text), 2000) AS title FROM generate_series(1, 60) i;
	CREATE INDEX ON long USING matchcount (title); ANALYZE long; SET enable_seqscan = off;
	SELECT count(*) FROM (SELECT FROM long ORDER BY title <~~> 'warm' LIMIT 1) n;
	SET statement_timeout = '30ms'; SELECT count(*) FROM long a JOIN long b ON edit_distance(a.title, b.title) <= 60000}, on_error_stop => 0);
like($err, qr/canceling statement due to statement timeout/, 'cancelled');
my $engine = engine_pid($node);
kill 'KILL', $engine;
is(sql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM titles WHERE $bound"), '17 18', 'another engine');
isnt(engine_pid($node), $engine, 'it is another one');

$node->stop;
done_testing();
