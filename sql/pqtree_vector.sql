SET client_min_messages = warning;
SET enable_seqscan = off;
SET pgwarp.verify_results = on;
\getenv tests PG_ABS_SRCDIR
\set vector_index :tests '/sql/include/vector_index.sql'
\set method pqtree

\set operators vector_l2_ops
\set operator <->
\i :vector_index

\set operators vector_ip_ops
\set operator <#>
\i :vector_index

\set operators vector_cosine_ops
\set operator <=>
\i :vector_index

-- the method has no L1

CREATE TABLE t (val vector(3));
CREATE INDEX ON t USING pqtree (val vector_l1_ops);
DROP TABLE t;
