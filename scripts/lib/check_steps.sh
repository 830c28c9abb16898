# The steps of scripts/check. Each adds to passed, failed, failed_steps and closing_lines.

# One build folder serves the unit tests and the staged engine. Fault points are in, so that tests can crash the engine.
check_flags="-DPGWARP_TESTS=ON -DPGWARP_FAULTS=ON"
# Where the server's own test programs are.
pgxs_dir() { if [ "$bundle" = yes ]; then echo "${pg_bin%/bin}/lib/pgxs"; else echo "$("$pg_bin/pg_config" --pkglibdir)/pgxs"; fi; }

# Which part of every step's tests to run: --shard.
shard=1
shards=1
choose_shard()
{
    [[ $1 =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] && [ "${BASH_REMATCH[1]}" -le "${BASH_REMATCH[2]}" ] ||
        die "--shard takes I/N with I from 1 to N, not '$1'"
    shard=${BASH_REMATCH[1]}
    shards=${BASH_REMATCH[2]}
}

# Of the words given those of this part, one a line.
own_part() { printf '%s\n' "$@" | awk -v i="$shard" -v n="$shards" 'NR % n == i % n'; }

# Count the outcome of a step: count NAME PASSED FAILED
count()
{
    passed=$((passed + $2))
    failed=$((failed + $3))
    [ "$3" -eq 0 ] || failed_steps+=("$1")
}

# Run a step that counts as one test.
counted_step()
{
    if step "$@"; then count "$1" 1 0; else count "$1" 0 1; return 1; fi
}

format_tree()
{
    cd "$root_dir" &&
        find src cuda bench test scripts -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' |
        sort | xargs -r clang-format --dry-run -Werror
}

# The version stands in pgwarp.control. Names of files, the build's name in the protocol and what packages say follow it.
same_version()
{
    local version upgrades
    version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$root_dir/pgwarp.control")
    upgrades=$(compgen -G "$root_dir/src/sql/pgwarp--*--$version.sql")
    [ -f "$root_dir/src/sql/pgwarp--$version.sql" ] || { say "no src/sql/pgwarp--$version.sql"; return 1; }
    if ! grep -q "^default_version = '$version'" "$root_dir/src/bridge/pgwarp_pgvector.control" ||
        [ ! -f "$root_dir/src/bridge/pgwarp_pgvector--$version.sql" ]; then
        say "src/bridge is of another version"
        return 1
    fi
    [ -n "$upgrades" ] || { say "no script that upgrades to $version"; return 1; }
    grep -qF "build_name[] = \"$version\"" "$root_dir/src/protocol/messages.h" || { say "messages.h: build_name is not $version"; return 1; }
    grep -m 1 '^## ' "$root_dir/CHANGELOG.md" | grep -qF "## $version" || { say "CHANGELOG.md does not begin with $version"; return 1; }
    head -n 1 "$root_dir/debian/changelog" | grep -q "^pgwarp (${version//./\\.}[~)-]" || { say "debian/changelog does not begin with $version"; return 1; }
    [ "$(grep -c "\"version\": \"$version\"" "$root_dir/META.json")" = 2 ] && grep -qF "\"src/sql/pgwarp--$version.sql\"" "$root_dir/META.json" ||
        { say "META.json is not of $version"; return 1; }
    grep -qF "\"pgwarp $version\"" "$root_dir/docs/man/pgwarp-engine.1" || { say "the man page is not of $version"; return 1; }
}

# scripts/shell tells how it is used before it builds; a compiler is a command that may have arguments.
start_scripts()
{
    "$root_dir/scripts/shell" --help | grep '^usage: scripts/shell' && CXX="env ${CXX:-c++}" "$root_dir/scripts/describe" --check
}

check_format()
{
    counted_step "clang-format" format_tree
    counted_step "includes" "$root_dir/scripts/include_circles"
    counted_step "method names" "$root_dir/scripts/method_names"
    counted_step "scripts, and what follows from descriptions" start_scripts
    counted_step "links of the docs" perl "$root_dir/scripts/lib/check_links.pl" "$root_dir"
    counted_step "pages of the site" perl "$root_dir/scripts/lib/check_nav.pl" "$root_dir"
    counted_step "statements of the docs" perl "$root_dir/scripts/lib/check_statements.pl" "$root_dir"
    counted_step "man page" perl "$root_dir/scripts/lib/check_man.pl" "$root_dir"
    counted_step "version" same_version
}

# Every source without CUDA, or those of TIDY. The engine's flags come from its build folder.
tidy_tree()
{
    local server files
    server="-std=c++20 -Isrc -I$("$pg_bin/pg_config" --includedir-server) -Wno-register"
    cd "$root_dir" && cmake -S . -B build/check -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo $check_flags >/dev/null || return
    read -ra files <<<"${TIDY:-$(find src -name '*.cpp' | sort | paste -sd ' ')}"
    printf '%s\n' "${files[@]}" | grep -v '^src/postgres/' |
        xargs -r -P "$jobs" -n 4 clang-tidy -p build/check --quiet --warnings-as-errors='*' || return
    printf '%s\n' "${files[@]}" | grep '^src/postgres/' | xargs -r -P "$jobs" -n 4 sh -c \
        'clang-tidy --quiet --warnings-as-errors="*" "$@" -- '"$server" tidy
}

check_tidy() { counted_step "clang-tidy" tidy_tree; }

# The builds under sanitizers, by the names of their folders.
sanitizers=${SANITIZE-asan tsan}
sanitizer_flags() { case $1 in asan) echo "-DPGWARP_SANITIZE=address;undefined" ;; tsan) echo -DPGWARP_SANITIZE=thread ;; esac; }

