# k-NN joins in batches: thousands of random lateral queries give the same rows with and without KnnBatch.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run;
use List::Util qw(min);
use Test::More;

my $node = new_cluster('knn_batch', jit => 'off');
# Statements of each kind of comparison: few by default, thousands where there is time.
my $queries = $ENV{PGWARP_KNN_BATCH_QUERIES} || 250;
# One database for each type of vectors: the one in which statements are compared now.
my $database = 'postgres';
my @setup;

# Random coordinates, each time of another seed: no two distances are equal. Some vectors are null, and some queries exist
# twice.
push @setup, q{
	CREATE FUNCTION random_vector() RETURNS vector LANGUAGE sql VOLATILE AS
		'SELECT array_agg(random())::vector(6) FROM generate_series(1, 6)';
	SELECT setseed(0.25);
	CREATE TABLE items (id int, kind int, v vector(6));
	INSERT INTO items SELECT i, i % 7, CASE WHEN i % 50 = 0 THEN NULL ELSE random_vector() END FROM generate_series(1, 500) i;
	CREATE TABLE parts (id int, kind int, v vector(6)) PARTITION BY LIST (kind);
	CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (0, 1, 2);
	CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN (3, 4);
	CREATE TABLE parts_c PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT * FROM items;
	CREATE TABLE asked (id int, kind int, v vector(6), w vector(6));
	INSERT INTO asked SELECT i, i % 3, CASE WHEN i % 9 = 0 THEN NULL ELSE random_vector() END, random_vector() FROM generate_series(1, 12) i;
	INSERT INTO asked SELECT id + 12, kind, v, w FROM asked WHERE id <= 3;
	CREATE INDEX ON items USING exact (v);
	CREATE INDEX ON parts USING exact (v);
	DELETE FROM items WHERE id % 11 = 0;
	UPDATE items SET kind = kind WHERE id % 13 = 0;
	ANALYZE;
};

