#include "builds.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "described.h"
#include "process_memory.h"

namespace pgwarp::bench
{

namespace
{

double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The process id of an engine without indexes: a small build starts it, and resident indexes are released.
int empty_engine(Database& database)
{
    database.run("CREATE TEMP TABLE small AS SELECT '[1]'::vector(1) AS v");
    database.run(std::string("CREATE INDEX ON small USING ") + complete_method().name + " (v)");
    database.run("DROP TABLE small");
    database.run("SELECT pgwarp_release(index) FROM pgwarp_status WHERE index IS NOT NULL");
    return std::stoi(database.value("SELECT DISTINCT engine_pid FROM pgwarp_status"));
}

// Build the index once more.
void build_once(const Options& options, const Dataset& data, Build& build, std::vector<double>& times)
{
    Database database(connection_of(options, build.method->server));
    database.run("DROP INDEX IF EXISTS " + build.method->index());
    database.run("CHECKPOINT");
    const int engine = build.method->server == Server::pgwarp ? empty_engine(database) : 0;
    MemorySampler memory(
        {{database.process_id(), MemorySampler::Kind::anonymous}, {engine, MemorySampler::Kind::resident}});
    const auto start = std::chrono::steady_clock::now();
    database.run(create_index_sql(*build.method, data.metric));
    times.push_back(seconds_since(start));
    const std::vector<double> peaks = memory.stop();
    build.backend_peak_mb = std::max(build.backend_peak_mb, peaks[0]);
    build.engine_peak_mb = std::max(build.engine_peak_mb, peaks[1]);
    build.index_bytes = std::stod(database.value("SELECT pg_relation_size('" + build.method->index() + "')"));
    std::printf("  %-22s %8.2f s\n", build.method->name.c_str(), times.back());
    std::fflush(stdout);
}

}  // namespace

double load_table(const Options& options, const Dataset& data, const Method& method)
{
    Database database(connection_of(options, method.server));
    const std::string table = method.table();
    database.run("DROP TABLE IF EXISTS " + table);
    database.run("CREATE TABLE " + table + " (id int, kind int, v vector(" + std::to_string(data.base.columns) + "))");
    if (options.storage == "plain") database.run("ALTER TABLE " + table + " ALTER v SET STORAGE plain");
    const auto start = std::chrono::steady_clock::now();
    database.copy_rows(table, data.base, 0, data.base.rows);
    const double seconds = seconds_since(start);
    database.run("ALTER TABLE " + table + " ADD PRIMARY KEY (id)");
    database.run("VACUUM (FREEZE, ANALYZE) " + table);
    return seconds;
}

std::vector<Build> measure_builds(const Options& options, const Dataset& data, const std::vector<Method>& methods,
                                  const std::vector<double>& load_seconds)
{
    std::vector<Build> builds;
    for (std::size_t i = 0; i < methods.size(); ++i) builds.push_back({&methods[i], 0, 0, 0, 0, load_seconds[i]});
    std::vector<std::vector<double>> times(methods.size());
    for (int round = 0; round < options.build_repeats; ++round) {
        std::printf("build, round %d of %d\n", round + 1, options.build_repeats);
        for (std::size_t i = 0; i < methods.size(); ++i) {
            if (methods[i].indexed()) build_once(options, data, builds[i], times[i]);
        }
    }
    for (std::size_t i = 0; i < methods.size(); ++i) builds[i].seconds = median(times[i]);
    return builds;
}

}  // namespace pgwarp::bench