# Run a command that runs programs of a build folder: run_programs_of PATH COMMAND...
# OpenBLAS is not built for the sanitizers: its own threads would be reported. Sanitizers need parts of the address space that
# libraries at random addresses may take.
run_programs_of()
{
    local path=$1
    shift
    case $path in *build/[at]san*)
        ! setarch -R true 2>/dev/null || set -- setarch -R "$@"
        export OPENBLAS_NUM_THREADS=1 ;;
    esac
    "$@"
}

# Configure a folder and build it, or one target of it: [build_target=NAME] build_engine BUILD [CMAKE FLAG...]
build_engine()
{
    local build=$1 launcher=()
    shift
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    cmake -S "$root_dir" -B "$root_dir/$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo $check_flags "${launcher[@]}" "$@" &&
        run_programs_of "$build" cmake --build "$root_dir/$build" -j "$jobs" ${build_target:+--target "$build_target"}
}

run_ctest()
{
    run_programs_of "$1" ctest --test-dir "$root_dir/$1" -j "$jobs" --output-on-failure --no-tests=error -I "$shard,,$shards"
}

# The quick runs of the papers' experiments, which are no gtest programs.
run_experiments() { run_programs_of "$1" ctest --test-dir "$root_dir/$1" --output-on-failure --no-tests=error -R '_quick$'; }

gpu_tests=$root_dir/build/check/test/gpu/gpu_tests

# Run unit tests, one program after the other.
run_unit_programs()
{
    local program rc=0
    for program in "$@"; do
        case $program in */gpu_*) [ "$device" != cpu ] || continue ;; esac
        GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$((shard - 1)) run_programs_of "$program" "$program" --gtest_brief=1 ||
            { echo "FAILED PROGRAM $program"; rc=1; }
    done
    return "$rc"
}

# Run programs and count the results that gtest prints: check_unit_programs NAME PROGRAM...
check_unit_programs()
{
    local name=$1 good bad
    shift
    step "$name" run_unit_programs "$@"
    good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$step_log" | awk '{ n += $1 } END { print n + 0 }')
    bad=$(grep -cE '^\[  FAILED  \] [A-Za-z]|^FAILED PROGRAM' "$step_log")
    # No shard is without tests: a log that tells of none is lost.
    [ $((good + ${bad:-0})) -gt 0 ] || bad=1
    count "$name" "$good" "$bad"
    closing_lines+=("$name: $good passed, $bad failed")
}