# The pieces of random statements.
push @setup, q{
	CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
		'SELECT choices[1 + floor(random() * cardinality(choices))::int]';
	-- inserts a row, and looks for it by a search and by a join
	CREATE FUNCTION touch(number int) RETURNS int LANGUAGE plpgsql VOLATILE STRICT AS $$
	DECLARE place vector(6) := (SELECT w FROM asked WHERE id = 1 + number % 12) + array_fill(number::real / 10000, ARRAY[6])::vector;
	BEGIN
		INSERT INTO items VALUES (100000 + number, number % 7, place);
		RETURN (SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> place LIMIT 5) n WHERE n.id >= 100000)
			+ (SELECT sum(n.id) FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.w LIMIT 2) n WHERE asked.id <= 3);
	END $$;
	-- inserts a row where the join searches just now, and looks for it there
	CREATE FUNCTION find_own(place vector, number int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
	BEGIN
		INSERT INTO items VALUES (400000 + number, 0, place);
		RETURN (SELECT count(*) FROM (SELECT v <-> place AS d FROM items ORDER BY v <-> place LIMIT 3) n WHERE n.d = 0);
	END $$;
	CREATE FUNCTION random_subquery(filter text = NULL) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		inner_table text := CASE WHEN filter IS NULL THEN pick('items', 'items', 'parts') ELSE 'items' END;
		-- the sum may raise an error: such searches aren't batched
		query text := pick('asked.v', 'asked.v', 'asked.v', 'asked.v', 'asked.w', 'asked.w', 'asked.w', 'asked.v + asked.w');
		body text;
	BEGIN
		filter := coalesce(filter, pick('', '', 'WHERE i.kind = 3', 'WHERE i.kind < 4', 'WHERE mod(i.id, 40) = mod(asked.id, 40)', 'WHERE i.id <> asked.id'));
		-- Rows without a distance are equal in order, and come as they like: all of them are one row here.
		body := format('SELECT CASE WHEN i.v <-> %1$s IS NULL THEN 0 ELSE i.id END AS id, CASE WHEN i.v <-> %1$s IS NULL THEN 0 ELSE i.kind END AS kind, '
			'i.v <-> %1$s AS d FROM %2$s i %3$s ORDER BY i.v <-> %1$s LIMIT %4$s %5$s', query, inner_table,
			filter, pick('1', '3', '10', '20', '60'), pick('', '', '', 'OFFSET 2'));
		IF random() < 0.15 THEN body := format('SELECT * FROM (%s) s', body); END IF;
		IF random() < 0.15 THEN body := format('SELECT id + 1 AS id, kind, d FROM (%s) s', body); END IF;
		RETURN body;
	END $$;
	-- columns asked_id, id, kind, d
	CREATE FUNCTION random_join(outer_rows text = NULL, subquery text = NULL) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE joined text;
	BEGIN
		outer_rows := coalesce(outer_rows, pick('asked', 'asked', '(SELECT * FROM asked ORDER BY id DESC) asked',
			'(SELECT a.id, b.kind, a.v, b.w FROM asked a JOIN asked b ON a.id = b.kind + 1 ORDER BY a.id, b.id) asked',
			'(SELECT * FROM asked UNION ALL SELECT id + 100, kind, w, v FROM asked WHERE kind = 1) asked'));
		joined := format('SELECT asked.id AS asked_id, n.* FROM %s %s LATERAL (%s) n %s', outer_rows,
			pick('CROSS JOIN', 'LEFT JOIN', 'INNER JOIN'), coalesce(subquery, random_subquery()), '%s');
		RETURN CASE WHEN joined LIKE '%CROSS JOIN%' THEN format(joined, '')
			ELSE format(joined, pick('ON true', 'ON n.d < 0.8', 'ON n.kind = 2')) END;
	END $$;
	-- sub-selects of a target list
	CREATE FUNCTION random_sub_selects() RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		RETURN format('SELECT asked.id, asked.kind, %s FROM %s%s',
			pick(format('ARRAY(SELECT s.id FROM (%s) s)', random_subquery()),
				format('(SELECT sum(s.d) FROM (%s) s)', random_subquery()),
				format('(SELECT s.id FROM (%s) s LIMIT 1), ARRAY(SELECT s.d FROM (%s) s)', random_subquery(), random_subquery())),
			pick('asked', '(SELECT * FROM asked ORDER BY id DESC) asked'),
			pick('', ' WHERE asked.id > 3', ' JOIN asked other USING (id)', ' ORDER BY asked.id LIMIT 4'));
	END $$;
	-- sub-selects of a condition; what raises an error for one row is guarded
	CREATE FUNCTION random_condition(filter text = NULL) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		found text := format('(%s) s', random_subquery(filter));
		guarded text := 'array_fill(1 / (asked.id - 4), ARRAY[6])::vector';
	BEGIN
		RETURN pick(format('asked.kind IN (SELECT s.kind FROM %s)', found),
			format('asked.kind NOT IN (SELECT s.kind FROM %s)', found),
			format('asked.id %% 2 = 0 OR asked.kind IN (SELECT s.kind FROM %s)', found),
			format('(asked.kind, asked.id %% 2) IN (SELECT s.kind, s.id %% 2 FROM %s)', found),
			format('asked.kind + 1 %s (SELECT s.kind FROM %s)', pick('< ANY', '>= ALL', '<= ALL', '= ANY'), found),
			format('%s (SELECT FROM %s WHERE s.kind %s asked.kind)', pick('EXISTS', 'NOT EXISTS'), found, pick('=', '<')),
			format('(SELECT %s(s.d) FROM %s) < %s', pick('min', 'avg', 'sum'), found, pick('0.5', '0.7', '4')),
			format('asked.id = ANY (ARRAY(SELECT s.id %% 15 FROM %s))', found),
			format('CASE WHEN asked.id <> 4 THEN asked.kind IN (SELECT i.kind FROM items i ORDER BY i.v <-> (asked.w + %s) LIMIT 4) END', guarded),
			format('asked.id <> 4 AND EXISTS (SELECT FROM (SELECT kind FROM items i ORDER BY i.v <-> (asked.v + %s) LIMIT 4) s WHERE s.kind < 2)', guarded));
	END $$;
	-- columns id, kind
	CREATE FUNCTION random_conditions(condition text = NULL) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		rows_from text := pick('asked', 'asked', '(SELECT * FROM asked ORDER BY id DESC OFFSET 0) asked',
			'(SELECT * FROM asked UNION ALL SELECT id + 100, kind, w, v FROM asked WHERE kind = 1) asked',
			'(SELECT a.id, b.kind, a.v, b.w FROM asked a JOIN asked b ON a.id = b.kind + 1 ORDER BY a.id, b.id) asked',
			'(SELECT a.id, b.kind, a.v, b.w FROM asked a LEFT JOIN asked b ON a.id = b.kind + 1 ORDER BY a.id, b.id) asked');
		condition text := format('(%s)', coalesce(condition, random_condition()));
	BEGIN
		IF random() < 0.3 THEN condition := condition || format(' AND (%s)', random_condition()); END IF;
		IF random() < 0.3 THEN condition := pick('asked.id > 3', 'asked.kind < 2', '10 / asked.id > 0', 'random() >= 0') || ' AND ' || condition; END IF;
		RETURN format('SELECT asked.id, asked.kind%s FROM %s WHERE %s%s',
			pick('', '', format(', ARRAY(SELECT s.id FROM (%s) s)', random_subquery()), format(', (%s)', random_condition())),
			rows_from, condition, pick('', '', ' LIMIT 2', ' ORDER BY asked.id LIMIT 5'));
	END $$;
	-- the same in a place where it is executed often, or stopped early
	CREATE FUNCTION random_filter() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE filtered text := random_conditions();
	BEGIN
		RETURN CASE floor(random() * 8)::int
			WHEN 0 THEN format('SELECT o.id, (SELECT count(*) FROM (%s) s WHERE s.kind = o.kind) FROM asked o WHERE o.id < 6', filtered)
			WHEN 1 THEN format('SELECT o.id FROM asked o WHERE EXISTS (SELECT FROM (%s) s WHERE s.id > o.id)', filtered)
			WHEN 2 THEN format('SELECT o.id, n.* FROM asked o CROSS JOIN LATERAL (%s) n', random_conditions('asked.kind = o.kind AND ' || random_condition()))
			WHEN 3 THEN format('SELECT s.id, n.id AS n FROM (%s) s JOIN asked USING (id) CROSS JOIN LATERAL (%s) n', filtered, random_subquery())
			ELSE filtered
		END;
	END $$;
	CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE joined text := random_join();
	BEGIN
		IF random() < 0.2 THEN RETURN random_sub_selects(); END IF;
		IF random() < 0.4 THEN RETURN random_filter(); END IF;
		IF random() < 0.2 THEN
			joined := format('SELECT t.*, m.id AS second FROM (%s) t JOIN asked ON asked.id = t.asked_id CROSS JOIN LATERAL (%s) m', joined, random_subquery());
		ELSIF random() < 0.3 THEN
			joined := joined || pick(' WHERE asked.id < 8', ' WHERE n.d < 0.7', ' WHERE asked.kind = 1 AND n.kind <> 2');
		END IF;
		CASE floor(random() * 10)::int
			WHEN 0 THEN joined := format('SELECT asked_id, count(*), min(d) FROM (%s) s GROUP BY asked_id', joined);
			WHEN 1 THEN joined := format('SELECT id FROM asked o WHERE o.id < 5 AND EXISTS (SELECT FROM (%s) s WHERE s.asked_id = o.id AND s.d < 0.6)', joined);
			WHEN 2 THEN joined := format('SELECT o.id, (SELECT sum(d) FROM (%s) s WHERE s.asked_id = o.id) FROM asked o WHERE o.id < 4', joined);
			WHEN 3 THEN joined := format('SELECT * FROM (%s) s ORDER BY d, asked_id, id LIMIT %s OFFSET %s', joined, pick('1', '7', '50'), pick('0', '4'));
			WHEN 4 THEN joined := format('SELECT o.id AS o, s.* FROM asked o JOIN (%s) s ON s.asked_id = o.id + 1', joined);
			WHEN 5 THEN joined := format('WITH s AS MATERIALIZED (%s) SELECT a.asked_id, a.id, b.d FROM s a JOIN s b USING (id)', joined);
			ELSE NULL;
		END CASE;
		RETURN joined;
	END $$;
};

