# Tests of scripts/check as jobs, several at once: --at-once. A job is scripts/check itself with one file of tests or one
# shard, in a work folder of its own. Servers share nothing: sockets and data are in those folders, and none listens on TCP.

at_once=
choose_at_once()
{
    [[ $1 =~ ^[1-9][0-9]*$ ]] || die "--at-once takes a number of jobs, not '$1'"
    at_once=$1
}

# How long jobs take, in seconds; "step:" stands for its other tests. The longest begin first, so that none is waited for at
# the end. Crash tests are meant at full length.
known_seconds()
{
    cat <<'TEXT'
valgrind:matchcount_join 550 valgrind:matchcount_bound 450 valgrind:matchcount_sets 450
valgrind:knn_search 410 valgrind:matchcount_input 370 valgrind:all_rows 320 valgrind:matchcount_minhash 300
valgrind:knn_batch 260 valgrind: 100 tap:crash_points 600 tap:torn_pages 600 tap:crash_loop 600 tap: 40
wal-consistency:crash_points 600 wal-consistency:torn_pages 600 wal-consistency:crash_loop 600 wal-consistency: 50
compute-sanitizer: 600 tidy: 500 tsan: 400 asan: 300 cassert: 250 regress: 200 unit: 150 format: 30
TEXT
}

# As many shards as jobs at once, and not so many that some have no work: list_shards MOST
list_shards() { local n=$((at_once < $1 ? at_once : $1)); seq -f "%g/$n" "$n"; }

# The tests of a step, or its shards.
names_of()
{
    case $1 in
        regress) if [ -n "${REGRESS:-}" ]; then echo "$REGRESS"; else list_shards 32; fi ;;
        valgrind) echo "${REGRESS:-$(basename -s .sql "$root_dir"/sql/*.sql)}" ;;
        tap | wal-consistency) echo "${TAP:-$(basename -s .pl "$root_dir"/test/tap/*.pl)}" ;;
        unit | asan | tsan) list_shards 32 ;;
        cassert) list_shards 16 ;;
        *) echo all ;;
    esac
}

# All jobs, STEP:NAME, the longest first.
list_jobs()
{
    local step name
    for step in $(printf '%s\n' "${chosen[@]}" | sed "s/^sanitize$/$sanitizers/"); do
        for name in $(names_of "$step"); do echo "$step:$name"; done
    done | awk 'NR == FNR { for (i = 1; i < NF; i += 2) seconds[$i] = $(i + 1); next }
        seen[$1]++ { next } { any = $1; sub(/:.*/, ":", any); print ($1 in seconds ? seconds[$1] : seconds[any]), $1 }' <(known_seconds) - |
        sort -k1,1nr -s | cut -d ' ' -f 2
}

stage_with_assertions()
{
    local server
    server=$("$root_dir/scripts/build-server" 15 --cassert | tail -n 1) && [ -n "$server" ] || return
    use_server "$server"
    work=$work/assertions stage_extension build/check $check_flags
}

# Jobs build nothing, since they would build in the same folders.
build_for_jobs()
{
    local sanitizer
    [ "$bundle" = no ] || return 0
    if wants unit || wants compute-sanitizer; then counted_step "build (unit)" build_engine build/check || return; fi
    if wants sanitize; then
        for sanitizer in $sanitizers; do
            counted_step "build (unit under $sanitizer)" build_engine "build/$sanitizer" "$(sanitizer_flags "$sanitizer")" || return
        done
    fi
    ! wants cassert || counted_step "build and stage the extension (assertions)" stage_with_assertions || return
    if wants regress || wants tap || wants wal-consistency || wants valgrind; then
        counted_step "build and stage the extension" stage_extension build/check $check_flags || return
    fi
}

# Four cores for a place: an engine starts a thread for each core that it may use, and a large machine has many engines.
cores_of_place()
{
    taskset -pc $$ | sed 's/.*: //' | tr , '\n' | awk -F- -v place="$1" -v places="$at_once" '
        { for (i = $1; i <= $NF; i++) core[n++] = i }
        END { for (i = 0; i < 4 && i < n; i++) printf "%s%d", i ? "," : "", core[(int(place * n / places) + i) % n] }'
}

# Become the process of a job: become_job JOB PLACE
become_job()
{
    local step=${1%%:*} name=${1#*:} stage=$work/stage options=(--device "$device")
    [ "$keep" = no ] || options+=(--keep)
    case $step in
        regress) if [ -n "${REGRESS:-}" ]; then export REGRESS=$name; else options+=(--shard "$name"); fi ;;
        valgrind) export REGRESS=$name ;;
        tap | wal-consistency) export TAP=$name ;;
        asan | tsan) export SANITIZE=$step; step=sanitize; options+=(--shard "$name") ;;
        unit | cassert) options+=(--shard "$name") ;;
    esac
    [ "$step" != cassert ] || stage=$work/assertions/stage
    [ "$bundle" = yes ] || export PGWARP_STAGED=$stage
    exec taskset -c "$(cores_of_place "$2")" "$root_dir/scripts/check" "--$step" "${options[@]}"
}

