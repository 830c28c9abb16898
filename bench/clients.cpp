#include "clients.h"

#include <algorithm>
#include <chrono>

namespace pgwarp::bench
{

namespace
{

using Clock = std::chrono::steady_clock;

struct EngineCounters {
    double milliseconds = 0;
    double searches = 0;
};

// The engine's times for an index so far.
EngineCounters engine_counters(const Options& options, const Method& method)
{
    if (method.server != Server::pgwarp || !method.indexed()) return {};
    Database database(options.pgwarp_database);
    const std::string where = " FROM pgwarp_status WHERE index = '" + method.index() + "'::regclass";
    return {std::stod(database.value("SELECT coalesce(sum(searches * mean_answer_ms), 0)" + where)),
            std::stod(database.value("SELECT coalesce(sum(searches), 0)" + where))};
}

// Whether the plan of the search is a scan of the index.
bool uses_index(Database& database, const Method& method, const Dataset& data, std::size_t k)
{
    std::string zero = "'[1";
    for (std::size_t i = 1; i < data.base.columns; ++i) zero += ",0";
    std::string sql = search_sql(method, data.metric, k);
    sql.replace(sql.find("$1"), 2, zero + "]'::vector");
    for (const std::string& line : database.column("EXPLAIN (COSTS OFF) " + sql)) {
        // The indexes of partitions are named after the table as well; another index cannot give the order.
        if (line.find("Index Scan using " + method.table() + "_") != std::string::npos) return true;
    }
    return false;
}

}  // namespace

const std::string& connection_of(const Options& options, Server server)
{
    return server == Server::pgwarp ? options.pgwarp_database : options.pgvector_database;
}

Database open_for(const Options& options, const Dataset& data, const Method& method, const Settings& settings,
                  bool* forced)
{
    Database database(connection_of(options, method.server));
    // A query is one client's work on one core, as with the index methods.
    if (!method.indexed()) database.run("SET max_parallel_workers_per_gather = 0");
    for (const auto& [name, value] : settings) database.run("SET " + name + " = " + value);
    const bool force = method.indexed() && !uses_index(database, method, data, options.k);
    if (force) {
        database.run("SET enable_seqscan = off");
        if (!uses_index(database, method, data, options.k)) {
            throw std::runtime_error("the planner does not use the index of " + method.name);
        }
    }
    if (forced != nullptr) *forced = force;
    database.prepare("search", search_sql(method, data.metric, options.k));
    return database;
}

double measure_recall(const Options& options, const Dataset& data, const Method& method, const Settings& settings)
{
    Database database = open_for(options, data, method, settings, nullptr);
    const GroundTruth& truth = method.filter.empty() ? data.truth : data.filtered_truth;
    const std::size_t queries = std::min(options.queries, data.queries.rows);
    double sum = 0;
    for (std::size_t q = 0; q < queries; ++q) {
        sum += truth.recall(data.base, data.queries.row(q), q, data.metric,
                            database.search("search", data.queries.row(q)), options.k);
    }
    return sum / static_cast<double>(queries);
}

Measurement measure_clients(const Options& options, const Dataset& data, const Method& method, const Settings& settings,
                            int clients)
{
    const EngineCounters before = engine_counters(options, method);
    Measurement out = run_clients({.clients = clients, .seconds = options.seconds}, [&]() -> Work {
        auto database = std::make_shared<Database>(open_for(options, data, method, settings, nullptr));
        return
            [database, &data](std::size_t i) { database->search("search", data.queries.row(i % data.queries.rows)); };
    });
    const EngineCounters after = engine_counters(options, method);
    if (after.searches > before.searches) {
        out.engine_us = (after.milliseconds - before.milliseconds) * 1000 / (after.searches - before.searches);
    }
    return out;
}

std::vector<double> search_for(double seconds, const Dataset& data, Database& database)
{
    std::vector<double> latencies;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (std::size_t i = 0; Clock::now() < end; ++i) {
        const auto before = Clock::now();
        database.search("search", data.queries.row(i % data.queries.rows));
        latencies.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    }
    return latencies;
}

Measurement measure_look_up(const Options& options, const Dataset& data, const Method& method)
{
    return run_clients({.clients = 1, .seconds = options.seconds}, [&]() -> Work {
        auto database = std::make_shared<Database>(connection_of(options, method.server));
        database->prepare("look_up", "SELECT id FROM " + method.table() + " WHERE id = $1");
        return [database, &data](std::size_t i) {
            database->look_up("look_up", static_cast<std::int32_t>(i * 7919 % data.base.rows));
        };
    });
}

}  // namespace pgwarp::bench