# Statements as they are run: each gives one text, its rows in order.
push @setup, q{
	CREATE FUNCTION all_rows(query text) RETURNS text LANGUAGE sql AS
		$$SELECT format('SELECT string_agg(t::text, E''\n'' ORDER BY t::text) FROM (%s) t', query)$$;
	CREATE FUNCTION random_write() RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		RETURN CASE floor(random() * 11)::int
			WHEN 6 THEN all_rows(format('SELECT asked.id FROM asked WHERE %s FOR UPDATE', random_condition()))
			WHEN 7 THEN all_rows(format('SELECT s.*, touch(id) FROM (%s) s', random_conditions()))
			WHEN 8 THEN all_rows(random_conditions('asked.id < 5 AND ' || pick('touch(asked.id) > 0 AND ', 'find_own(asked.w, asked.id) > 0 AND ') || random_condition()))
			WHEN 9 THEN all_rows(random_conditions('asked.id < 3 AND ' || random_condition('WHERE i.kind < 3 AND touch(i.id) > 0')))
			WHEN 10 THEN format('WITH m AS (%s RETURNING items.id, items.kind) SELECT string_agg(m::text, chr(10) ORDER BY m::text) FROM m',
				pick('UPDATE items SET kind = items.kind + 5 FROM asked WHERE items.id = asked.id AND ', 'DELETE FROM items USING asked WHERE items.id = asked.id AND ',
					'INSERT INTO items SELECT 500000 + 3 * asked.id, 7, asked.w FROM asked WHERE ') || random_condition())
			WHEN 0 THEN all_rows(random_join(pick('asked', '(SELECT * FROM asked WHERE id > 3) asked')) || ' FOR UPDATE OF asked')
			WHEN 1 THEN all_rows(random_join(NULL, format('SELECT id, kind, i.v <-> asked.w AS d FROM items i %s ORDER BY i.v <-> asked.w LIMIT 3 %s',
				pick('', 'WHERE kind < 5'), pick('FOR UPDATE', 'FOR SHARE'))) || ' WHERE n.id > 1')
			WHEN 2 THEN format('WITH s AS (%s), m AS (%s RETURNING items.id, items.kind) SELECT string_agg(m::text, chr(10) ORDER BY m::text) FROM m', random_join(),
				pick('UPDATE items SET kind = items.kind + 5 FROM s WHERE items.id = s.id', 'DELETE FROM items USING s WHERE items.id = s.id'))
			-- a function that writes and searches: in the target list, on the outer side, in the filter
			WHEN 3 THEN all_rows(format('SELECT s.*, touch(id) FROM (%s WHERE asked.id < 3) s', random_join('asked')))
			WHEN 5 THEN all_rows(format('SELECT asked.id, n.*, find_own(asked.w, n.id) FROM asked CROSS JOIN LATERAL (
				SELECT i.id, i.v <-> asked.w AS d FROM items i %s ORDER BY i.v <-> asked.w LIMIT %s) n WHERE asked.id < 5', pick('', 'WHERE i.kind < 5'), pick('1', '4')))
			WHEN 4 THEN all_rows(random_join('(SELECT *, touch(id) FROM asked OFFSET 0) asked'))
			ELSE all_rows(random_join('(SELECT * FROM asked WHERE id < 4) asked', random_subquery('WHERE i.kind < 3 AND touch(i.id) > 0')))
		END;
	END $$;
	-- the rows of a cursor, read piece by piece, while its transaction changes the table and goes back to savepoints
	CREATE FUNCTION cursor_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		rows refcursor; one record; lines text[] := '{}';
	BEGIN
		IF random() < 0.5 THEN OPEN rows NO SCROLL FOR EXECUTE query; ELSE OPEN rows SCROLL FOR EXECUTE query; END IF;
		LOOP
			IF random() < 0.2 THEN
				BEGIN
					DELETE FROM items WHERE id % 3 = floor(random() * 3)::int;
					INSERT INTO items SELECT 200000 + id, kind, w FROM asked;
					FETCH rows INTO one;
					RAISE EXCEPTION 'back to the savepoint' USING ERRCODE = 'UE001';
				EXCEPTION WHEN SQLSTATE 'UE001' THEN NULL;
				END;
			ELSE
				FETCH rows INTO one;
			END IF;
			EXIT WHEN NOT FOUND;
			lines := lines || one::text;
			EXIT WHEN cardinality(lines) > 40;
			IF random() < 0.1 THEN
				DELETE FROM items WHERE id % 29 = cardinality(lines) % 29;
				UPDATE items SET kind = kind + 1, v = v + v WHERE id % 31 = cardinality(lines) % 31;
			END IF;
		END LOOP;
		CLOSE rows;
		RETURN array_to_string(lines, E'\n');
	END $$;
	CREATE FUNCTION uses_batches(statement text) RETURNS bool LANGUAGE plpgsql AS $$
	DECLARE plan text;
	BEGIN
		EXECUTE format('EXPLAIN (FORMAT JSON) %s', statement) INTO plan;
		RETURN plan ~ 'Knn(Batch|Join)';
	END $$;
	-- Run a statement, or a query by a cursor, and undo what it did; what fails gives its error.
	CREATE FUNCTION answer_of(statement text, by_cursor bool, seed float8) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE answer text;
	BEGIN
		PERFORM setseed(seed);
		IF by_cursor THEN answer := cursor_rows(statement); ELSE EXECUTE statement INTO answer; END IF;
		RAISE EXCEPTION 'undo' USING ERRCODE = 'UE002';
	EXCEPTION
		WHEN SQLSTATE 'UE002' THEN RETURN answer;
		WHEN OTHERS THEN RETURN 'error: ' || SQLERRM;
	END $$;
	-- One random statement after another, each run both ways.
	CREATE FUNCTION compare(count int, seed float8, kind text, OUT batched int, OUT wrong int, OUT failed int, OUT example text) LANGUAGE plpgsql AS $$
	DECLARE statement text; batches text; plain text; one_seed float8;
	BEGIN
		batched := 0; wrong := 0; failed := 0;
		FOR i IN 1 .. count LOOP
			PERFORM setseed(seed + i * 1e-6);
			statement := CASE kind WHEN 'read' THEN all_rows(random_query()) WHEN 'write' THEN random_write()
				ELSE CASE WHEN random() < 0.2 THEN random_conditions() ELSE random_join() END END;
			one_seed := random();
			PERFORM set_config('pgwarp.batch_size', pick('1', '3', '8', '1000'), true);
			PERFORM set_config('pgwarp.knn_batch', 'on', true);
			batched := batched + uses_batches(statement)::int;
			batches := answer_of(statement, kind = 'cursor', one_seed);
			PERFORM set_config('pgwarp.knn_batch', 'off', true);
			plain := answer_of(statement, kind = 'cursor', one_seed);
			IF plain LIKE 'error: %' THEN
				failed := failed + 1;
				example := coalesce(example, statement || ': ' || plain);
			END IF;
			IF batches IS DISTINCT FROM plain THEN
				wrong := wrong + 1;
				example := statement || ': ' || coalesce(left(batches, 3000), 'nothing') || ' instead of ' || coalesce(left(plain, 3000), 'nothing');
			END IF;
		END LOOP;
	END $$;
};
$node->safe_psql('postgres', $_) for @setup;

# Of `$share` of the statements at least some must have been batched.
sub compare
{
	my ($what, $kind, $count, $seed, $share, %more) = @_;
	$count = int $count;
	my $before = $more{before} // '';
	my ($batched, $wrong, $failed, $example) = split /\|/, $node->safe_psql($database, qq{
		SET enable_seqscan = off; SET enable_memoize = off; SET enable_material = off;
		$before
		SELECT * FROM compare($count, $seed, '$kind');
	}), 4;
	is($wrong, 0, "$what: $count random statements, the same rows with and without batches") or diag($example);
	is($failed, 0, "$what: none fails") or diag($example);
	cmp_ok($batched, '>', $count * $share, "$what: $batched of them were batched");
	return;
}

# Read by a role that row security limits to some rows, on both sides.
$node->safe_psql('postgres', q{
	CREATE ROLE reader;
	GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
	CREATE FUNCTION may_see(kind int) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN kind % 5 < 3; END';
	CREATE POLICY seen ON items TO reader USING (id % 3 <> 0 AND may_see(kind)) WITH CHECK (true);
	CREATE POLICY seen ON parts TO reader USING (may_see(kind) OR kind IS NULL) WITH CHECK (true);
	CREATE POLICY seen ON asked TO reader USING (id <> 5 AND may_see(id)) WITH CHECK (true);
});
my $secure = sub { $node->safe_psql('postgres', "ALTER TABLE $_ $_[0] ROW LEVEL SECURITY") for qw(items parts asked) };

# Rows come and go in other sessions meanwhile, and are vacuumed.
sub compare_beside_writers
{
	my ($what, $count, $seed) = @_;
	my $script = $node->basedir . '/churn.sql';
	PostgreSQL::Test::Utils::append_to_file($script, q{
		\set id random(1, 400)
		INSERT INTO items VALUES (300000 + :id, :id % 7, random_vector());
		DELETE FROM items WHERE id = :id OR id = 299900 + :id;
		UPDATE items SET kind = kind + 1 WHERE id = 100 + :id;
		UPDATE items SET v = random_vector() WHERE id = 500 - :id;
		UPDATE parts SET v = random_vector() WHERE id = :id;
		VACUUM (TRUNCATE off) items;
	}) unless -e $script;
	my @pgbench = ($node->installed_command('pgbench'), '-n', '-T', '600', '-R', '50', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres');
	my $writers = IPC::Run::start(\@pgbench, '>', \my $out, '2>', \my $err);
	# An old snapshot keeps all versions of the rows: a new one now and then.
	for (my $done = 0; $done < $count; $done += 100)
	{
		compare($what, 'read', min(100, $count - $done), $seed + $done * 1e-5, 0.5, before => 'BEGIN ISOLATION LEVEL REPEATABLE READ;');
	}
	ok($writers->pumpable, "$what: the writers are still at it") or diag($err);
	$writers->signal('TERM');
	$writers->finish;
	return;
}

compare('exact', 'read', $queries, 0.1, 0.5);
compare('exact, writing', 'write', $queries / 4, 0.11, 0.4);
compare('exact, by cursors', 'cursor', $queries / 4, 0.12, 0.7);
compare_beside_writers('exact, beside writers', $queries / 2, 0.13);
$secure->('ENABLE');
compare('exact, row security', 'read', $queries / 2, 0.14, 0.5, before => 'SET ROLE reader;');
compare('exact, row security, writing', 'write', $queries / 8, 0.15, 0.4, before => 'SET ROLE reader;');
$secure->('DISABLE');
$node->safe_psql('postgres', q{
	DROP INDEX items_v_idx; DROP INDEX parts_v_idx;
	CREATE INDEX ON items USING ivfadc (v) WITH (lists = 20); CREATE INDEX ON parts USING ivfadc (v) WITH (lists = 10);
	SELECT setseed(0.2); INSERT INTO items SELECT i, i % 7, random_vector() FROM generate_series(5001, 5200) i;
	ALTER DATABASE postgres SET pgwarp.ivfadc_probes = 65536;
	ALTER DATABASE postgres SET pgwarp.refine_factor = 100;
});
compare('ivfadc', 'read', $queries, 0.2, 0.5);
compare('ivfadc, writing', 'write', $queries / 4, 0.21, 0.4);
compare('ivfadc, by cursors', 'cursor', $queries / 4, 0.22, 0.7);
compare_beside_writers('ivfadc, beside writers', $queries / 4, 0.23);
$node->safe_psql('postgres', q{
	DROP INDEX items_v_idx; DROP INDEX parts_v_idx; DELETE FROM items WHERE id > 5000;
	CREATE INDEX ON items USING pqtree (v); CREATE INDEX ON parts USING pqtree (v);
	SELECT setseed(0.28); INSERT INTO items SELECT i, i % 7, random_vector() FROM generate_series(5001, 5200) i;
	ALTER DATABASE postgres SET pgwarp.pqtree_candidates = 65536;
});
compare('pqtree', 'read', $queries / 2, 0.24, 0.5);
compare('pqtree, writing', 'write', $queries / 4, 0.25, 0.4);
compare('pqtree, by cursors', 'cursor', $queries / 4, 0.26, 0.7);
compare_beside_writers('pqtree, beside writers', $queries / 4, 0.27);
# With the largest effort approximate searches find the same rows for any size of the first search.
my $more_rows = 'INSERT INTO items SELECT i, i % 7, random_vector() FROM generate_series(5001, 5200) i;';
$node->safe_psql('postgres', qq{
	DROP INDEX items_v_idx; DROP INDEX parts_v_idx; DELETE FROM items WHERE id > 5000;
	CREATE INDEX ON items USING graph (v); CREATE INDEX ON parts USING graph (v);
	SELECT setseed(0.3); $more_rows
	ALTER DATABASE postgres SET pgwarp.graph_ef_search = 65536;
});
compare('graph', 'read', $queries, 0.3, 0.5);
compare('graph, writing', 'write', $queries / 4, 0.31, 0.4);
compare('graph, by cursors', 'cursor', $queries / 4, 0.32, 0.7);
compare_beside_writers('graph, beside writers', $queries / 4, 0.33);

# The same of halfvec.
$database = 'halves';
$node->safe_psql('postgres', "CREATE DATABASE halves");
$node->safe_psql('halves', 'CREATE EXTENSION pgwarp');
$node->safe_psql('halves', s/\bvector\b/halfvec/gr) for @setup;
$node->safe_psql('halves', "ALTER DATABASE halves SET pgwarp.$_") for 'ivfadc_probes = 65536', 'refine_factor = 100', 'graph_ef_search = 65536', 'pqtree_candidates = 65536';
my $seed = 0.4;
for my $index ('exact (v)', 'ivfadc (v) WITH (lists = 10)', 'pqtree (v)', 'graph (v)')
{
	my ($method) = $index =~ /^(\w+)/;
	$node->safe_psql('halves', qq{
		DROP INDEX items_v_idx; DROP INDEX parts_v_idx; DELETE FROM items WHERE id > 5000;
		CREATE INDEX ON items USING $index; CREATE INDEX ON parts USING $index;
		SELECT setseed($seed); $more_rows
	});
	compare("halfvec, $method", 'read', $queries / 2, $seed, 0.5);
	compare("halfvec, $method, writing", 'write', $queries / 8, $seed + 0.01, 0.4);
	compare("halfvec, $method, by cursors", 'cursor', $queries / 8, $seed + 0.02, 0.7);
	$seed += 0.1;
}
$database = 'postgres';

# Rows of the outer side change while FOR UPDATE waits for them: it goes on with their new versions.
sub locked_by
{
	my ($batch) = @_;
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS changing; CREATE TABLE changing AS SELECT id, kind, w AS v FROM asked WHERE id <= 8');
	my $changes = q{UPDATE changing SET v = (SELECT w FROM asked WHERE id = 9) WHERE id IN (2, 5); DELETE FROM changing WHERE id = 7; UPDATE changing SET kind = 77 WHERE id = 8};
	my $sql = "SET enable_seqscan = off; SET enable_memoize = off; SET pgwarp.knn_batch = $batch;
		SELECT q.id, n.id, n.d FROM changing q CROSS JOIN LATERAL (SELECT i.id, i.v <-> q.v AS d FROM items i WHERE i.kind < 5 ORDER BY i.v <-> q.v LIMIT 4) n WHERE q.kind <> 77 FOR UPDATE OF q";
	return join "\n", sort split /\n/, rows_after_waiting($node, $changes, $sql, "knn_batch $batch");
}
my $waited = locked_by('on');
is($waited, locked_by('off'), 'rows that changed while FOR UPDATE waited');
like($waited, qr/^5\|/m, 'the changed ones among them');
unlike($waited, qr/^[78]\|/m, 'and none that is gone');

# A row that UPDATE waits for is joined again with the rows of the search that it was joined with.
sub updated_after_waiting
{
	my ($batch) = @_;
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS changing; CREATE TABLE changing AS SELECT id, kind, w AS v, 0::float8 AS sum, 0 AS seen FROM asked WHERE id <= 8');
	my $writer = $node->background_psql('postgres');
	$writer->query_safe(q{BEGIN; UPDATE changing SET seen = 1 WHERE id IN (2, 5); DELETE FROM changing WHERE id = 7; UPDATE changing SET kind = 77 WHERE id = 8});
	my $sql = "SET enable_seqscan = off; SET enable_memoize = off; SET pgwarp.knn_batch = $batch;
		UPDATE changing c SET seen = seen + 10, sum = n.sum FROM asked q CROSS JOIN LATERAL (SELECT sum(d) AS sum FROM (SELECT i.v <-> q.w AS d FROM items i WHERE i.kind < 5 ORDER BY i.v <-> q.w LIMIT 4) s) n
			WHERE q.id = c.id AND c.kind <> 77";
	my $waiter = IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql], '>', \my $out, '2>', \my $err);
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE changing c%'}) or die 'nobody waits';
	$writer->query_safe('COMMIT');
	$writer->quit;
	$waiter->finish;
	return $out . $err . $node->safe_psql('postgres', 'SELECT id, kind, seen, sum FROM changing ORDER BY id');
}
$waited = updated_after_waiting('on');
is($waited, updated_after_waiting('off'), 'rows that changed while UPDATE waited');
like($waited, qr/^5\|\d+\|11\|\d\.\d+$/m, 'the changed ones among them');
unlike($waited, qr/^7\|/m, 'and none that is gone');
like($waited, qr/^8\|77\|0\|0$/m, 'nor one that the condition leaves out by now');