# The running jobs by process, with their places and when they began; then a line for each that ended, JOB SECONDS PASSED FAILED,
# and what is told of those that failed.
declare -A job_of=() place_of=() began_at=()
ended=()
failures=()
log_of() { echo "$job_logs/${1//[^A-Za-z0-9_]/-}.log"; }

start_jobs()
{
    local job
    while [ ${#waiting[@]} -gt 0 ] && [ ${#places[@]} -gt 0 ]; do
        job=${waiting[0]}
        become_job "$job" "${places[0]}" >"$(log_of "$job")" 2>&1 </dev/null &
        job_of[$!]=$job place_of[$!]=${places[0]} began_at[$!]=$SECONDS
        waiting=("${waiting[@]:1}")
        places=("${places[@]:1}")
    done
}

# Print the lines of a log that tell why a job failed: those that tests and checkers mark, else the last ones.
marked_by_tests='^ *\|? *(not ok|# +Failed|\[  FAILED  \] [A-Za-z]|FAILED PROGRAM|NOT CLEAN|test .*FAILED|[+-][^+-])'
marked_by_checkers='AddressSanitizer|ThreadSanitizer|runtime error:|TRAP:|PANIC|uninitialised|Invalid |error:'
key_lines()
{
    { grep -m 6 -E "$marked_by_tests|$marked_by_checkers" "$1" || tail -n 4 "$1"; } | cut -c 1-150
}

# Count a job that ended: end_job PROCESS [WHY IT WAS STOPPED]
end_job()
{
    local job=${job_of[$1]} took=$((SECONDS - began_at[$1])) log good=0 bad=0 rc=0
    log=$(log_of "$job")
    wait "$1" || rc=$?
    read -r good bad < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
    good=${good:-0} bad=${bad:-0}
    # It may be stopped, or end, before it counts.
    [ "$bad" -gt 0 ] || { [ "$rc" -eq 0 ] && [ -z "${2:-}" ]; } || bad=1
    count "$job" "$good" "$bad"
    ended+=("$job $took $good $bad")
    if [ "$bad" -gt 0 ]; then
        failures+=("FAILED $job after $took s${2:-}, log: $log"$'\n'"$(key_lines "$log" | sed 's/^/    /')")
    elif [ "$keep" = no ]; then
        rm "$log"
    fi
    places+=("${place_of[$1]}")
    unset "job_of[$1]"
}

# End what runs, and name it and what waits. No job is left behind.
stop_at_limit()
{
    local pid job
    kill -TERM "${!job_of[@]}" 2>/dev/null
    for pid in "${!job_of[@]}"; do end_job "$pid" ", stopped by LIMIT=$LIMIT"; done
    for job in "${waiting[@]}"; do
        count "$job" 0 1
        failures+=("FAILED $job, did not begin within LIMIT=$LIMIT")
    done
    waiting=()
}

# End all jobs of a script that is itself stopped.
stop_jobs()
{
    [ ${#job_of[@]} -gt 0 ] || return 0
    kill -TERM "${!job_of[@]}" 2>/dev/null
    wait
    rm -rf "$job_logs"
}

tell_progress()
{
    local names=
    [ ${#job_of[@]} -eq 0 ] || [ ${#job_of[@]} -gt 4 ] || names=": ${job_of[*]}"
    say "$SECONDS s: ${#ended[@]} done, ${#failures[@]} failed, ${#job_of[@]} running, ${#waiting[@]} waiting$names"
}

run_jobs()
{
    local pid told=$SECONDS
    mapfile -t waiting < <(own_part $(list_jobs))
    mapfile -t places < <(seq 0 $((at_once - 1)))
    job_logs=$(mktemp -d "${TMPDIR:-/tmp}/pgwarp-logs.XXXXXX")
    while [ $((${#waiting[@]} + ${#job_of[@]})) -gt 0 ]; do
        [ "$SECONDS" -lt "${LIMIT:-2000000}" ] || { stop_at_limit; break; }
        start_jobs
        sleep 0.2
        for pid in "${!job_of[@]}"; do kill -0 "$pid" 2>/dev/null || end_job "$pid"; done
        [ $((SECONDS - told)) -lt 15 ] || { tell_progress; told=$SECONDS; }
    done
    [ "$told" -eq "$SECONDS" ] || tell_progress
}

# All chosen steps, and a closing line for each.
run_at_once()
{
    build_for_jobs || return
    run_jobs
    [ ${#failures[@]} -eq 0 ] || printf '%s\n' "" "${failures[@]}"
    rmdir "$job_logs" 2>/dev/null || say "logs: $job_logs"
    mapfile -t closing_lines < <(printf '%s\n' "${ended[@]}" | sort -k2,2nr -s | awk 'NF {
        split($1, part, ":"); step = part[1]; if (!jobs[step]++) { steps[++n] = step; longest[step] = part[2] " " $2 " s" }
        good[step] += $3; bad[step] += $4 }
        END { for (i = 1; i <= n; i++) { step = steps[i]
            print step ": " jobs[step] " jobs, " good[step] " passed, " bad[step] " failed, longest " longest[step] } }')
}
