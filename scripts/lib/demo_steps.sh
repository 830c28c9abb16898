# The steps of scripts/demo. Results go to $work/numbers, a line for each method: name|recall|latency|build seconds|bytes.

recall_queries=100
latency_seconds=2

title() { printf '\n== %s\n' "$*"; }

make_vectors()
{
    local question options=()
    for question in "${questions[@]}"; do options+=(--ask "$question"); done
    /usr/bin/python3 "$root_dir/scripts/wordnet_vectors.py" --synsets "$work/synsets" --queries "$work/queries" "${options[@]}"
}

# Make them beside the build, which leaves a processor idle at times.
begin_vectors()
{
    set -m
    { make_vectors; echo "$?" >"$work/vectors.rc"; } >"$work/logs/vectors.log" 2>&1 </dev/null &
    vectors_pid=$!
    set +m
}

await_vectors()
{
    tail --pid="$vectors_pid" -f -n +1 "$work/logs/vectors.log"
    [ "$(cat "$work/vectors.rc")" = 0 ]
}

stop_vectors() { [ -z "${vectors_pid:-}" ] || kill -TERM -- "-$vectors_pid" 2>/dev/null; }

load_vectors()
{
    sql <<SQL
CREATE EXTENSION pgwarp;
CREATE TABLE synsets (id int PRIMARY KEY, words text, gloss text, v vector(256));
CREATE TABLE queries (id int PRIMARY KEY, text text, v vector(256));
\\copy synsets FROM '$work/synsets' (FORMAT binary)
\\copy queries FROM '$work/queries' (FORMAT binary)
VACUUM (ANALYZE) synsets, queries;
SELECT count(*) || ' rows' FROM synsets;
SQL
}

# How far the tenth nearest of each query is, by a plan without index: two sessions share the queries.
remember_truth()
{
    local part sessions=() rc=0
    sql -c "CREATE TABLE truth (id int, tenth float8)" || return
    for part in 0 1; do
        sql <<SQL &
SET max_parallel_workers_per_gather = 0;
INSERT INTO truth
    SELECT q.id, (SELECT max(d) FROM (SELECT s.v <=> q.v AS d FROM synsets s ORDER BY s.v <=> q.v LIMIT 10) nearest) AS tenth
    FROM queries q WHERE q.id > 1000 AND q.id <= 1000 + $recall_queries AND q.id % 2 = $part;
SQL
        sessions+=($!)
    done
    for part in "${sessions[@]}"; do wait "$part" || rc=1; done
    return "$rc"
}

# How far CREATE INDEX has come.
step_status()
{
    [ -S "${cluster_dir:-}/socket/.s.PGSQL.5432" ] || return 0
    sql -c "SELECT phase || coalesce(', ' || tuples_done || ' of ' || nullif(tuples_total, 0) || ' rows', '') FROM pg_stat_progress_create_index" \
        2>/dev/null
}

# Hide all indexes of the vectors but one from the planner, which takes the cheapest that it sees: hide_others [INDEX]
# Without an index none is hidden.
hide_others()
{
    sql -c "UPDATE pg_index SET indisvalid = '${1:-}' IN ('', indexrelid::regclass::text)
        WHERE indrelid = 'synsets'::regclass AND NOT indisprimary"
}

# Build an index, and have it answer: create_index METHOD
create_index()
{
    local started
    started=$(now)
    sql -c "CREATE INDEX synsets_$1 ON synsets USING $1 (v vector_cosine_ops)" || return 1
    since "$started" >"$work/build.$1"
    sql -c "ANALYZE synsets" && hide_others "synsets_$1" || return 1
    sql -c "EXPLAIN SELECT id FROM synsets ORDER BY v <=> (SELECT v FROM queries WHERE id = 1) LIMIT 10" |
        grep "using synsets_$1 " || { say "the planner does not take synsets_$1"; return 1; }
}

# The part of the true ten nearest that a search finds; rows as near as the tenth count: measure_recall METHOD
measure_recall()
{
    sql >"$work/recall.$1" <<SQL
SELECT to_char(avg(found) / 10, '0.000') FROM (
    SELECT (SELECT count(*) FILTER (WHERE d <= t.tenth + 1e-7)
        FROM (SELECT s.v <=> q.v AS d FROM synsets s ORDER BY s.v <=> q.v LIMIT 10) nearest) AS found
    FROM truth t JOIN queries q USING (id)) each;
SQL
}

