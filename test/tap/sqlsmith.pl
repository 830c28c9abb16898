# sqlsmith's statements about tables, indexes, policies, partitions and views of pgwarp's end no server, and meet no
# internal error, while another session writes, vacuums and checkpoints.
#   PGWARP_SQLSMITH_SECONDS   how long (30)
#   PGWARP_SEED               sqlsmith's (unset: another one each time, which is told)
#   PGWARP_SQLSMITH_WITH      vector: the extension `vector` in place of pgwarp; pgvector: pgwarp and the bridge beside pgvector, which needs PGVECTOR_SOURCE or a
#                             package (unset: pgwarp alone)
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'time';

plan skip_all => 'sqlsmith is not installed' if !grep { -x "$_/sqlsmith" } split /:/, $ENV{PATH};
my $seconds = $ENV{PGWARP_SQLSMITH_SECONDS} || 30;
my $seed = $ENV{PGWARP_SEED} // time % 1_000_000_000;
diag("PGWARP_SEED=$seed");

# The extensions, and the schemas with their objects.
my $with = $ENV{PGWARP_SQLSMITH_WITH} // '';
my ($extensions, $schemas) = ('CREATE EXTENSION pgwarp', 'public');
if ($with eq 'vector')
{
	$ENV{PGWARP_DESTDIR} .= '_vector';
	$extensions = 'CREATE EXTENSION vector';
}
elsif ($with eq 'pgvector')
{
	stage_pgvector() or die "no pgvector\n";
	($extensions, $schemas) = ('CREATE EXTENSION vector; CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA pgwarp; CREATE EXTENSION pgwarp_pgvector', 'public, pgwarp');
}
my $node = PostgreSQL::Test::Cluster->new('sqlsmith');
$node->init;
configure($node, 'jit' => 'off', 'autovacuum' => 'off', 'log_statement' => 'none', 'log_error_verbosity' => 'verbose', 'fsync' => 'off', 'restart_after_crash' => 'on');
chomp(my $libraries = `pg_config --pkglibdir`);
$node->append_conf('postgresql.conf', "dynamic_library_path = '$ENV{PGWARP_DESTDIR}$libraries:\$libdir'") if $with ne '';
$node->start;
$node->safe_psql('postgres', "$extensions; ALTER DATABASE postgres SET search_path = $schemas");

