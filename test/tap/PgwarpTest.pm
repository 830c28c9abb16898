# Clusters for pgwarp's TAP tests: PostgreSQL::Test::Cluster with the extension found where scripts/check staged it.
#   PGWARP_DESTDIR             staging folder of `make install DESTDIR=...` (unset: installed in the system)
#   PGWARP_OLD_DESTDIR         the same for nodes of another server than the one under test (install_path)
#   PGWARP_DEVICE              the engine's device (unset: auto)
#   PGWARP_WAL_CONSISTENCY=1   every cluster runs with wal_consistency_checking = all
#   PGVECTOR_SOURCE            pgvector's source (unset: the server's own pgvector, for tests of both)
#   PGWARP_SEED                seed of random choices (unset: 1, and another one each time with PGWARP_TORTURE=full)
package PgwarpTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run;
use Test::More;
use Time::HiRes 'usleep';

our @EXPORT = qw(configure new_cluster methods load_grid load_indexed_items recall_at_10 engine_pid wait_for_engine await_restart same_rows index_pages flip_bytes rows_after_waiting stage_pgvector);

my $full = ($ENV{PGWARP_TORTURE} // '') eq 'full';
my $seed = $ENV{PGWARP_SEED} // ($full ? time : 1);
srand($seed);
diag("PGWARP_SEED=$seed") if $full;

# Append the settings of every pgwarp cluster to the node's configuration.
sub configure
{
	my ($node, %settings) = @_;
	my $destdir = $ENV{$node->install_path ? 'PGWARP_OLD_DESTDIR' : 'PGWARP_DESTDIR'};
	$node->append_conf('postgresql.conf', staged_extension($node, $destdir)) if $destdir;
	$node->append_conf('postgresql.conf', "wal_consistency_checking = 'all'") if $ENV{PGWARP_WAL_CONSISTENCY};
	$node->append_conf('postgresql.conf', "pgwarp.device = $ENV{PGWARP_DEVICE}") if $ENV{PGWARP_DEVICE};
	# Where many tests run at once, an engine takes long to open the GPUs.
	$node->append_conf('postgresql.conf', 'pgwarp.engine_timeout = 60s') if ($ENV{PGWARP_DEVICE} // '') eq 'cuda';
	# A custom setting of a library that isn't loaded yet is kept as a placeholder and takes effect with the library.
	$node->append_conf('postgresql.conf', "pgwarp.verify_results = on");
	# Counts of a test must not change by other processes: autovacuum, and the merge worker with it, run only where a
	# test starts them.
	$node->append_conf('postgresql.conf', 'autovacuum = off') if !grep { /^autovacuum/ } keys %settings;
	$node->append_conf('postgresql.conf', "$_ = $settings{$_}") for sort keys %settings;
	return;
}

# The major version of a node's server, or of the one under test.
sub server_major
{
	my ($node) = @_;
	return ($node ? $node->config_data('--version') : pg_config("version")) =~ /(\d+)/ ? $1 : die 'no version';
}

sub pg_config
{
	my ($what) = @_;
	my $line = `pg_config --$what`;
	chomp $line;
	return $line;
}

# Let clusters find pgvector beside pgwarp. False where there is none. Its source is copied, built and installed into a
# folder of this test, with pgwarp, and the path of the copy is returned.
sub stage_pgvector
{
	my $source = $ENV{PGVECTOR_SOURCE} // '';
	return -e pg_config('sharedir') . '/extension/vector.control' if $source eq '';
	my $folder = PostgreSQL::Test::Utils::tempdir();
	chmod 0755, $folder;
	system_or_bail('cp', '-r', $source, "$folder/source");
	system_or_bail('cp', '-r', "$ENV{PGWARP_DESTDIR}/.", "$folder/stage") if $ENV{PGWARP_DESTDIR};
	my @make = ('make', '-s', '-C', "$folder/source", 'PG_CONFIG=' . pg_config('bindir') . '/pg_config', 'OPTFLAGS=', 'with_llvm=no');
	system_or_bail(@make);
	system_or_bail(@make, "DESTDIR=$folder/stage", 'install');
	$ENV{PGWARP_DESTDIR} = "$folder/stage";
	return "$folder/source";
}

# The setting by which a node finds an extension in a staging folder. Up to 17 it is Debian's own.
sub staged_extension
{
	my ($node, $destdir) = @_;
	return "extension_destdir = '$destdir'" if server_major($node) < 18;
	my ($share, $library) = ($node->config_data('--sharedir'), $node->config_data('--pkglibdir'));
	return "extension_control_path = '$destdir$share:\$system'\ndynamic_library_path = '$destdir$library:\$libdir'";
}

# A started cluster with the extension created in database postgres.
sub new_cluster
{
	my ($name, %settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	# pgwarp must detect pages that tests damage, so the server's checksums, the default from 18 on, are off.
	$node->init(allows_streaming => 1, extra => server_major() < 18 ? [] : ['--no-data-checksums']);
	configure($node, %settings);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pgwarp');
	return $node;
}

# The names of pgwarp's access methods for vectors.
sub methods
{
	my ($node) = @_;
	return split /\n/, $node->safe_psql('postgres', q{
		SELECT a.amname FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod
		WHERE o.opcname = 'vector_l2_ops' AND a.amhandler::text LIKE '%pgwarp%' ORDER BY a.oid});
}

# A table of $rows deterministic rows of 16 dimensions.
sub load_grid
{
	my ($node, $table, $rows, $kind) = @_;
	$kind //= '';
	$node->safe_psql('postgres', qq{
		CREATE $kind TABLE $table (id int PRIMARY KEY, v vector(16));
		INSERT INTO $table SELECT i, ARRAY(
			SELECT (hashint8(i::bigint * 31 + d) % 1000)::real / 100 FROM generate_series(1, 16) d)::vector(16)
		FROM generate_series(1, $rows) i;
	});
	return;
}

# Such a table, items, with notes of many lengths and an index of each layout: items_exact, items_half, items_pq,
# items_tree and items_graph.
sub load_indexed_items
{
	my ($node, $rows) = @_;
	load_grid($node, 'items', $rows);
	$node->safe_psql('postgres', "ALTER TABLE items DROP CONSTRAINT items_pkey;
		SELECT setseed(0.5); ALTER TABLE items ADD note text DEFAULT repeat('x', (random() * 30)::int);
		CREATE INDEX items_exact ON items USING exact (v) INCLUDE (id);
		CREATE INDEX items_half ON items USING ivfadc (v vector_cosine_ops) INCLUDE (id, note) WITH (codes = half);
		CREATE INDEX items_tree ON items USING pqtree ((v::halfvec(16)) halfvec_l2_ops) INCLUDE (note) WITH (refine = full);
		CREATE INDEX items_graph ON items USING graph (v vector_l1_ops) INCLUDE (note);
		CREATE INDEX items_pq ON items USING ivfadc (v vector_ip_ops) WITH (refine = none)");
	return;
}

# Mean recall@10 of index scans against sequential scans over $queries rows used as queries.
sub recall_at_10
{
	my ($node, $table, $queries) = @_;
	$queries //= 50;
	return $node->safe_psql('postgres', qq{
		CREATE OR REPLACE FUNCTION pg_temp.nearest(q vector) RETURNS int[] LANGUAGE sql AS
			'SELECT array_agg(id) FROM (SELECT id FROM $table ORDER BY v <-> q LIMIT 10) s';
		SET enable_seqscan = on; SET enable_indexscan = off;
		CREATE TEMP TABLE truth AS SELECT id, v, pg_temp.nearest(v) ids FROM $table ORDER BY id LIMIT $queries;
		SET enable_seqscan = off; SET enable_indexscan = on;
		DISCARD PLANS;
		SELECT avg(cardinality(ARRAY(SELECT unnest(ids) INTERSECT SELECT unnest(pg_temp.nearest(v))))) / 10.0 FROM truth;
	});
}

# The engine's process id as the server tells it, or an empty string.
sub engine_pid
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT DISTINCT engine_pid FROM pgwarp_status');
}

# Run one search so that an engine is there, and return its process id.
sub wait_for_engine
{
	my ($node, $table) = @_;
	$node->safe_psql('postgres', "SET enable_seqscan = off; SELECT id FROM $table ORDER BY v <-> (SELECT v FROM $table WHERE id = 1) LIMIT 1");
	return engine_pid($node);
}

# Wait until the server is back from the crash that the log reports after $log_end. psql would leave its input unread while
# connections are refused, which ends perl.
sub await_restart
{
	my ($node, $log_end) = @_;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $log_end);
	my $tries = 0;
	usleep(20_000) until system('pg_isready', '-q', '-d', $node->connstr('postgres')) == 0 || ++$tries > 5000;
	die 'the server did not come back' if $tries > 5000;
	return;
}

# Compare the ten nearest of some rows by index and by sequential scan (exact indexes: must be equal).
sub same_rows
{
	my ($node, $table, $name) = @_;
	my $query = qq{
		SELECT q.id, (SELECT array_agg(d ORDER BY d) FROM (SELECT v <-> q.v AS d FROM $table ORDER BY v <-> q.v LIMIT 10) s)
		FROM (SELECT * FROM $table ORDER BY id LIMIT 20) q ORDER BY q.id};
	my $expected = $node->safe_psql('postgres', "SET enable_indexscan = off; $query");
	my $got = $node->safe_psql('postgres', "SET enable_seqscan = off; $query");
	is($got, $expected, $name);
	return;
}

# Path of the index's main fork, after a checkpoint.
sub index_pages
{
	my ($node, $index) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$index')");
}

# The rows of a query with FOR UPDATE that waits for a transaction of these changes.
sub rows_after_waiting
{
	my ($node, $changes, $query, $name) = @_;
	my ($found, $errors) = ('', '');
	my $writer = $node->background_psql('postgres');
	$writer->query_safe("BEGIN; $changes");
	my $waiting = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $query ], '>', \$found, '2>', \$errors);
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%' AND pid <> pg_backend_pid()})
		or die 'nobody waits';
	$writer->query_safe('COMMIT');
	$writer->quit;
	$waiting->finish;
	is($errors, '', "$name: no error");
	return $found;
}

# Invert $length bytes of a file at $offset.
sub flip_bytes
{
	my ($path, $offset, $length) = @_;
	open my $file, '+<:raw', $path or die "$path: $!";
	seek $file, $offset, 0;
	my $bytes;
	read $file, $bytes, $length;
	seek $file, $offset, 0;
	print {$file} ~$bytes;
	close $file;
	return;
}

1;
