# Pages torn by a crash are repaired by recovery; pages altered in any other way are reported and never believed: every
# page of indexes of every layout, its first half, its second half, the first half but the header, and one byte.
# PGWARP_TORTURE=full: every layout, each page in each way.
use strict;
use warnings FATAL => 'all';

use FindBin;
use List::Util qw(shuffle);
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TortureLoad;

my $page = 8192;
my $node = new_cluster('torn', 'autovacuum' => 'off', 'jit' => 'off', 'max_worker_processes' => 16, 'full_page_writes' => 'on',
	'checkpoint_timeout' => '1h', 'max_wal_size' => "'4GB'");
sub sql { return $node->safe_psql('postgres', @_) }
sub file_of { my ($index) = @_; return $node->data_dir . '/' . sql("SELECT pg_relation_filepath('$index')") }

# A page's bytes from the file.
sub read_page
{
	my ($path, $block) = @_;
	open my $file, '<:raw', $path or die "$path: $!";
	seek $file, $block * $page, 0;
	my $bytes;
	read $file, $bytes, $page;
	close $file;
	return $bytes;
}

my @ways = ('first half', 'second half', 'first half but the header', 'one byte');
# Alter a page in one of these ways.
sub alter
{
	my ($path, $block, $way) = @_;
	# A page without content has its stream's identity, at its end, to be altered: nothing else of it is ever read.
	my $content = unpack('S', substr(read_page($path, $block), 12, 2)) - 24;
	my ($from, $length) = $way eq 'first half' ? (0, 4096) : $way eq 'second half' ? (4096, 4096)
		: $content <= 0 ? ($page - 24, 1) : $way eq 'one byte' ? (24 + int(rand($content)), 1) : (24, 4072);
	flip_bytes($path, $block * $page + $from, $length);
	return;
}