# sqlsmith writes no ORDER BY of its own: views have them, whose plans are put into its statements.
my $filled = q{
	SELECT setseed(0.1);
	CREATE FUNCTION random_vector() RETURNS vector LANGUAGE sql VOLATILE AS 'SELECT array_agg(random())::vector(4) FROM generate_series(1, 4)';
	CREATE TABLE items (id int, kind int, txt text, v vector(4), h halfvec(4), b bit(8));
	INSERT INTO items SELECT i, i % 7, repeat('x', i % 30), w, w, binary_quantize((w || w) - array_fill(0.5::real, ARRAY[8])::vector)::bit(8)
		FROM generate_series(1, 500) i, LATERAL (SELECT CASE WHEN i % 40 > 0 THEN random_vector() END AS w) drawn;
	CREATE INDEX items_exact ON items USING exact (v) INCLUDE (id, kind);
	CREATE INDEX items_graph ON items USING graph (v vector_l1_ops);
	CREATE INDEX items_ivfadc ON items USING ivfadc (h halfvec_cosine_ops);
	CREATE INDEX items_pqtree ON items USING pqtree (h halfvec_ip_ops) INCLUDE (id);
	CREATE INDEX items_bits ON items USING graph (b bit_hamming_ops);
	CREATE INDEX items_text ON items USING matchcount (txt);
	CREATE INDEX items_kind ON items (kind);
	CREATE TABLE parts (id int, kind int, v vector(4)) PARTITION BY LIST (kind);
	CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (0, 1, 2);
	CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN (3, 4);
	CREATE TABLE parts_c PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT id, kind, v FROM items;
	CREATE INDEX ON parts_a USING exact (v);
	CREATE INDEX ON parts_b USING exact (v);
	CREATE TABLE guarded AS SELECT id, kind, v FROM items;
	CREATE INDEX ON guarded USING exact (v);
	ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
	CREATE POLICY near ON guarded USING (v <-> '[0.5,0.5,0.5,0.5]' < 0.5);
	CREATE TABLE asked AS SELECT i AS id, i % 5 AS kind, random_vector() AS v FROM generate_series(1, 9) i;
	CREATE VIEW nearest AS SELECT id, kind, v, v <-> '[0.5,0.5,0.5,0.5]' AS d FROM items ORDER BY v <-> '[0.5,0.5,0.5,0.5]' LIMIT 20;
	CREATE VIEW nearest_graph AS SELECT id, kind, v <+> (SELECT v FROM asked WHERE id = 1) AS d FROM items WHERE kind < 5 ORDER BY v <+> (SELECT v FROM asked WHERE id = 1) LIMIT 10;
	CREATE VIEW nearest_half AS SELECT id, h <=> '[0.5,0.5,0.5,0.1]' AS d FROM items ORDER BY h <=> '[0.5,0.5,0.5,0.1]' LIMIT 7;
	CREATE VIEW nearest_tree AS SELECT id, h <#> '[0.5,0.5,0.5,0.1]' AS d FROM items ORDER BY h <#> '[0.5,0.5,0.5,0.1]' LIMIT 7;
	CREATE VIEW nearest_bits AS SELECT id, b <~> B'10101010' AS d FROM items ORDER BY b <~> B'10101010' FETCH FIRST 3 ROWS WITH TIES;
	CREATE VIEW nearest_texts AS SELECT id, txt, txt <~~> 'xxxxx' AS d FROM items ORDER BY txt <~~> 'xxxxx' LIMIT 6;
	CREATE VIEW nearest_parts AS SELECT id, kind, v <-> '[0.5,0.5,0.5,0.5]' AS d FROM parts ORDER BY v <-> '[0.5,0.5,0.5,0.5]' LIMIT 20;
	CREATE VIEW nearest_guarded AS SELECT id, v <-> '[0.5,0.5,0.5,0.5]' AS d FROM guarded ORDER BY v <-> '[0.5,0.5,0.5,0.5]' LIMIT 20;
	CREATE VIEW within AS SELECT id, v <-> '[0.5,0.5,0.5,0.5]' AS d FROM items WHERE v <-> '[0.5,0.5,0.5,0.5]' < 0.4 ORDER BY v <-> '[0.5,0.5,0.5,0.5]';
	CREATE VIEW all_sorted AS SELECT * FROM items ORDER BY v <-> '[0.1,0.5,0.5,0.5]';
	CREATE VIEW joined AS SELECT asked.id AS asked, n.* FROM asked CROSS JOIN LATERAL (SELECT id, kind, i.v <-> asked.v AS d FROM items i ORDER BY i.v <-> asked.v LIMIT 3) n;
	CREATE VIEW left_joined AS SELECT asked.id AS asked, n.* FROM asked LEFT JOIN LATERAL (SELECT id, kind FROM parts i WHERE i.kind <> asked.kind ORDER BY i.v <-> asked.v LIMIT 3) n ON n.id > 100;
	CREATE VIEW sub_selects AS SELECT id, (SELECT i.kind FROM items i ORDER BY i.v <-> asked.v LIMIT 1) AS kind, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> asked.v LIMIT 4) AS ids FROM asked;
	CREATE VIEW conditions AS SELECT id, kind FROM asked WHERE kind IN (SELECT s.kind FROM (SELECT i.kind FROM items i ORDER BY i.v <-> asked.v LIMIT 10) s);
	CREATE VIEW searched AS SELECT s.query, i.id, s.distance FROM knn_search('items_exact', ARRAY(SELECT v FROM asked), 3) s JOIN items i ON i.ctid = s.tid;
};

