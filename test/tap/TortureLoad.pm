# A load of writers, searches and upkeep for tests that crash something under it. The committed rows of each writer are
# known: it runs transactions made ahead and notes each one that has ended. So the table's rows must be those after
# the last transaction noted or, where the connection was lost, after the next one.
# The table: items (client, id, version, v), v a function of id and version. Rows with negative ids are never committed.
package TortureLoad;

use strict;
use warnings FATAL => 'all';

use Cwd qw(realpath);
use Exporter 'import';
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(torture_size create_items start_load run_load await_load end_load check_rows check_indexes server_processes searched_times refused_times cut_load drop_leftovers);

my $most_rows = 800;        # of a writer, about
my $transactions = 2000;    # made ahead for each writer
my @indexes = ('items_exact', 'items_half', 'items_tree', 'items_graph', 'items_bits');
# Searches of all rows must also return rows that were found late.
my $own_order = "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; SET pgwarp.iterative = relaxed;";
my $row_list = "md5(coalesce(string_agg(client || '.' || id || '.' || version, ' ' ORDER BY client, id), ''))";
my $table_order = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;";
# The errors that a client may get when the engine is gone; no other error is allowed.
my $engine_errors = qr/pgwarp-engine ended during a request of this session|pgwarp-engine ended twice during a search of index|pgwarp-engine ended repeatedly while index|pgwarp-engine did not answer within|pgwarp-engine is not running and cannot be started|no such build: its session is gone, or the engine was restarted|is still being loaded/;
my $lost_connection = qr/server closed the connection|connection to server|could not (?:send|receive) data|terminating connection|postmaster exited|the database system is|no connection to the server/;

