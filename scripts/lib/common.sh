# Shared by the scripts: steps with timings, packages, and the account that PostgreSQL runs as. Sourced by bash.

root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PG_MAJOR=${PG_MAJOR:-15}
pg_bin=/usr/lib/postgresql/$PG_MAJOR/bin
# Use the server in a folder of its own, as scripts/build-server makes it: use_server PREFIX
use_server()
{
    PG_PREFIX=$1
    pg_bin=$PG_PREFIX/bin
    PG_MAJOR=$("$pg_bin/pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
}
[ -z "${PG_PREFIX:-}" ] || use_server "$PG_PREFIX"
# In an unpacked bundle everything is built already, and brings its own libraries and perl.
bundle=no
if [ -x "$root_dir$pg_bin/postgres" ]; then
    bundle=yes
    pg_bin=$root_dir$pg_bin
    export LD_LIBRARY_PATH=$root_dir/lib PATH=$root_dir/perl/bin:$root_dir/valgrind:$PATH VALGRIND_LIB=$root_dir/valgrind
    PERL5LIB=$(find "$root_dir/perl/usr" -maxdepth 4 -type d \( -name perl5 -o -name perl-base -o -name '5.[0-9]*' \) | paste -sd:)
    export PERL5LIB
fi
# A job of scripts/check --at-once has the extension staged for it, and builds nothing.
built=$bundle
[ -z "${PGWARP_STAGED:-}" ] || built=yes
jobs=${JOBS:-$(nproc)}
# One cache for all build folders and checkouts.
export CCACHE_BASEDIR=$root_dir CCACHE_NOHASHDIR=1

# Print a message on a line of its own.
say() { printf '%s\n' "$*"; }

# End with an error.
die()
{
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Make the work folder of a script, readable by the account that PostgreSQL runs as.
make_work_dir()
{
    work=$(mktemp -d "${TMPDIR:-/tmp}/pgwarp-$1.XXXXXX")
    chmod 755 "$work"
    mkdir "$work/logs"
}

# Seconds since the script began, with one decimal.
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

# Print the state of a running step: by the function step_status where there is one that tells something, else the last line
# of its log. Of a compiler's long command only the last word tells something: the file.
status_line()
{
    local status=
    ! declare -F step_status >/dev/null || status=$(step_status)
    [ -n "$status" ] ||
        status=$(tail -c 400 "$1" 2>/dev/null | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | sed -E 's/^.{90,} (\S+)$/\1/')
    printf '%.90s\n' "$status"
}

running_step=

# End the step that is running, with all its processes.
stop_step()
{
    [ -z "$running_step" ] || kill -TERM -- "-$running_step" 2>/dev/null
}

# Run a command with its output in a log, showing that it is alive: step NAME COMMAND...
# On a terminal the status is one line that changes; elsewhere a line every ten seconds.
step()
{
    local name=$1 started pid rc=0 ticks=0 every=10
    shift
    local log=$work/logs/${name//[^A-Za-z0-9]/-}.log
    step_log=$log
    started=$(now)
    [ -t 1 ] && every=1
    [ -t 1 ] || say "$name ..."
    # A process group of its own, so that all of it can be ended.
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    set +m
    running_step=$pid
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        ticks=$((ticks + 1))
        [ $((ticks % (every * 5))) -eq 0 ] || continue
        if [ -t 1 ]; then
            printf '\r\033[K%s ... %s s  %s' "$name" "$(since "$started")" "$(status_line "$log")"
        else
            printf '    %s s  %s\n' "$(since "$started")" "$(status_line "$log")"
        fi
    done
    wait "$pid" || rc=$?
    running_step=
    [ -t 1 ] && printf '\r\033[K'
    if [ "$rc" -eq 0 ]; then
        say "$name: $(since "$started") s"
    else
        say "$name: FAILED after $(since "$started") s, exit status $rc. End of its output:"
        tail -n "${failure_lines:-40}" "$log" | sed 's/^/    | /'
    fi
    return "$rc"
}

# Run as root, through sudo where needed.
as_root()
{
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Install the packages of the groups that are missing: need_packages GROUP...
need_packages()
{
    local group package missing=()
    if [ "$bundle" = yes ]; then prepare_bundle; return; fi
    for group in "$@"; do
        while read -r _ package; do
            # A server in a prefix of its own comes from no package.
            if [ -n "${PG_PREFIX:-}" ] && [[ $package == *@PG@ ]]; then continue; fi
            package=${package/@PG@/$PG_MAJOR}
            dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
        done < <(grep -E "^$group[[:space:]]" "$root_dir/scripts/packages")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        die "these packages are missing, and there is no sudo to install them: ${missing[*]}"
    fi
    # A password is asked for here, where it can be seen.
    [ "$(id -u)" -eq 0 ] || sudo -v
    step "packages (${#missing[@]} missing)" install_packages "${missing[@]}" || die "could not install: ${missing[*]}"
}

# PostgreSQL expects an account other than root, and time zones.
prepare_bundle()
{
    chmod a+rX "$root_dir"
    [ "$(id -u)" -eq 0 ] || return 0
    id postgres >/dev/null 2>&1 || useradd --system --no-create-home postgres
    [ -e /usr/share/zoneinfo ] || ln -s "$root_dir/usr/share/zoneinfo" /usr/share/zoneinfo
}

install_packages()
{
    as_root apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 install --no-install-recommends "$@"
}

# Run as the account that owns clusters: PostgreSQL refuses root.
as_server()
{
    if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# Give a folder to the account that owns clusters.
give_to_server()
{
    if [ "$(id -u)" -eq 0 ]; then chown -R postgres: "$@"; fi
}

# Whether this machine has NVIDIA's driver, in a virtual machine of Windows too.
has_nvidia_driver() { [ -e /proc/driver/nvidia/version ] || [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; }

# Stage the extension for a try: without the module for GPUs where there is no driver. Its build has a folder of its own, so
# that `make` finds none of its choices.
stage_for_a_try()
{
    if has_nvidia_driver; then
        step "build the extension and its engine" stage_extension build/engine
    else
        say "no NVIDIA driver: the module for GPUs is left out, and the engine answers on the CPU"
        # The build type Try leaves out symbols and the code for other processors, which takes longest, and optimizes
        # less what is not arithmetic.
        front_flags="-g0 -march=native -DHWY_COMPILE_ONLY_STATIC" unit_flags=-O1 step "build the extension and its engine" \
            stage_extension build/try -DPGWARP_CUDA=OFF -DCMAKE_BUILD_TYPE=Try -DPGWARP_UNITY=ON
    fi
}

# Compile and put the extension under $work/stage, as `make install` would under /, and the same with the extension `vector`
# under $work/stage_vector, as `make install install-vector` would:
# [front_flags="FLAG..." unit_flags="FLAG..."] stage_extension BUILD [CMAKE FLAG...]
stage_extension()
{
    local build=$1 settings
    [ "$bundle" = no ] || return 0
    if [ "$built" = yes ]; then
        ln -s "$PGWARP_STAGED" "$work/stage"
        ln -s "${PGWARP_STAGED}_vector" "$work/stage_vector"
        return
    fi
    shift
    settings=(PG_CONFIG="$pg_bin/pg_config" ENGINE_BUILD="$build" ENGINE_CMAKE_FLAGS="$*")
    [ -z "${front_flags:-}" ] || settings+=(EXTRA_CXXFLAGS="$front_flags" UNIT_CXXFLAGS="${unit_flags:-}")
    ! command -v ccache >/dev/null || settings+=(CXX="ccache g++")
    make -C "$root_dir" -j"$jobs" "${settings[@]}" all vector &&
        make -C "$root_dir" -s "${settings[@]}" DESTDIR="$work/stage" install &&
        cp -al "$work/stage" "$work/stage_vector" &&
        make -C "$root_dir" -s "${settings[@]}" DESTDIR="$work/stage_vector" install-vector &&
        chmod -R a+rX "$work/stage" "$work/stage_vector"
}