# Build the unit tests and run them: check_unit BUILD NAME [CMAKE FLAG...]
check_unit()
{
    local build=$1 name=$2 line bad all
    shift 2
    if [ "$built" = yes ]; then
        check_unit_programs "$name" "$root_dir/$build"/test/*/*_tests
        [ "$bundle" = yes ] || [ "$shard" -gt 1 ] || counted_step "experiments ($name)" run_experiments "$build"
        return
    fi
    counted_step "build ($name)" build_engine "$build" "$@" || return
    step "$name" run_ctest "$build"
    line=$(grep -E 'tests passed, [0-9]+ tests? failed out of' "$step_log")
    if [[ $line =~ ,\ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
        bad=${BASH_REMATCH[1]}
        all=${BASH_REMATCH[2]}
        count "$name" $((all - bad)) "$bad"
        closing_lines+=("$name: $line")
    else
        count "$name" 0 1
        closing_lines+=("$name: no result")
    fi
    [ "$device" = cpu ] || [ "$build" != build/check ] || check_unit_programs "unit on the GPU" "$gpu_tests"
}

# The kernels' tests, one a line.
list_gpu_tests() { "$gpu_tests" --gtest_list_tests | awk '/^[^ ]/ { suite = $1 } /^ / { print suite $1 }'; }

# Run one test under a tool, and keep its output and exit status: sanitize_test TOOL TEST
sanitize_test()
{
    local log=$work/$1.${2//[^A-Za-z0-9]/-} rc=0 options=(--tool "$1" --print-limit 20 --error-exitcode 86)
    # Where one lane arrives at a barrier for its warp, after __syncwarp(), racecheck takes the reads of the other lanes
    # for unordered; it is silent when every lane arrives.
    [ "$1" != racecheck ] || options+=(--kernel-name-exclude kernel_substring=assign_warpgroup)
    # Calls that fail on purpose (memory that is short) are the tests' own business.
    [ "$1" != memcheck ] || options+=(--report-api-errors no)
    timeout "${SANITIZER_SECONDS:-100}" compute-sanitizer "${options[@]}" "$gpu_tests" --gtest_brief=1 \
        --gtest_filter="$2" >"$log" 2>&1 || rc=$?
    if [ "$rc" -eq 124 ] && ! grep -qE '^=+ +(Error|Warning|Invalid|Uninit)' "$log"; then
        echo "UNFINISHED $2"
    elif [ "$rc" -eq 0 ] || { grep -q 'terminated before first instrumented' "$log" && grep -q 'PASSED' "$log"; }; then
        echo "CLEAN $2"
    else
        cat "$log"
        echo "NOT CLEAN $2, exit status $rc"
    fi
}

# This part's tests, several at once: run_sanitizer_tool TOOL
run_sanitizer_tool()
{
    local test
    # A kernel that faults on purpose would be waited for.
    for test in $(own_part $(list_gpu_tests | grep -v '^StickyError')); do
        while [ "$(jobs -rp | wc -l)" -ge "$sanitizer_jobs" ]; do wait -n; done
        sanitize_test "$1" "$test" &
    done
    wait
}

# Count a test as failed when it fails itself, or when the tool reports an error: check_sanitizer_tool TOOL
check_sanitizer_tool()
{
    local good bad slow
    step "$1" run_sanitizer_tool "$1"
    good=$(grep -c '^CLEAN ' "$step_log")
    bad=$(grep -c '^NOT CLEAN ' "$step_log")
    slow=$(grep -c '^UNFINISHED ' "$step_log")
    [ $((good + bad + slow)) -gt 0 ] || bad=1
    grep -E '^=+ +(Error|Invalid|Uninit)|^NOT CLEAN |^UNFINISHED ' "$step_log" | head -n 60
    count "$1" "$good" "$bad"
    closing_lines+=("$1: $good tests clean, $bad not clean, $slow not finished within ${SANITIZER_SECONDS:-100} s each")
}

check_compute_sanitizer()
{
    local tool
    sanitizer_jobs=${SANITIZER_JOBS:-2}
    PATH=$PATH:/usr/local/cuda/bin
    if ! command -v compute-sanitizer >/dev/null; then
        say "compute-sanitizer: not found; it comes with the CUDA toolkit"
        count compute-sanitizer 0 1
        return
    fi
    [ "$built" = yes ] || counted_step "build (unit)" build_engine build/check || return
    for tool in ${SANITIZER:-memcheck racecheck initcheck}; do check_sanitizer_tool "$tool"; done
}

# The settings of every cluster for tests. Only the tests read tables and pages: autovacuum or the checkpointer would
# keep VACUUM from rows, or change plans. Where many tests run at once, an engine takes long to open the GPUs.
test_settings=(shared_buffers=256MB fsync=off max_wal_size=4GB pgwarp.verify_results=on pgwarp.merge_worker=off autovacuum=off
    checkpoint_timeout=1h pgwarp.engine_timeout=60s)
# Which of the engine's devices the tests run on: --device.
device=cpu

# The server must be able to read the tests, and root's home is closed to it.
stage_tests()
{
    mkdir -p "$work/regress" "$work/tests" && cp -a "$root_dir"/{sql,expected,test} "$work/tests/" && mkdir -p "$work/tests/docs" &&
        cp -a "$root_dir/docs/monitoring" "$work/tests/docs/" && chmod -R a+rX "$work/tests"
}

# Run the tests of `make installcheck` with all output in the work folder: run_regress [TEST...]
run_regress()
{
    local tests=("$work"/tests/sql/*.sql)
    [ $# -eq 0 ] || tests=("${@/%/.sql}")
    tests=("${tests[@]##*/}")
    mapfile -t tests < <(own_part "${tests[@]}")
    cd "$work/regress" && rm -rf results &&
        "$(pgxs_dir)/src/test/regress/pg_regress" --bindir="$pg_bin" --inputdir="$work/tests" --load-extension=pgwarp \
            --dbname=contrib_regression "${tests[@]%.sql}" ||
        { head -n 400 regression.diffs; return 1; }
}