# Access methods of pgvector's names, and the other types.
my $company = q{
	CREATE TABLE others AS SELECT id, kind, v, v::sparsevec(4) AS s, h, b FROM items;
	CREATE INDEX others_hnsw ON others USING hnsw (v vector_cosine_ops);
	CREATE INDEX others_ivfflat ON others USING ivfflat (v vector_l2_ops) WITH (lists = 5);
	CREATE INDEX others_sparse ON others USING hnsw (s sparsevec_l2_ops);
	CREATE INDEX others_half ON others USING hnsw (h halfvec_ip_ops) WHERE kind < 6;
	CREATE INDEX others_bits ON others USING ivfflat (b bit_hamming_ops) WITH (lists = 2);
	CREATE INDEX others_jaccard ON others USING hnsw (b bit_jaccard_ops);
	CREATE INDEX ON parts USING hnsw (v vector_ip_ops);
	CREATE VIEW nearest_hnsw AS SELECT id, kind, v <=> '[0.5,0.5,0.5,0.1]' AS d FROM others ORDER BY v <=> '[0.5,0.5,0.5,0.1]' LIMIT 12;
	CREATE VIEW most_alike AS SELECT id, kind, 1 - (v <=> '[0.5,0.5,0.5,0.1]') AS d FROM others ORDER BY 3 DESC LIMIT 12;
	CREATE VIEW nearest_ivfflat AS SELECT id, v FROM others WHERE kind IN (2, 3) ORDER BY v <-> '[0.5,0.5,0.5,0.1]' LIMIT 12;
	CREATE VIEW nearest_sparse AS SELECT id, s FROM others ORDER BY s <-> '{1:0.5,3:0.5}/4' LIMIT 12;
	CREATE VIEW nearest_other_half AS SELECT id, h FROM others WHERE kind < 6 ORDER BY h <#> '[0.5,0.5,0.5,0.1]' LIMIT 12;
	CREATE VIEW nearest_hamming AS SELECT id, b FROM others ORDER BY b <~> B'10101010' LIMIT 12;
	CREATE VIEW nearest_jaccard AS SELECT id, b FROM others ORDER BY b <%> B'10101010' LIMIT 12;
	CREATE VIEW nearest_inner AS SELECT id, kind FROM parts ORDER BY v <#> '[0.5,0.5,0.5,0.1]' LIMIT 12;
	CREATE VIEW means AS SELECT kind, avg(v) AS v, sum(h) AS h FROM others GROUP BY kind;
};
my $smith = q{
	CREATE ROLE smith LOGIN;
	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO smith;
	ALTER ROLE smith SET enable_seqscan = off;
	ALTER ROLE smith SET statement_timeout = '1s';
	ALTER ROLE smith SET max_parallel_workers_per_gather = 1;
};
$node->safe_psql('postgres', $_) for $filled, $with ne '' ? $company : (), $smith, 'VACUUM ANALYZE';

# The other session. sqlsmith rolls back its own changes: without this session the tables stay as they were made.
my @writes = (map { "UPDATE $_ SET v = random_vector() WHERE id % 50 = (random() * 50)::int" } 'items', 'parts', 'guarded', $with ne '' ? 'others' : ());
push @writes, 'DELETE FROM items WHERE id % 30 = (random() * 30)::int',
	'INSERT INTO items SELECT i, i % 7, NULL, w, w, (random() * 255)::int::bit(8) FROM generate_series(1, 500) i, random_vector() w WHERE i % 30 = (random() * 30)::int',
	'VACUUM items', 'VACUUM parts, guarded' . ($with ne '' ? ', others' : ''), 'CHECKPOINT';
my ($to_writer, $from_writer, $written) = ('', '', 0);
my $writer = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$to_writer, '>', \$from_writer, '2>', \my $refused);

# Sends the next statement when the one before is done.
sub write_on
{
	my $done = () = $from_writer =~ /^done$/mg;
	$to_writer .= $writes[ $written++ % @writes ] . ";\n\\echo done\n" if $done == $written;
	$writer->pump_nb;
}

