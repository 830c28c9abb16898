# Documents as sparse vectors under inner product, in SQL. Sourced by bench/peers/run, which set the cluster: . sparse.sh SYSTEM

export PGDATABASE=documents
sparse_row()
{
    "$python" "$here/figures.py" row "$out" tool=pgbench rows="$documents" dimensions=30000 metric=ip k=10 index="$sparse_index" \
        options="$sparse_options" system="$1" "${@:2}"
}

load_documents()
{
    local name
    sql -c "CREATE EXTENSION vector"
    for name in documents queries; do
        sql -c "CREATE TABLE $name (id integer PRIMARY KEY, v sparsevec(30000))" \
            -c "\\copy $name FROM '$kept/documents/$name.tsv'" || return
    done
    sql -c "CREATE TABLE truth (id integer PRIMARY KEY, nearest integer[])" &&
        "$python" -c "import numpy, sys
for i, ids in enumerate(numpy.load(sys.argv[1])): print(i, '{' + ','.join(map(str, ids[:10])) + '}', sep='\t')" "$kept/documents/truth.npy" |
            sql -c "\\copy truth FROM STDIN" && sql -c "VACUUM ANALYZE"
}

# The time of CREATE INDEX is psql's.
build_sparse()
{
    local milliseconds
    milliseconds=$(sql -c '\timing on' -c "CREATE INDEX documents_v ON documents USING $sparse_index (v sparsevec_ip_ops)$sparse_with" |
        sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -n 1)
    [ -n "$milliseconds" ] && sparse_row "$1" kind=build build_seconds="$(awk -v t="$milliseconds" 'BEGIN { printf "%.2f", t / 1000 }')"
}

sparse_recall()
{
    sql -c "SELECT round(avg((SELECT count(*) FROM (SELECT id FROM documents ORDER BY v <#> q.v LIMIT 10) AS found WHERE found.id = ANY (nearest))) / 10, 4)
        FROM queries AS q JOIN truth USING (id)"
}

sparse_rate()
{
    pgbench -n -M prepared -f "$work/search.sql" -c "$1" -j 1 -T "$seconds" | awk '/^tps = .*without initial/ { printf "%.1f", $3 }'
}

search_sparse()
{
    local count recall
    recall=$(sparse_recall) || return
    for count in ${clients//,/ }; do
        sparse_row "$1" kind=search settings="$2" clients="$count" recall="$recall" queries_per_second="$(sparse_rate "$count")" || return
    done
}

measure_sparse()
{
    local value
    cat >"$work/search.sql" <<TEXT
\\set q random(0, $((document_queries - 1)))
SELECT id FROM documents ORDER BY v <#> (SELECT v FROM queries WHERE id = :q) LIMIT 10;
TEXT
    [ "$(sql -c "SELECT to_regclass('truth') IS NOT NULL")" = t ] || load_documents || return
    [ "$(sql -c "SELECT to_regclass('documents_v') IS NOT NULL")" = t ] || build_sparse "$1" || return
    sql -c "EXPLAIN SELECT id FROM documents ORDER BY v <#> (SELECT v FROM queries WHERE id = 1) LIMIT 10"
    [ "$1" = pgvector ] || { search_sparse "$1" ""; return; }
    for value in ${sparse_ef_search//,/ }; do
        PGOPTIONS="-c hnsw.ef_search=$value" search_sparse "$1" "ef_search=$value" || return
    done
}

sparse_index=hnsw sparse_options="m = ${hnsw%,*} ef_construction = ${hnsw#*,}" sparse_with=" WITH (m = ${hnsw%,*}, ef_construction = ${hnsw#*,})"
measure_sparse "$1"