# Read the closing line of pg_regress: count_regress NAME
count_regress()
{
    local line
    line=$(grep -E '(All|^#? *[0-9]+ of) [0-9]+ tests (passed|failed)' "$step_log" | tail -n 1 | sed 's/^[ #]*//')
    if [[ $line =~ ^All\ ([0-9]+)\ tests ]]; then
        count "$1" "${BASH_REMATCH[1]}" 0
    elif [[ $line =~ ^([0-9]+)\ of\ ([0-9]+)\ tests ]]; then
        count "$1" $((BASH_REMATCH[2] - BASH_REMATCH[1])) "${BASH_REMATCH[1]}"
    else
        line="no result"
        count "$1" 0 1
    fi
    closing_lines+=("$1: $line")
}

# The C library overwrites memory that is freed, so that code which still uses it fails.
check_regress()
{
    use_cluster "$work/regress-cluster"
    SERVER_WRAPPER="env MALLOC_PERTURB_=165" \
        counted_step "start a cluster" start_cluster "${test_settings[@]}" pgwarp.device="$device" || return
    stage_tests
    failure_lines=400 step "regress" run_regress ${REGRESS:-}
    count_regress regress
    stop_cluster
}

# An older server's pgwarp, for the test that upgrades from it.
stage_for_old_server()
{
    mkdir -p "$work/old" && pg_bin=$PG_OLD_PREFIX/bin work=$work/old stage_extension build/check $check_flags
}

