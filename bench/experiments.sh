# Shared by bench/genie/run and bench/pqtree/run: data, programs, tables and pages of experiments. Sourced by bash, after
# scripts/lib/common.sh; reads $data, $device, $programs and $out, and uses $work/data and $work/out.

# Link or unpack a file of $data: flat NAME SKIPPED FILE...  Several files are one after the other; the first SKIPPED
# bytes of each are left out.
flat()
{
    local name=$1 skipped=$2 file
    shift 2
    [ ! -e "$work/data/$name" ] || return 0
    if [ -e "$data/$name" ]; then ln -s "$(realpath "$data/$name")" "$work/data/$name"; return; fi
    for file in "$@"; do
        if [ -e "$data/$file" ]; then
            tail -c +$((skipped + 1)) "$data/$file"
        elif [ -e "$data/$file.zst" ]; then
            zstd -dcq "$data/$file.zst" | tail -c +$((skipped + 1))
        else
            rm -f "$work/data/$name"
            return 0
        fi >>"$work/data/$name"
    done
}
flat_vectors()
{
    flat base.u8 0 realsift/base.0.u8 realsift/base.1.u8
    if [ -e "$data/query.u8" ]; then flat query.u8 0; else flat query.bvecs 0 realsift/query.bvecs; fi
    flat fashion-base.u8 16 fashion-mnist/train-images-idx3-ubyte
    flat fashion-query.u8 16 fashion-mnist/t10k-images-idx3-ubyte
}

# Print the path of a program.
find_program() { find -L "$programs" -name "$1" -type f -perm -u+x 2>/dev/null | head -n 1; }

# Print a few words on the machine.
describe_machine()
{
    local name
    if [ "$device" = cuda ]; then
        name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
    else
        name=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    fi
    printf '%s, %s cores' "${name:-unknown}" "$(nproc)"
}
# Print the commit of the checkout, or of a file beside the programs where there is no checkout.
describe_commit() { git -C "$root_dir" rev-parse --short=7 HEAD 2>/dev/null || head -c 7 "$programs/commit" 2>/dev/null || echo -; }

# Put the tables of $work/out into $out: new rows replace those with the same first and third column, device and data.
keep_tables()
{
    local table old
    for table in "$work"/out/*.tsv; do
        [ -e "$table" ] || continue
        old=$out/$(basename "$table")
        if [ -s "$old" ]; then
            awk -F '\t' 'NR == FNR { if (FNR > 1) seen[$1 FS $3] = 1; next } FNR > 1 && !(($1 FS $3) in seen)' "$table" "$old" >"$work/kept"
            cat "$table" "$work/kept" >"$old"
        else
            cp "$table" "$old"
        fi
    done
}

# Draw the figures and write the page of the tables of a folder: draw_page DRAW.py FOLDER
draw_page()
{
    local python
    for python in /usr/bin/python3 python3; do
        if "$python" -c 'import matplotlib' 2>/dev/null; then
            "$python" "$1" "$2"
            return
        fi
    done
    say "skipped: plots, there is no matplotlib. Later: $(dirname "$1")/run --draw $2"
}
