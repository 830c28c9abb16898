# CREATE INDEX: a parallel build gives the same index as a serial one, reports progress, and survives a killed engine.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use List::Util qw(max min);
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_cluster('build', max_worker_processes => 12, max_parallel_maintenance_workers => 4);
sub sql { return $node->safe_psql('postgres', @_) }

# A parallel scan collects the rows in any order, the index has them in the heap's.
load_grid($node, 'items', 20000);
sql('UPDATE items SET v = NULL WHERE id % 7 = 0');
sql('ALTER TABLE items SET (parallel_workers = 3)');
for my $method ('exact', 'ivfadc', 'pqtree')
{
	my %pages;
	for my $workers (0, 3)
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			"SET client_min_messages = debug1; SET max_parallel_maintenance_workers = $workers; CREATE INDEX items_v ON items USING $method (v)");
		my ($launched) = $err =~ /using (\d+) parallel workers/;
		is($launched // 0, $workers, "$method: $workers workers collect rows");
		same_rows($node, 'items', "$method: built with $workers workers") if $method eq 'exact';
		is(sql("SELECT live_rows FROM pgwarp_check('items_v', true)"), 20000, "$method: NULLs are there, with $workers workers");
		my $bytes = slurp_file(index_pages($node, 'items_v'));
		# The random generation is in the metapage, in the directory, which comes last, and at every page's end; in front
		# are the LSN and the checksum.
		$pages{$workers} = join '', map { substr($bytes, $_ * 8192 + 10, 8192 - 10 - 24) } 1 .. length($bytes) / 8192 - 2;
		sql('DROP INDEX items_v');
	}
	ok($pages{0} eq $pages{3}, "$method: the same arrays with and without workers");
}

# A build that takes a while.
sql(q{SELECT setseed(0.25); CREATE TABLE big (id serial PRIMARY KEY, v vector(128));
	INSERT INTO big (v) SELECT ARRAY(SELECT random() FROM generate_series(1, 128) d WHERE i > 0)::real[]::vector FROM generate_series(1, 30000) i});
my $create = 'CREATE INDEX big_v ON big USING ivfadc (v) WITH (lists = 3000, opq = on)';

sub start_build
{
	my ($statement) = @_;
	my ($out, $err) = ('', '');
	my $handle = IPC::Run::start([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-c', $statement // $create ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(180));
	return ($handle, \$err);
}

# Returns the phases and the percentages that the view shows of a build.
my $watcher = $node->background_psql('postgres');

sub watch_build
{
	my ($build, $err) = start_build(@_);
	my (%phases, %percents);
	while ($build->pumpable)
	{
		$build->pump_nb;
		my $phase = $watcher->query_safe('SELECT phase FROM pg_stat_progress_create_index');
		if ($phase =~ /^building index: (.*) \((\d+) %\)/)
		{
			$phases{$1} = 1;
			$percents{$2} = 1;
		}
		usleep(2_000);
	}
	$build->finish;
	is($$err, '', 'the build is done');
	note('seen: ' . join(', ', sort keys %phases) . '; ' . scalar(keys %percents) . ' percentages');
	return (\%phases, \%percents);
}

my $begun = time;
my ($phases, $percents) = watch_build();
my $took = time - $begun;
# A GPU is through with a phase of these few rows between two looks.
my $quick = ($ENV{PGWARP_DEVICE} // '') eq 'cuda';
ok($phases->{'training lists'} || $quick, 'the training of the lists shows');
ok($phases->{'training quantizer'} || $phases->{'encoding rows'}, 'the codes show');
# The engine reports ten times a second: the faster the machine, the fewer are seen.
cmp_ok(scalar(keys %$percents), '>=', $quick ? 1 : max(2, min(5, int(2 * $took))), sprintf 'with percentages, in %.1f s', $took);
sql('DROP INDEX big_v');

# Each phase of a build has a name of its own.
($phases) = watch_build('CREATE INDEX big_v ON big USING graph (v)');
ok($phases->{'comparing rows'} || $quick, 'the comparison of the rows of a graph shows');
ok(!$phases->{building}, 'no phase of a graph is without a name');
sql('DROP INDEX big_v');

# The engine is killed during a build: its statement ends, nothing else.
my $search = 'SET enable_seqscan = off; SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 9) LIMIT 1';
sql('CREATE INDEX items_v ON items USING exact (v)');
for my $phase ('training lists', 'training quantizer|encoding rows')
{
	my $engine = engine_pid($node);
	my ($build, $err) = start_build();
	my $seen = '';
	my $deadline = time + 60;
	until ($seen =~ /$phase/ || ($seen ne '' && !$build->pumpable) || time > $deadline)
	{
		usleep(2_000);
		$build->pump_nb if $build->pumpable;
		$seen = $watcher->query_safe('SELECT phase FROM pg_stat_progress_create_index') || $seen;
	}
	if (($ENV{PGWARP_DEVICE} // '') eq 'cuda' && $seen !~ /$phase/)
	{
		# A GPU may be through with a phase between two looks.
		$build->finish;
		sql('DROP INDEX IF EXISTS big_v');
		note("$phase was not seen");
		next;
	}
	kill 'KILL', $engine;
	$build->finish;
	like($$err, qr/pgwarp-engine ended during a request/, "killed while $phase: the build says so");
	is(sql($search), 9, 'searches are answered');
	is(sql("SELECT count(*) FROM pg_class WHERE relname = 'big_v'"), 0, 'no index is left');
}
sql($create);
is(sql('SET enable_seqscan = off; SELECT id FROM big ORDER BY v <-> (SELECT v FROM big WHERE id = 11) LIMIT 1'), 11,
	'the next build is as if nothing had been');
$watcher->quit;
$node->stop;
done_testing();