# TAP tests make their own clusters, so they run as the account that may: run_tap OUTPUT_DIR
run_tap()
{
    local files
    cd "$work/tests/test" || return
    if [ -n "${TAP:-}" ]; then read -ra files < <(printf 'tap/%s.pl ' $TAP); else files=(tap/*.pl); fi
    mapfile -t files < <(own_part "${files[@]}")
    [ ${#files[@]} -eq 0 ] || ls "${files[@]}" >/dev/null || return
    as_server env PATH="$pg_bin:$PATH" TMPDIR="$1/tmp" TESTDIR="$1" TESTLOGDIR="$1/tmp_check/log" TESTDATADIR="$1/tmp_check" PGPORT=65432 PGWARP_DEVICE="$device" \
        PGWARP_DESTDIR="$([ "$bundle" = yes ] || echo "$work/stage")" \
        PGWARP_OLD_INSTALL="${PG_OLD_PREFIX:-}" PGWARP_OLD_DESTDIR="$([ -z "${PG_OLD_PREFIX:-}" ] || echo "$work/old/stage")" \
        PGWARP_WAL_CONSISTENCY="${PGWARP_WAL_CONSISTENCY:-}" PG_REGRESS="$(pgxs_dir)/src/test/regress/pg_regress" \
        PG_TEST_INITDB_EXTRA_OPTS= prove --timer --failures -I "$(pgxs_dir)/src/test/perl" "${files[@]}"
}

# The last lines of the logs of the tests that failed, and of their servers: show_logs_of_failed OUTPUT_DIR
show_logs_of_failed()
{
    local test file
    for test in $(sed -n 's|^tap/\([a-z0-9_]*\)\.pl  *(Wstat:.*|\1|p' "$step_log"); do
        for file in "$1/tmp_check/log/regress_log_$test" "$1/tmp_check/log/${test}"_*.log; do
            [ ! -f "$file" ] || { say "    == ${file##*/}"; tail -n 60 "$file" | cut -c1-300 | sed 's/^/    | /'; }
        done
    done
}

# Run them and count assertions; a file that ends badly counts one failure at least: check_tap NAME
check_tap()
{
    local name=$1 all bad skipped
    stage_tests
    mkdir -p "$work/$name/tmp"
    give_to_server "$work/$name"
    unset PGHOST PGUSER PGDATABASE
    failure_lines=150 step "$name" run_tap "$work/$name"
    all=$(sed -n 's/^Files=.* Tests=\([0-9]*\),.*/\1/p' "$step_log")
    bad=$(sed -n 's/^.*(Wstat: .* Tests: [0-9]* Failed: \([0-9]*\))$/\1/p' "$step_log" |
        awk '{ n += $1 > 0 ? $1 : 1 } END { print n + 0 }')
    # NOTESTS: all files were skipped; a file without a plan fails.
    if [ -z "$all" ] || { [ "$bad" -eq 0 ] && ! grep -qE '^Result: (PASS|NOTESTS)' "$step_log"; }; then bad=$((bad + 1)); fi
    all=${all:-0}
    count "$name" $((all > bad ? all - bad : 0)) "$bad"
    [ "$bad" -eq 0 ] || show_logs_of_failed "$work/$name"
    skipped=$(grep -cE ' \.+ skipped' "$step_log")
    closing_lines+=("$name: $(grep '^Files=' "$step_log") $(grep '^Result:' "$step_log")$([ "$skipped" -eq 0 ] || echo ", files skipped: $skipped")")
}

# Stop servers of TAP tests that were stopped themselves: perl ends at a signal without stopping them. A server that crashed
# leaves the file with its process, whose number may be another's.
stop_tap_servers()
{
    local file pid
    for file in "$work"/*/tmp_check/*/pgdata/postmaster.pid; do
        read -r pid 2>/dev/null <"$file" && [ "$(readlink "/proc/$pid/cwd")" = "${file%/*}" ] && kill -QUIT "$pid" || continue
        for _ in {1..100}; do [ -e "/proc/$pid" ] || break; sleep 0.1; done
    done
}

