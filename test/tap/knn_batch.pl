# k-NN joins in batches: thousands of random lateral queries give the same rows with and without KnnBatch.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PgwarpTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('knn_batch', jit => 'off');
my $queries = $ENV{PGWARP_KNN_BATCH_QUERIES} // 3000;

# Random coordinates: no two distances are equal. Some vectors are null, some queries twice there.
$node->safe_psql('postgres', q{
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
});

# One random query after another, each run both ways; what differs is reported.
$node->safe_psql('postgres', q{
	CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
		'SELECT choices[1 + floor(random() * cardinality(choices))::int]';
	CREATE FUNCTION random_subquery() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		inner_table text := pick('items', 'items', 'parts');
		query text := pick('asked.v', 'asked.v', 'asked.w', 'asked.v + asked.w', 'l2_normalize(asked.w)');
		body text;
	BEGIN
		body := format('SELECT i.id, i.kind, i.v <-> %s AS d FROM %s i %s ORDER BY i.v <-> %s LIMIT %s %s', query, inner_table,
			pick('', '', 'WHERE i.kind = 3', 'WHERE i.kind < 4', 'WHERE mod(i.id, 40) = mod(asked.id, 40)', 'WHERE i.id <> asked.id'),
			query, pick('1', '3', '10', '20'), pick('', '', '', 'OFFSET 2'));
		IF random() < 0.15 THEN body := format('SELECT * FROM (%s) s', body); END IF;
		IF random() < 0.15 THEN body := format('SELECT id + 1 AS id, kind, d FROM (%s) s', body); END IF;
		RETURN body;
	END $$;
	CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		outer_rows text := pick('asked', 'asked', '(SELECT * FROM asked ORDER BY id DESC) asked',
			'(SELECT a.id, b.kind, a.v, b.w FROM asked a JOIN asked b ON a.id = b.kind + 1) asked');
		joined text;
	BEGIN
		IF random() < 0.2 THEN
			RETURN format('SELECT asked.id, asked.kind, %s FROM %s%s',
				pick('ARRAY(SELECT s.id FROM (%1$s) s)', '(SELECT sum(s.d) FROM (%1$s) s)', '(SELECT s.id FROM (%1$s) s LIMIT 1), ARRAY(SELECT s.d FROM (%2$s) s)'),
				outer_rows, pick('', ' WHERE asked.id > 3', ' JOIN asked other USING (id)', ' ORDER BY asked.id LIMIT 4'));
		END IF;
		joined := format('SELECT asked.id AS asked_id, n.* FROM %s %s LATERAL (%s) n %s', outer_rows,
			pick('CROSS JOIN', 'LEFT JOIN', 'INNER JOIN'), random_subquery(), '%s');
		joined := CASE WHEN joined LIKE '%CROSS JOIN%' THEN format(joined, '')
			ELSE format(joined, pick('ON true', 'ON n.d < 0.8', 'ON n.kind = 2')) END;
		IF random() < 0.2 THEN
			joined := format('SELECT t.*, m.id AS second FROM (%s) t JOIN asked ON asked.id = t.asked_id CROSS JOIN LATERAL (%s) m', joined, random_subquery());
		ELSIF random() < 0.3 THEN
			joined := joined || pick(' WHERE asked.id < 8', ' WHERE n.d < 0.7', ' WHERE asked.kind = 1 AND n.kind <> 2');
		END IF;
		CASE floor(random() * 8)::int
			WHEN 0 THEN joined := format('SELECT asked_id, count(*), min(d) FROM (%s) s GROUP BY asked_id', joined);
			WHEN 1 THEN joined := format('SELECT id FROM asked o WHERE o.id < 5 AND EXISTS (SELECT FROM (%s) s WHERE s.asked_id = o.id AND s.d < 0.6)', joined);
			WHEN 2 THEN joined := format('SELECT o.id, (SELECT sum(d) FROM (%s) s WHERE s.asked_id = o.id) FROM asked o WHERE o.id < 4', joined);
			ELSE NULL;
		END CASE;
		RETURN joined;
	END $$;
	CREATE FUNCTION fill_in(query text) RETURNS text LANGUAGE sql VOLATILE AS
		$$SELECT CASE WHEN query LIKE '%$s%' THEN format(query, random_subquery(), random_subquery()) ELSE query END$$;
	CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE result text;
	BEGIN
		EXECUTE format('SELECT string_agg(t::text, E''\n'' ORDER BY t::text) FROM (%s) t', query) INTO result;
		RETURN result;
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLERRM;
	END $$;
	CREATE FUNCTION uses_batches(query text) RETURNS bool LANGUAGE plpgsql AS $$
	DECLARE plan text;
	BEGIN
		EXECUTE format('EXPLAIN (FORMAT JSON) %s', query) INTO plan;
		RETURN plan LIKE '%KnnBatch%';
	END $$;
	CREATE FUNCTION compare(count int, seed float8, OUT batched int, OUT wrong int, OUT example text) LANGUAGE plpgsql AS $$
	DECLARE query text; batches text; plain text;
	BEGIN
		PERFORM setseed(seed);
		batched := 0; wrong := 0;
		FOR i IN 1 .. count LOOP
			query := fill_in(random_query());
			PERFORM set_config('pgwarp.batch_size', pick('1', '3', '8', '1000'), true);
			PERFORM set_config('pgwarp.knn_batch', 'on', true);
			batched := batched + uses_batches(query)::int;
			batches := rows_of(query);
			PERFORM set_config('pgwarp.knn_batch', 'off', true);
			plain := rows_of(query);
			IF batches IS DISTINCT FROM plain THEN
				wrong := wrong + 1;
				example := coalesce(example, query);
			END IF;
		END LOOP;
	END $$;
});

sub compare
{
	my ($what, $count, $seed) = @_;
	my ($batched, $wrong, $example) = split /\|/, $node->safe_psql('postgres', qq{
		SET enable_seqscan = off; SET enable_memoize = off; SET enable_material = off;
		SELECT * FROM compare($count, $seed);
	}), 3;
	is($wrong, 0, "$what: $count random queries, the same rows with and without batches") or diag($example);
	cmp_ok($batched, '>', $count / 2, "$what: $batched of them were batched");
	return;
}

compare('exact', $queries, 0.1);
$node->safe_psql('postgres', q{
	DROP INDEX items_v_idx; DROP INDEX parts_v_idx;
	CREATE INDEX ON items USING ivfadc (v) WITH (lists = 20); CREATE INDEX ON parts USING ivfadc (v) WITH (lists = 10);
	INSERT INTO items SELECT i, i % 7, random_vector() FROM generate_series(5001, 5200) i;
	ALTER DATABASE postgres SET pgwarp.ivfadc_probes = 65536;
	ALTER DATABASE postgres SET pgwarp.refine_factor = 100;
});
compare('ivfadc', $queries, 0.2);

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

# Two transactions that each read what the other writes: one of them must fail.
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
for my $i (0, 1)
{
	$sessions[$i]->query_safe('SET enable_seqscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE');
	$sessions[$i]->query_safe('SELECT count(n.id) FROM asked CROSS JOIN LATERAL (SELECT id FROM items i ORDER BY i.v <-> asked.v LIMIT 5) n');
}
$sessions[$_]->query("INSERT INTO items VALUES (90000 + $_, 1, random_vector())") for 0, 1;
$sessions[$_]->query('COMMIT') for 0, 1;
is($node->safe_psql('postgres', 'SELECT count(*) FROM items WHERE id >= 90000'), '1', 'of two serializable joins that insert, one commits');
$_->quit for @sessions;

$node->stop;
done_testing();