my $vector = "ARRAY(SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)";
sql("CREATE TABLE items (id int, v vector(16), note text);
	INSERT INTO items SELECT i, $vector, repeat('x', i % 30) FROM generate_series(1, 600) i");

# The crash tears every page that was changed since the last checkpoint.
{
	my @all = ('t_exact', 't_half', 't_pq', 't_tree', 't_graph');
	sql("CREATE INDEX t_half ON items USING ivfadc (v) INCLUDE (note); CHECKPOINT;
		CREATE INDEX t_exact ON items USING exact (v) INCLUDE (id); CREATE INDEX t_pq ON items USING ivfadc (v) WITH (refine = none);
		CREATE INDEX t_tree ON items USING pqtree ((v::halfvec(16)) halfvec_ip_ops) INCLUDE (note) WITH (refine = full);
		CREATE INDEX t_graph ON items USING graph (v vector_l1_ops) INCLUDE (note); REINDEX INDEX t_half");
	my %truth;
	for my $round (1 .. torture_size(2, 8))
	{
		sql("INSERT INTO items SELECT i, $vector, 'new' FROM generate_series($round * 10000, $round * 10000 + 150) i;
			DELETE FROM items WHERE id % 11 = $round; VACUUM (FREEZE, INDEX_CLEANUP ON) items");
		sql("CALL pgwarp_merge('$_')") for @all;
		sql("INSERT INTO items SELECT i, $vector, 'late' FROM generate_series($round * 10000 + 500, $round * 10000 + 550) i");
		my $rows = sql('SELECT count(*) FROM items');
		my %path = map { $_ => file_of($_) } @all;
		# Some of the pages are on disk as they were in between, others as they are now.
		$node->stop('immediate');
		my $torn = 0;
		for my $index (@all)
		{
			for my $block (0 .. (-s $path{$index}) / $page - 1)
			{
				alter($path{$index}, $block, $ways[ int(rand(2)) ]);
				++$torn;
			}
		}
		$node->start;
		for my $index (@all)
		{
			my ($rc, $out, $err) = $node->psql('postgres', "SELECT live_rows FROM pgwarp_check('$index', true)");
			is("$out$err", $rows, "round $round: $index is whole after recovery");
		}
		is(sql("SELECT md5(string_agg(tid::text, ' ' ORDER BY query, distance, tid)) FROM knn_search('t_exact', (SELECT array_agg(v) FROM (SELECT v FROM items ORDER BY id LIMIT 20) s), 10)"),
			sql("SET enable_indexscan = off; SELECT md5(string_agg(tid::text, ' ' ORDER BY i, distance, tid)) FROM (SELECT v q, row_number() OVER (ORDER BY id) i FROM items ORDER BY id LIMIT 20) s,
				LATERAL (SELECT ctid tid, v <-> q AS distance FROM items ORDER BY 2, 1 LIMIT 10) n"), "round $round: exact answers are the table's");
		note "round $round: $torn pages torn";
		# The end of recovery made a checkpoint: every page has to change after it to be torn again.
		sql("REINDEX INDEX $_") for @all;
	}
	sql("DROP INDEX $_") for @all;
}

# Altered at rest.
my %layouts = (
	'exact, included columns of one length' => 'exact (v) INCLUDE (id)',
	'exact, included columns' => 'exact (v) INCLUDE (id, note)',
	'ivfadc of halves' => 'ivfadc (v) INCLUDE (note) WITH (codes = half)',
	'ivfadc, without vectors' => 'ivfadc (v) WITH (refine = none)',
	'ivfadc, with vectors' => 'ivfadc (v vector_cosine_ops) INCLUDE (id) WITH (refine = full)',
	'pqtree of halves' => 'pqtree (v) INCLUDE (note)',
	'pqtree, without vectors' => 'pqtree (v) WITH (refine = none)',
	'pqtree, with vectors' => 'pqtree (v vector_cosine_ops) INCLUDE (id) WITH (refine = full)',
	'graph' => 'graph (v) INCLUDE (id)',
	'graph of halves' => 'graph (v vector_ip_ops) INCLUDE (note) WITH (vectors = half)',
	'graph of bits' => 'graph (v vector_cosine_ops) INCLUDE (note) WITH (vectors = bits)',
	'ivfadc of bytes' => 'ivfadc (v vector_ip_ops) WITH (codes = int8)');
my ($altered, $refused, %kinds) = (0, 0);
sub search { my ($index) = @_; return "SELECT md5(string_agg(query || '.' || tid::text || '.' || distance, ' ' ORDER BY query, distance, tid)) FROM knn_search('$index', (SELECT array_agg(v ORDER BY id) FROM queries), 10)" }
sql('CREATE TABLE queries AS SELECT id, v FROM items ORDER BY id LIMIT 5');
for my $layout ((shuffle(sort keys %layouts))[ 0 .. torture_size(2, 12) - 1 ])
{
	sql("CREATE INDEX intact ON items USING $layouts{$layout}");
	my $pages = (-s file_of('intact')) / $page;
	# One copy for each page and way.
	my @cases = map { my $block = $_; map { [ $block, $_ ] } (shuffle(@ways))[ 0 .. torture_size(1, 4) - 1 ] } 0 .. $pages - 1;
	sql(join '', map { "CREATE INDEX c_$_ ON items USING $layouts{$layout};\n" } 0 .. $#cases);
	sql("INSERT INTO items SELECT i, $vector, 'late' FROM generate_series(900001, 900060) i;
		DELETE FROM items WHERE id % 7 = 3; VACUUM (INDEX_CLEANUP ON, PARALLEL 0) items");
	my @paths = map { file_of("c_$_") } 0 .. $#cases;
	my $truth = sql(search('intact'));
	is(sql("SELECT free_pages + unused_pages FROM pgwarp_check('intact', true)"), 0, "$layout: every page is in use");
	$node->stop;
	for my $i (0 .. $#cases)
	{
		my ($kind) = unpack 'S', substr(read_page($paths[$i], $cases[$i][0]), $page - 8, 2);
		$kinds{$kind}++;
		alter($paths[$i], @{ $cases[$i] });
		++$altered;
	}
	$node->start;
	my (@silent, @believed);
	for my $i (0 .. $#cases)
	{
		my $name = "block $cases[$i][0], $cases[$i][1]";
		my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT live_rows FROM pgwarp_check('c_$i', true)");
		push @silent, "$name: $out$err" if $rc == 0 || $err !~ /ERROR:  XX00[12]:/;
		($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n" . search("c_$i"));
		push @believed, "$name: $out$err" if $rc == 0 ? $out ne $truth : $err !~ /ERROR:  XX00[12]:/;
		++$refused if $rc != 0;
	}
	is(join("\n", @silent), '', "$layout: pgwarp_check reports each of " . @cases . ' altered pages');
	is(join("\n", @believed), '', "$layout: searches report them or are right");
	sql('DROP INDEX intact, ' . join ', ', map { "c_$_" } 0 .. $#cases);
}
is(join(' ', sort keys %kinds), '1 2 3 4 5 6 7 8', 'pages of every kind were altered');
note "$altered pages altered, $refused searches refused";
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|signal 11/, 'the log tells of nothing worse');
$node->stop;
done_testing();