# Errors of valgrind whose stack holds code of pgwarp, other than the hooks that every query passes. The rest are
# PostgreSQL's own: padding that it writes to disk, also when the insertion of one of our records makes room in the WAL's
# buffers by writing older ones or a truncation of our file has the WAL written first, and to the relation cache's file
# when a worker of ours is the first process in a database (PostgreSQL's own suppressions name both), and the end of a
# block that a parallel sort of few rows did not fill, which only servers that are compiled for valgrind declare as written.
report_valgrind()
{
    awk 'BEGIN { RS = "" } { gsub(/[^\n]*(start_executor|run_executor|plan_statement|plan_as_before)[^\n]*/, "") } /pwrite64/ && /XLogInsert|XLogFlush/ { next }
        /pwrite64/ && /LogicalTapeFreeze/ { next }
        /fwrite/ && /RelationCacheInitializePhase3/ { next }
        /pgwarp/ && /(Invalid|uninitialised|Mismatched|overlap|Process terminating)/ { print FILENAME; print; print ""; n++ }
        END { exit n > 0 }' <(sed -s "s/^==[0-9]*== *//; s|$root_dir||" "$work"/valgrind/*.log)
}

run_valgrind()
{
    run_regress ${REGRESS:-}
    stop_cluster
    report_valgrind || return 3
    say "no error in pgwarp's code"
}

check_valgrind()
{
    mkdir "$work/valgrind"
    give_to_server "$work/valgrind"
    use_cluster "$work/valgrind-cluster"
    SERVER_WRAPPER="valgrind --quiet --leak-check=no --num-callers=30 --trace-children=yes
        --trace-children-skip=*/pgwarp-engine --log-file=$work/valgrind/%p.log" \
        counted_step "start a cluster under valgrind" start_cluster "${test_settings[@]}" jit=off pgwarp.engine_timeout=120s || return
    stage_tests
    counted_step "regress under valgrind" run_valgrind
    count_regress "regress under valgrind"
    stop_cluster
}

# pg_regress in a cluster of its own with more settings: check_regress_with NAME "TEST..." [SETTING=VALUE...]
check_regress_with()
{
    local name=$1 tests=$2
    shift 2
    use_cluster "$work/${name//[^A-Za-z0-9]/-}-cluster"
    counted_step "start a cluster ($name)" start_cluster "${test_settings[@]}" pgwarp.device="$device" "$@" || return
    stage_tests
    failure_lines=400 step "$name" run_regress $tests
    count_regress "$name"
    stop_cluster
}

# Random statements in the running cluster: run_statements DATABASE SECONDS [OPTION...]
run_statements()
{
    sql -c "CREATE DATABASE $1" && sql -d "$1" -c "CREATE EXTENSION pgwarp" || return
    PATH="$pg_bin:$PATH" PGDATABASE=$1 "$root_dir/test/torture/statements" --seconds "$2" "${@:3}"
}

# Random statements with assertions, and with no cache that lives from one look-up to the next.
check_statements_with_assertions()
{
    use_cluster "$work/statements-cluster"
    counted_step "start a cluster (statements with assertions)" start_cluster "${test_settings[@]}" pgwarp.device="$device" || return
    counted_step "statements with assertions" run_statements plain_caches "${CASSERT_SECONDS:-60}"
    counted_step "statements with assertions, without caches" run_statements no_caches "${CASSERT_SECONDS:-60}" \
        --variants 2 --settings "SET LOCAL debug_discard_caches = 1"
    stop_cluster
}

# A server with assertions, which copies, writes and reads every plan before it runs. Without caches one test takes
# minutes: those that are run so are few.
check_cassert()
{
    if [ "$bundle" = yes ]; then
        use_server "$root_dir/cassert"
    else
        counted_step "build a server with assertions" "$root_dir/scripts/build-server" 15 --cassert || return
        use_server "$(tail -n 1 "$step_log")"
        rm -rf "$work/stage" "$work/stage_vector"
        counted_step "build and stage the extension (assertions)" stage_extension build/check $check_flags || return
    fi
    check_regress_with "regress with assertions" "${REGRESS:-}"
    check_regress_with "regress with assertions, in parallel" "${REGRESS:-}" force_parallel_mode=regress
    check_regress_with "regress with assertions, without caches" "${CASSERT_TESTS:-row_address}" debug_discard_caches=1
    check_statements_with_assertions
}
