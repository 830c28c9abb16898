-- rows whose distances an index knows by bounds, found by two searches of one scan: the nearest of the second one lie
-- beside the farthest of the first
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET pgwarp.verify_results = on;
CREATE TABLE items (id integer, v vector(2));
INSERT INTO items SELECT i, ARRAY[hashint4(i)::float8 / 2147483648, hashint4(-i)::float8 / 2147483648]::vector FROM generate_series(1, 4000) i;
ANALYZE items;

-- Searches, and those whose rows come out of order. The filter lets only the last row of the first search and those
-- behind it through. That search has an eighth more rows than it is for, because of their bounds: it is for 200 in a
-- batch, and for 360 alone, since the planner expects the filter to keep a third.
CREATE FUNCTION out_of_order(operator text, batches text, OUT searches bigint, OUT wrong bigint) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL enable_indexscan = off;
	EXECUTE format('CREATE TEMP TABLE asked AS SELECT a.id, a.v, f.d AS beyond FROM items a, LATERAL
		(SELECT i.v %1$s a.v AS d FROM items i ORDER BY i.v %1$s a.v OFFSET %2$s LIMIT 1) f WHERE a.id %% 20 = 7', operator, CASE batches WHEN 'on' THEN 227 ELSE 408 END);
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_seqscan = off;
	PERFORM set_config('pgwarp.knn_batch', batches, true);
	EXECUTE format('CREATE TEMP TABLE rows_read AS SELECT a.id, n.d FROM asked a CROSS JOIN LATERAL
		(SELECT i.v %1$s a.v AS d FROM items i WHERE i.v %1$s a.v >= a.beyond ORDER BY i.v %1$s a.v LIMIT 100) n', operator);
	SET LOCAL enable_seqscan = on;
	SELECT count(DISTINCT id), count(DISTINCT id) FILTER (WHERE d < before) INTO searches, wrong
		FROM (SELECT id, d, lag(d) OVER (PARTITION BY id ORDER BY ctid) AS before FROM rows_read) r;
	DROP TABLE asked, rows_read;
END $$;
CREATE INDEX items_v ON items USING ivfadc (v) WITH (lists = 60, codes = half);
SELECT b AS batches, o.* FROM unnest(ARRAY['on', 'off']) b, out_of_order('<->', b) o;
DROP INDEX items_v;
CREATE INDEX items_v ON items USING pqtree (v vector_cosine_ops);
SELECT b AS batches, o.* FROM unnest(ARRAY['on', 'off']) b, out_of_order('<=>', b) o;
DROP INDEX items_v;
CREATE INDEX items_v ON items USING graph (v vector_l1_ops) WITH (vectors = half);
-- with the usual number of neighbours an exact search would cost less
SET pgwarp.graph_ef_search = 10;
SELECT b AS batches, o.* FROM unnest(ARRAY['on', 'off']) b, out_of_order('<+>', b) o;
RESET pgwarp.graph_ef_search;
DROP FUNCTION out_of_order(text, text);
DROP TABLE items;