# The size of a torture: the small one unless PGWARP_TORTURE=full.
sub torture_size
{
	my ($small, $full) = @_;
	return ($ENV{PGWARP_TORTURE} // '') eq 'full' ? $full : $small;
}

# The table, its indexes, and writers. One that is `asynchronous` commits without waiting for the log.
sub create_items
{
	my ($node, $writers) = @_;
	$node->safe_psql('postgres', q{
		CREATE FUNCTION vec(id bigint, version int) RETURNS vector IMMUTABLE LANGUAGE sql AS $$
			SELECT array_agg((hashint8(id * 1000003 + version * 16 + d) / 400000000.0)::real ORDER BY d)::vector(16)
			FROM generate_series(0, 15) d $$;
		CREATE TABLE items (client int, id bigint, version int, v vector(16));
		CREATE INDEX items_key ON items (client, id);
		CREATE INDEX items_exact ON items USING exact (v) INCLUDE (id);
		CREATE INDEX items_half ON items USING ivfadc (v vector_cosine_ops);
		CREATE INDEX items_tree ON items USING pqtree (v vector_ip_ops);
		CREATE INDEX items_graph ON items USING graph (v vector_l1_ops);
		CREATE INDEX items_bits ON items USING graph ((binary_quantize(v)::bit(16)) bit_hamming_ops);
	});
	return map { { client => $_, asynchronous => 0, rows => {}, next_id => 1 } } 1 .. $writers;
}

# A random one of the writer's newer rows, or its first row when few tries find none.
sub pick_row
{
	my ($writer, $rows) = @_;
	for (1 .. 30)
	{
		my $id = $writer->{next_id} - 1 - int(rand(2 * $most_rows));
		return $id if exists $rows->{$id};
	}
	return (sort { $a <=> $b } keys %$rows)[0];
}

# One change of a transaction as SQL; the changed row goes into `changes`.
sub make_change
{
	my ($writer, $rows, $changes) = @_;
	my $client = $writer->{client};
	my $kind = rand();
	my $few = keys %$rows < $most_rows;
	my $id = pick_row($writer, $rows);
	if (!defined $id || $kind < ($few ? 0.6 : 0.2))
	{
		my $first = $writer->{next_id};
		my $count = $few && $kind < 0.1 ? 1 + int(rand(40)) : 1;
		$writer->{next_id} += $count;
		for my $id ($first .. $first + $count - 1) { $rows->{$id} = 1; push @$changes, [ $id, 1 ] }
		return "INSERT INTO items SELECT $client, i, 1, vec($client * 1000000 + i, 1) FROM generate_series($first, "
			. ($first + $count - 1) . ") i;\n";
	}
	if ($kind < ($few ? 0.8 : 0.6))
	{
		my $version = $rows->{$id} + 1;
		$rows->{$id} = $version;
		push @$changes, [ $id, $version ];
		return "UPDATE items SET version = $version, v = vec($client * 1000000 + $id, $version) WHERE client = $client AND id = $id;\n";
	}
	delete $rows->{$id};
	push @$changes, [ $id, undef ];
	return "DELETE FROM items WHERE client = $client AND id = $id;\n";
}

# A row that must never be seen by others, near to many.
sub phantom { my ($writer) = @_; return "INSERT INTO items VALUES ($writer->{client}, -1, 0, vec(" . int(rand(1000)) . ", 0));\n" }

# One transaction as SQL, and its changes: a statement, a block with savepoints, or one that is rolled back.
sub make_transaction
{
	my ($writer, $rows) = @_;
	my @changes;
	my $kind = rand();
	return (make_change($writer, $rows, \@changes), \@changes) if $kind < 0.5;
	if ($kind < 0.65)
	{
		my $sql = "BEGIN;\n" . phantom($writer);
		$sql .= make_change($writer, {%$rows}, []) for 1 .. 1 + int(rand(3));
		return ("${sql}ROLLBACK;\n", []);
	}
	my $sql = "BEGIN;\n";
	for (1 .. 1 + int(rand(4)))
	{
		$sql .= "SAVEPOINT s;\n" . phantom($writer) . "ROLLBACK TO s;\n" if rand() < 0.3;
		$sql .= make_change($writer, $rows, \@changes);
	}
	return ("${sql}COMMIT;\n", \@changes);
}

sub write_script
{
	my ($path, $sql) = @_;
	open my $file, '>', $path or die "$path: $!";
	print {$file} $sql;
	close $file;
	return;
}

# A psql that runs a script: { handle, out, err }.
sub start_client
{
	my ($node, $name, $sql, %options) = @_;
	my $path = $node->basedir . "/$name.sql";
	write_script($path, $sql);
	my %client = (name => $name, out => '', err => '');
	my $stop = $options{stop_on_error} ? 1 : 0;
	my $command = [ 'psql', '-XqAt', '-v', "ON_ERROR_STOP=$stop", '-d', $node->connstr('postgres') . ' application_name=torture', '-f', $path ];
	$client{handle} = IPC::Run::start($command, '<', \undef, '>', \$client{out}, '2>', \$client{err}, IPC::Run::timeout(900));
	return \%client;
}

# Make the transactions of a writer's next script.
sub plan_transactions
{
	my ($writer) = @_;
	my %rows = %{ $writer->{rows} };
	$writer->{transactions} = [];
	my $sql = 'SET synchronous_commit = ' . ($writer->{asynchronous} ? 'off' : 'on') . ";\n";
	for my $number (1 .. $transactions)
	{
		my ($statements, $changes) = make_transaction($writer, \%rows);
		push @{ $writer->{transactions} }, $changes;
		$sql .= "$statements\\echo done $number\n";
	}
	return $sql;
}

# Searches beside scans of the table, in one snapshot; sometimes of all rows.
sub search_script
{
	my ($rounds) = @_;
	my $sql = '';
	for my $round (1 .. $rounds)
	{
		my $query = 'vec(' . int(rand(3_000_000)) . ', 1)';
		my $all = $round % 8 == 0;
		my $order = $round % 16 == 0 ? '<=>' : $round % 24 == 0 ? '<+>' : '<->';
		my $by = $round % 40 == 0 ? "binary_quantize(v)::bit(16) <~> binary_quantize($query)" : "v $order $query";
		my $rows = "FROM (SELECT client, id, version FROM items ORDER BY $by" . ($all ? '' : ' LIMIT 20') . ') s';
		# Few rows as they are, so that a wrong answer can be read.
		my $list = $all ? $row_list : $row_list =~ s/^md5\(//r =~ s/\)$//r;
		my $what = "$list, count(*) FILTER (WHERE id < 0)";
		(my $local = "$own_order\n") =~ s/SET /SET LOCAL /g;
		$sql .= "BEGIN ISOLATION LEVEL REPEATABLE READ;\n$local";
		$sql .= "SELECT 'index $round', $what $rows;\n";
		$sql .= "SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;\n";
		$sql .= "SELECT 'table $round', $what $rows;\n";
		$sql .= "ROLLBACK;\n";
	}
	return $sql;
}

my %upkeep;
$upkeep{vacuums} = "VACUUM (INDEX_CLEANUP ON) items;\nSELECT pg_sleep(0.02) \\g /dev/null\n" x 3000;
$upkeep{merges} = join '', map { "CALL pgwarp_merge('$_');\nSELECT pg_sleep(0.01) \\g /dev/null\n" } (@indexes) x 2000;
$upkeep{builds} = join '', map {
	"CREATE INDEX extra_a ON items USING exact (v);\nDROP INDEX extra_a;\n"
	. "CREATE INDEX CONCURRENTLY extra_b ON items USING ivfadc (v vector_cosine_ops);\nDROP INDEX extra_b;\n"
	. "REINDEX INDEX CONCURRENTLY items_half;\nCREATE INDEX extra_c ON items USING ivfadc ((v::halfvec(16)) halfvec_ip_ops) WITH (refine = none);\nDROP INDEX extra_c;\n"
	. "REINDEX INDEX CONCURRENTLY items_tree;\nCREATE INDEX extra_d ON items USING pqtree ((v::halfvec(16)) halfvec_cosine_ops) WITH (refine = none);\nDROP INDEX extra_d;\n"
} 1 .. 500;

# Start all clients at once. end_load() awaits them.
sub start_load
{
	my ($node, @writers) = @_;
	my @scripts = map { plan_transactions($_) } @writers;
	my @searches = map { search_script(500) } 1 .. 2;
	for my $writer (@writers)
	{
		$writer->{process} = start_client($node, "writer_$writer->{client}", shift @scripts, stop_on_error => 1);
	}
	return {
		writers => \@writers,
		searches => [ map { start_client($node, "search_$_", $searches[$_ - 1]) } 1 .. 2 ],
		upkeep => [ map { start_client($node, $_, $upkeep{$_}) } sort keys %upkeep ] };
}

# The rows that a client has got, by round, from the index and from the table; tells of phantoms in `wrong`.
sub read_answers
{
	my ($client, $wrong) = @_;
	my %answers = (index => {}, table => {});
	for my $line (split /\n/, $client->{out})
	{
		my ($what, $round, $rows, $phantoms) = $line =~ /^(index|table) (\d+)\|([\w. ]*)\|(\d+)$/ or next;
		push @$wrong, "$what $round saw $phantoms rows that were never committed" if $phantoms > 0;
		$answers{$what}{$round} = $rows;
	}
	return %answers;
}

# Compare the rows of searches with the rows of table scans in the same snapshot.
sub compare_answers
{
	my ($client, $name) = @_;
	my (@wrong, $same);
	my %answers = read_answers($client, \@wrong);
	for my $round (keys %{ $answers{index} })
	{
		my ($got, $expected) = ($answers{index}{$round}, $answers{table}{$round});
		next if !defined $expected;
		if ($got eq $expected) { ++$same } else { push @wrong, "search $round: index ($got), table ($expected)" }
	}
	is("@wrong", '', "$name: $client->{name} saw what the table holds");
	return $same // 0;
}

# Errors of a client but those allowed.
sub unexpected_errors
{
	my ($client, @allowed) = @_;
	my @errors = grep { /ERROR:|FATAL:|PANIC:|WARNING:/ } split /\n/, $client->{err};
	for my $allowed (@allowed) { @errors = grep { !/$allowed/ } @errors }
	splice @errors, 5 if @errors > 5;
	return join "\n", @errors;
}

# Lets the load go on for this many microseconds. Meanwhile it reads the clients' output: a client that waits for its
# reader holds its locks, and soon all others wait for it.
sub run_load
{
	my ($load, $microseconds) = @_;
	my $end = time() + $microseconds / 1e6;
	my @clients = ((map { $_->{process} } @{ $load->{writers} }), @{ $load->{searches} }, @{ $load->{upkeep} });
	do
	{
		for my $client (@clients) { $client->{handle}->pump_nb if $client->{handle}->pumpable }
		usleep(5_000);
	} while (time() < $end);
	return;
}

# The number of searches of a load that can be compared by now.
sub comparable_times
{
	my ($load) = @_;
	my $times = 0;
	for my $client (@{ $load->{searches} })
	{
		my %answers = read_answers($client, []);
		$times += grep { exists $answers{index}{$_} } keys %{ $answers{table} };
	}
	return $times;
}

# The number of a load's transactions that have ended by now.
sub done_times
{
	my ($load) = @_;
	my $times = 0;
	$times += () = $_->{process}{out} =~ /^done \d+$/mg for @{ $load->{writers} };
	return $times;
}

# Lets the load go on until so many more of its searches can be compared, and so many of its transactions have ended. It
# gives up after a time that no machine needs, or when all searches have ended.
sub await_load
{
	my ($load, $searches, $transactions) = @_;
	my $compared = comparable_times($load) + $searches;
	my $end = time() + 300;
	while ((comparable_times($load) < $compared || done_times($load) < $transactions) && time() < $end)
	{
		return unless grep { $_->{handle}->pumpable } @{ $load->{searches} };
		run_load($load, 100_000);
	}
	return;
}

# Over all loads: the number of compared searches, and of searches with an error that the engine's end explains.
my ($searched, $refused) = (0, 0);
sub searched_times { return $searched }
sub refused_times { return $refused }

# End the clients' connections.
sub cut_load
{
	my ($node) = @_;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'torture'");
	return;
}

# Await the clients, whose connections are lost or ended, and check their output.
sub end_load
{
	my ($load, $name) = @_;
	my @writers = map { $_->{process} } @{ $load->{writers} };
	$_->{handle}->finish for @writers, @{ $load->{searches} }, @{ $load->{upkeep} };
	for my $client (@{ $load->{searches} })
	{
		$searched += compare_answers($client, $name);
		$refused += () = $client->{err} =~ /ERROR:.*$engine_errors/g;
	}
	# A build beside VACUUM may be chosen to end a deadlock; an index may be replaced while its name is looked up.
	my @upkeep = ($lost_connection, $engine_errors, qr/deadlock detected|could not open relation with OID|relation "extra_\w" (?:already exists|does not exist)|index "extra_\w" does not exist|is left for later|have become unlike/);
	my @failures = grep { $_ ne '' } (map { unexpected_errors($_, $lost_connection) } @writers),
		# After one of these errors the rest of the transaction is refused.
		(map { unexpected_errors($_, $lost_connection, $engine_errors, qr/current transaction is aborted/) } @{ $load->{searches} }),
		(map { unexpected_errors($_, @upkeep) } @{ $load->{upkeep} });
	is(join("\n", @failures), '', "$name: no client had another error");
	return;
}

# The number of a writer's transactions that the table's rows include: the last number that fits.
sub find_prefix
{
	my ($writer, $least, $most, $found) = @_;
	my %rows = %{ $writer->{rows} };
	my %differs = map { $_ => 1 } grep { ($rows{$_} // 0) != ($found->{$_} // 0) } keys %rows, keys %$found;
	my $prefix = $least == 0 && !%differs ? 0 : -1;
	for my $number (1 .. $most)
	{
		for my $change (@{ $writer->{transactions}[ $number - 1 ] })
		{
			my ($id, $version) = @$change;
			if (($version // 0) == ($found->{$id} // 0)) { delete $differs{$id} } else { $differs{$id} = 1 }
		}
		$prefix = $number if $number >= $least && !%differs;
	}
	return $prefix;
}

# The table's rows are those that the writers have noted as committed; they become the start of the next load.
# Returns the numbers of committed transactions and of lost asynchronous ones.
sub check_rows
{
	my ($node, $name, @writers) = @_;
	my %found;
	my $rows = $node->safe_psql('postgres', "$table_order SELECT client, id, version FROM items");
	for my $row (split /\n/, $rows) { my ($client, $id, $version) = split /\|/, $row; $found{$client}{$id} = $version }
	my ($committed, $lost) = (0, 0);
	for my $writer (@writers)
	{
		my @done = $writer->{process}{out} =~ /^done (\d+)$/mg;
		my $done = @done ? $done[-1] : 0;
		my $most = $done < $transactions ? $done + 1 : $done;
		my $kept = find_prefix($writer, $writer->{asynchronous} ? 0 : $done, $most, $found{ $writer->{client} } // {});
		cmp_ok($kept, '>=', 0, "$name: rows of writer $writer->{client} after $done transactions") or next;
		$committed += $kept;
		$lost += $done - $kept if $kept < $done;
		$writer->{rows} = $found{ $writer->{client} } // {};
	}
	is($node->safe_psql('postgres', "$table_order SELECT count(*) FILTER (WHERE v <> vec(client * 1000000 + id, version)) || ' ' || count(*) FILTER (WHERE id < 0) FROM items"),
		'0 0', "$name: rows are as they were written");
	return ($committed, $lost);
}

# Every valid index is whole; searches in its order return every row of the table once, each row finds itself, and the
# nearest rows by the exact index are those of the table.
sub check_indexes
{
	my ($node, $name) = @_;
	my $valid = $node->safe_psql('postgres', q{SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		JOIN pg_index i ON i.indexrelid = c.oid WHERE a.amhandler::text LIKE '%pgwarp%' AND i.indisvalid});
	my $rows = $node->safe_psql('postgres', "$table_order SELECT count(*) FROM items");
	for my $index (split / /, $valid)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT live_rows >= $rows FROM pgwarp_check('$index', true)");
		is("$rc $out $err", '0 t ', "$name: $index is whole");
	}
	my $all = "SELECT $row_list FROM (SELECT client, id, version FROM items";
	my $truth = $node->safe_psql('postgres', "$table_order $all) s");
	is($node->safe_psql('postgres', "$own_order $all ORDER BY v <-> vec(1, 1)) s"), $truth, "$name: items_exact returns every row");
	is($node->safe_psql('postgres', "$own_order $all ORDER BY v <=> vec(1, 1)) s"), $truth, "$name: items_half returns every row");
	is($node->safe_psql('postgres', "$own_order $all ORDER BY v <+> vec(1, 1)) s"), $truth, "$name: items_graph returns every row");
	is($node->safe_psql('postgres', "$own_order $all ORDER BY binary_quantize(v)::bit(16) <~> binary_quantize(vec(1, 1))) s"), $truth, "$name: items_bits returns every row");
	is($node->safe_psql('postgres', "$own_order SELECT count(*) FROM items q CROSS JOIN LATERAL
			(SELECT client, id FROM items ORDER BY v <-> q.v LIMIT 1) n WHERE n.client = q.client AND n.id = q.id"),
		$rows, "$name: each of $rows rows finds itself");
	my $nearest = "SELECT string_agg(ids, ';') FROM generate_series(1, 20) i, LATERAL (SELECT string_agg(client || '.' || id, ' ') ids
		FROM (SELECT client, id FROM items ORDER BY v <-> vec(i, 7) LIMIT 30) s) n";
	is($node->safe_psql('postgres', "$own_order $nearest"), $node->safe_psql('postgres', "$table_order $nearest"),
		"$name: exact answers are the table's");
	return;
}

# Remove the invalid indexes of interrupted builds.
sub drop_leftovers
{
	my ($node) = @_;
	my $names = $node->safe_psql('postgres', "SELECT indexrelid::regclass FROM pg_index
		WHERE indrelid = 'items'::regclass AND (NOT indisvalid OR indexrelid::regclass::text LIKE 'extra%')");
	$node->safe_psql('postgres', "DROP INDEX $_") for split /\n/, $names;
	return;
}

# Ids of the server's processes: of its engine, or of the others.
sub server_processes
{
	my ($node, %which) = @_;
	my $data_dir = realpath($node->data_dir);
	my @found;
	for my $process (glob '/proc/[0-9]*')
	{
		next if (readlink("$process/cwd") // '') ne $data_dir;
		my $command = eval { slurp_file("$process/cmdline") } // '';
		next if $command eq '' || (($command =~ /pgwarp-engine/) xor $which{engine});
		push @found, substr($process, 6);
	}
	return @found;
}

1;