# A third of the time each: the indexes preferred, plans by cost, and every plan tried in a worker.
my $queries = 0;
my @settings = ('enable_seqscan = off', 'enable_seqscan = on', $node->pg_version >= 16 ? 'debug_parallel_query = on' : 'force_parallel_mode = on');
for my $part (0 .. $#settings)
{
	$node->safe_psql('postgres', "ALTER ROLE smith SET $settings[$part]");
	my $until = time + $seconds / @settings;
	my ($runs, $started) = (0, 0);
	while (time < $until)
	{
		my $smith = IPC::Run::start([ 'sqlsmith', '--exclude-catalog', '--verbose', '--seed=' . ($seed + $part + 1000 * $runs++), '--target=' . $node->connstr('postgres') . ' user=smith' ],
			'<', \undef, '>', \my $out, '2>', \my $err);
		# sqlsmith reads the catalogs first, which takes long on a busy machine: the time of a part is that of its statements.
		my $read = 0;
		while (time < ($read ? $until : $until + 120) && $smith->pumpable)
		{
			eval { $smith->pump_nb };
			write_on();
			if (!$read && $err =~ /Generating indexes\.\.\.done/)
			{
				$read = 1;
				$until = time + $seconds / @settings if !$started++;
			}
			select undef, undef, undef, 0.1;
		}
		$smith->signal('TERM');
		$smith->finish;
		# Lines of a sign for each statement: done, refused, timed out, or the connection was lost. Reports are between them.
		$queries += length for $err =~ /^([.eStC]+)$/mg;
	}
}

$to_writer .= "\\q\n";
$writer->finish;

cmp_ok($queries, '>', 50, "$queries statements");
cmp_ok($written, '>', scalar @writes, "$written statements beside them, each kind of them");
is(join("\n", grep { !/deadlock/ } $refused =~ /^.*(?:ERROR|FATAL):.*$/mg), '', 'none of those met an error but a deadlock');
# The parser and functions of PostgreSQL raise internal errors for nonsensical input. Errors count that come from
# pgwarp's own files, or from the planner, the executor, access methods and memory, with which its hooks and plans
# interact.
my $ours = qr/[\w.]+\.cpp|(?:setrefs|createplan|planner|planmain|subselect|prep\w+|pathnode|pathkeys|costsize|relnode|joinrels|joinpath|allpaths|indxpath|equivclass|initsplan|plancat|exec\w+|node\w+|heapam\w*|index\w*|genam|tableam|relcache|plancache|snapmgr|resowner|mcxt|aset|bufmgr)\.c/;

# The crashes and the internal errors that a log tells. It is read by lines: of hours it is longer than a match can be.
sub read_faults
{
	my ($file) = @_;
	my (@crashes, @internal, $message);
	my $end_message = sub { push @internal, $message if defined $message && $message =~ /LOCATION:\s+\w+, $ours:/; $message = undef };
	open(my $log, '<', $file) or die "$file: $!\n";
	while (my $line = <$log>)
	{
		push @crashes, $line if $line =~ /terminated by signal|PANIC|TRAP|wrong distance|wrong included/;
		if ($line =~ /ERROR:  XX00\d:/) { $end_message->(); $message = $line }
		elsif (defined $message && $line =~ /^\t|(?:DETAIL|HINT|CONTEXT|QUERY|LOCATION|STATEMENT):/) { $message .= $line }
		else { $end_message->() }
	}
	$end_message->();
	return (\@crashes, \@internal);
}

my $scans = q{FROM pg_stat_user_indexes s JOIN pg_class i ON i.oid = s.indexrelid JOIN pg_am a ON a.oid = i.relam WHERE amname <> 'btree'};
my $by_method = $node->safe_psql('postgres', "SELECT string_agg(amname || ' ' || scans, ', ' ORDER BY amname) FROM (SELECT amname, sum(idx_scan) AS scans $scans GROUP BY amname) m");
cmp_ok($node->safe_psql('postgres', "SELECT sum(idx_scan) $scans"), '>', 0, "scans of indexes: $by_method");
my ($crashes, $internal) = read_faults($node->logfile);
is(join('', @$crashes), '', 'the server did not crash, and no distance was wrong');
is(join("\n", @$internal), '', 'no internal error');
is($node->safe_psql('postgres', "SELECT live_rows > 0 FROM pgwarp_check('$_', true)"), 't', "$_ is whole") for 'items_exact', 'items_graph', 'items_ivfadc', 'items_pqtree', 'items_bits';
$node->stop;
done_testing();