# Mean latency of one client with a prepared statement: measure_latency NAME
measure_latency()
{
    local name=$1 latency method=${1%% *}
    cat >"$work/search.sql" <<'SQL'
\set q random(1001, 2000)
SELECT id FROM synsets ORDER BY v <=> (SELECT v FROM queries WHERE id = :q) LIMIT 10;
SQL
    "$pg_bin/pgbench" -n -M prepared -f "$work/search.sql" -t 5 >/dev/null || return 1
    latency=$("$pg_bin/pgbench" -n -M prepared -f "$work/search.sql" -T "$latency_seconds" | sed -n 's/^latency average = \(.*\) ms/\1/p')
    [ -n "$latency" ] || return 1
    if [ "$method" = sequential ]; then
        echo "$name|1.000|$latency||" >>"$work/numbers"
    else
        echo "$name|$(cat "$work/recall.$method")|$latency|$(cat "$work/build.$method")|$(
            sql -c "SELECT pg_size_pretty(pg_relation_size('synsets_$method'))")" >>"$work/numbers"
    fi
}

show_neighbours()
{
    local id question
    sql -c "SELECT id || '|' || text FROM queries WHERE id <= 1000 ORDER BY id" >"$work/asked"
    while IFS='|' read -r id question; do
        say "nearest to '$question':"
        sql -c "SELECT format('  %s  %s: %s', round((v <=> (SELECT v FROM queries WHERE id = $id))::numeric, 3), left(words, 40), left(gloss, 70))
            FROM synsets ORDER BY v <=> (SELECT v FROM queries WHERE id = $id) LIMIT 4" </dev/null
    done <"$work/asked"
}

# Indexes for mistyped words, and for words in the middle of a gloss.
index_texts()
{
    sql <<'SQL'
CREATE TABLE words AS SELECT DISTINCT word FROM synsets, unnest(string_to_array(words, ', ')) AS word;
CREATE INDEX ON words USING matchcount (word text_transpositions_ops);
CREATE INDEX ON synsets USING matchcount (gloss text_substring_ops);
ANALYZE words, synsets;
SQL
}

show_mistyped()
{
    local word
    for word in "$@"; do
        say "'$word': $(sql -v word="$word" <<<"SELECT string_agg(word || ' (' || d || ')', ', ' ORDER BY d, word)
            FROM (SELECT word, word <~^~> :'word' AS d FROM words ORDER BY word <~^~> :'word' LIMIT 4) nearest")"
    done
}

show_word_in_glosses()
{
    say "'$1' in glosses:"
    sql -v word="$1" <<<"SELECT format('  %s  %s: %s', gloss >>~~<< :'word', left(words, 30), left(gloss, 80))
        FROM synsets WHERE gloss >>~~<< :'word' <= 2 ORDER BY gloss >>~~<< :'word' LIMIT 4"
}

show_plan()
{
    sql -c "EXPLAIN (ANALYZE, TIMING OFF)
        SELECT words FROM synsets ORDER BY v <=> (SELECT v FROM queries WHERE id = 1) LIMIT 10" | sed 's/^/  /'
}

show_numbers()
{
    printf '  %-16s %10s %16s %9s %10s %10s\n' method recall@10 'latency (mean)' speed-up 'built in' size
    awk -F'|' 'NR == 1 { base = $3 }
        { printf "  %-16s %10s %13s ms %8.1fx %10s %10s\n", $1, $2, $3, base / $3, $4 == "" ? "" : $4 " s", $5 }' "$work/numbers"
    say "  $(sql -c "SELECT count(*) || ' rows of 256 dimensions, cosine distance' FROM synsets"). One client, prepared statement, k = 10."
    say "  recall@10: mean over $recall_queries queries of the part of the rows returned that are as near as the true tenth."
}

show_engine()
{
    sql -x -c "SELECT DISTINCT engine_pid, device, pg_size_pretty(memory_used) AS memory_used FROM pgwarp_status" | sed 's/^/  /'
    sql -c "SELECT format('  %s: %s rows resident, %s, %s searches', index, rows, pg_size_pretty(bytes), searches)
        FROM pgwarp_status WHERE index IS NOT NULL"
}