# Memory: a join over many outer rows holds a batch, not all.
$node->safe_psql('postgres', q{CREATE TABLE many AS SELECT g AS id, random_vector() AS v FROM generate_series(1, 60000) g; ANALYZE many});
my $session = $node->background_psql('postgres');
my $backend = $session->query_safe('SELECT pg_backend_pid()');
my $private_kb = sub {
	my ($kb) = slurp_file("/proc/$backend/status") =~ /^RssAnon:\s+(\d+)/m;
	return $kb;
};
my $join = 'SET enable_seqscan = off; SET enable_memoize = off; SET pgwarp.verify_results = off;
	SELECT count(*) FROM (SELECT * FROM many WHERE id <= %d) o CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> o.v LIMIT 5) n';
is($session->query_safe(sprintf($join, 5000)), '25000', 'a join over 5,000 rows');
my $before = $private_kb->();
is($session->query_safe(sprintf($join, 60000)), '300000', 'a join over 60,000 rows');
cmp_ok($private_kb->() - $before, '<', 4 * 1024, 'the backend did not grow');
$session->quit;

# Two transactions that each read the rows that the other writes: one of them must fail.
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
for my $i (0, 1)
{
	$sessions[$i]->query_safe('SET enable_seqscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE');
	$sessions[$i]->query_safe('SELECT count(n.id) FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.v LIMIT 5) n');
}
$sessions[$_]->query("INSERT INTO items VALUES (90000 + $_, 1, random_vector())") for 0, 1;
$sessions[$_]->query('COMMIT') for 0, 1;
is($node->safe_psql('postgres', 'SELECT count(*) FROM items WHERE id IN (90000, 90001)'), '1', 'of two serializable joins that insert, one commits');
$_->quit for @sessions;

$node->stop;
done_testing();
