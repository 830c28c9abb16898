# Helpers of the measuring scripts: pgvector beside pgwarp, and the folder of real data. Sourced after cluster.sh; needs
# $data, $pgvector and $cache.

# The checkout stays as it is: a copy is built.
stage_pgvector()
{
    cp -a "$pgvector" "$work/pgvector" &&
        make -C "$work/pgvector" -s PG_CONFIG="$pg_bin/pg_config" clean &&
        make -C "$work/pgvector" -j"$jobs" PG_CONFIG="$pg_bin/pg_config" &&
        make -C "$work/pgvector" -s PG_CONFIG="$pg_bin/pg_config" DESTDIR="$work/stage" install &&
        chmod -R a+rX "$work/stage"
}

# Whether pgvector is staged, or installed.
has_pgvector() { [ -n "$pgvector" ] || [ -f "$("$pg_bin/pg_config" --sharedir)/extension/vector.control" ]; }

# Unpack a file of the data folder once: unpacked NAME
unpacked()
{
    local target=$cache/$1
    if [ -f "$data/$1" ]; then
        target=$data/$1
    elif [ ! -f "$target" ]; then
        mkdir -p "$(dirname "$target")"
        zstd -q -d "$data/$1.zst" -o "$target.part" && mv "$target.part" "$target" || return 1
    fi
    echo "$target"
}

# Build a program of the benchmarks: build_bench TARGET
build_bench()
{
    local launcher=()
    [ "$bundle" = no ] || return 0
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    cmake -S "$root_dir" -B "$root_dir/build/bench" -G Ninja -DPGWARP_BENCH=ON -DPGWARP_TESTS=OFF "${launcher[@]}" &&
        cmake --build "$root_dir/build/bench" --target "$1" -j "$jobs"
}
