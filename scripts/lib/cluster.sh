# A throw-away PostgreSQL cluster in a folder of its own, reached through a Unix socket only. Sourced after common.sh.

# Choose the folder, and point every client at the cluster in it.
use_cluster()
{
    cluster_dir=$1
    export PGHOST=$cluster_dir/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
    unset PGPASSWORD PGSERVICE PGOPTIONS PGHOSTADDR
}

# The settings by which a server finds an extension that was staged in a folder: staged_settings FOLDER
staged_settings()
{
    if [ "$PG_MAJOR" -ge 18 ]; then
        echo "extension_control_path=$1$("$pg_bin/pg_config" --sharedir):\$system"
    else
        echo "extension_destdir=$1"  # Debian's own
    fi
    # Libraries named without $libdir, as by background workers, are found by a path of their own.
    echo "dynamic_library_path=$1$("$pg_bin/pg_config" --pkglibdir):\$libdir"
}

# Print lines NAME=VALUE as a configuration file has them.
print_settings() { sed -n "s/^\([^=]*\)=\(.*\)/\1 = '\2'/p"; }

# Make the cluster and start it: start_cluster [SETTING=VALUE...]
start_cluster()
{
    mkdir -p "$cluster_dir/socket"
    chmod 700 "$cluster_dir"
    give_to_server "$cluster_dir"
    as_server "$pg_bin/initdb" -D "$cluster_dir/data" -A trust -U postgres -E UTF8 --locale=C --no-sync
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$cluster_dir/socket'"
        [ "$bundle" = yes ] || print_settings < <(staged_settings "$work/stage")
        printf '%s\n' "$@" | print_settings
    } | as_server tee -a "$cluster_dir/data/postgresql.conf" >/dev/null
    (cd / && as_server ${SERVER_WRAPPER:-} "$pg_bin/pg_ctl" -D "$cluster_dir/data" -w -t 120 -l "$cluster_dir/server.log" start) \
        || { tail -n 20 "$cluster_dir/server.log"; return 1; }
}

# Stop the cluster if it runs.
stop_cluster()
{
    [ -n "${cluster_dir:-}" ] && [ -f "$cluster_dir/data/postmaster.pid" ] || return 0
    (cd / && as_server "$pg_bin/pg_ctl" -D "$cluster_dir/data" -m "${1:-fast}" -w -t 60 stop) >/dev/null
}

# Run SQL, unaligned and without headers.
sql() { "$pg_bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

# The names of pgwarp's access methods for vectors.
list_methods()
{
    sql -c "SELECT a.amname FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod
        WHERE o.opcname = 'vector_cosine_ops' AND a.amhandler::text LIKE '%pgwarp%' ORDER BY a.oid"
}
