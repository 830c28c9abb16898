#include "clients.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace pgwarp::bench
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr std::size_t least_queries = 5;
constexpr std::size_t warm_up_queries = 10;  // a prepared statement's plan settles after five

double microseconds(Clock::duration time)
{
    return std::chrono::duration<double, std::micro>(time).count();
}

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

double percentile(std::vector<double>& sorted, double part)
{
    const auto place = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
    return sorted[place];
}

Measurement summarise(std::vector<std::vector<double>>& latencies, double elapsed_us)
{
    std::vector<double> all;
    for (const auto& client : latencies) all.insert(all.end(), client.begin(), client.end());
    std::ranges::sort(all);
    return {static_cast<double>(all.size()) / elapsed_us * 1e6, percentile(all, 0.5), percentile(all, 0.99), 0};
}

using Work = std::function<void(std::size_t)>;  // does the i-th piece of work

// Works for this time, and notes the time of each piece.
void work_for(double seconds, std::size_t offset, const Work& work, std::vector<double>& latencies)
{
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (std::size_t i = 0; latencies.size() < least_queries || Clock::now() < end; ++i) {
        const auto before = Clock::now();
        work(offset + i);
        latencies.push_back(microseconds(Clock::now() - before));
    }
}

// Run clients made by `make`, all at once after each has warmed up.
template <typename Make>
Measurement run_clients(int clients, double seconds, const Make& make)
{
    const auto count = static_cast<std::size_t>(clients);
    std::vector<std::vector<double>> latencies(count);
    std::vector<Work> work;
    for (std::size_t i = 0; i < count; ++i) work.push_back(make());
    std::barrier ready(clients + 1);
    std::exception_ptr failure;
    std::mutex failure_lock;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            const std::size_t offset = i * 7919;
            bool warm = false;
            try {
                for (std::size_t j = 0; j < warm_up_queries; ++j) work[i](offset + j);
                warm = true;
                ready.arrive_and_wait();
                work_for(seconds, offset, work[i], latencies[i]);
            } catch (...) {
                const std::lock_guard lock(failure_lock);
                failure = std::current_exception();
                if (!warm) ready.arrive_and_drop();
            }
        });
    }
    ready.arrive_and_wait();
    const auto started = Clock::now();
    for (std::jthread& thread : threads) thread.join();
    const double elapsed = microseconds(Clock::now() - started);
    if (failure) std::rethrow_exception(failure);
    return summarise(latencies, elapsed);
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

double median(std::vector<double> values)
{
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Measurement median_of(const std::vector<Measurement>& rounds)
{
    const auto of = [&](double Measurement::*field) {
        std::vector<double> values;
        for (const Measurement& round : rounds) values.push_back(round.*field);
        return median(std::move(values));
    };
    return {of(&Measurement::queries_per_second), of(&Measurement::median_us), of(&Measurement::p99_us),
            of(&Measurement::engine_us)};
}

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
    Measurement out = run_clients(clients, options.seconds, [&] {
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
    return run_clients(1, options.seconds, [&] {
        auto database = std::make_shared<Database>(connection_of(options, method.server));
        database->prepare("look_up", "SELECT id FROM " + method.table() + " WHERE id = $1");
        return [database, &data](std::size_t i) {
            database->look_up("look_up", static_cast<std::int32_t>(i * 7919 % data.base.rows));
        };
    });
}

}  // namespace pgwarp::bench
