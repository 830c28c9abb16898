#include "insertions.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "builds.h"

namespace pgwarp::bench
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr int parts = 10;  // of the time of insertions, each with a line of its own

std::chrono::duration<double> seconds_of(double seconds)
{
    return std::chrono::duration<double>(seconds);
}

// Inserts rows like the table's, at a steady rate, until the object is destroyed. A late inserter catches up.
class Inserter
{
public:
    Inserter(const Options& options, const Dataset& data, const Method& method)
        : database_(options.pgwarp_database), rows_(data.base.rows), rate_(options.inserts_per_second)
    {
        database_.run("SET synchronous_commit = off");
        const std::string table = method.table();
        const std::string rows = std::to_string(rows_);
        database_.prepare("insert", "INSERT INTO " + table + " SELECT " + rows + " + $1::int, kind, v FROM " + table +
                                        " WHERE id = $1::int * 7919::bigint % " + rows + " RETURNING id");
        thread_ = std::jthread([this](std::stop_token stop) { work(stop); });
    }
    std::size_t inserted() const { return inserted_; }
    // Rethrows the error of the inserting thread.
    void finish()
    {
        thread_.request_stop();
        thread_.join();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void work(std::stop_token stop)
    {
        try {
            const auto start = Clock::now();
            while (!stop.stop_requested()) {
                const auto number = static_cast<std::int32_t>(inserted_ + 1);
                database_.look_up("insert", number);
                ++inserted_;
                std::this_thread::sleep_until(start + seconds_of(double(number) / rate_));
            }
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    Database database_;
    std::size_t rows_;
    double rate_;
    std::atomic<std::size_t> inserted_ = 0;
    std::exception_ptr failure_;
    std::jthread thread_;
};

double part_of(const std::vector<double>& sorted, double part)
{
    return sorted[static_cast<std::size_t>(part * double(sorted.size() - 1))];
}

// Prints a line and returns the 99th percentile. idle_p99: that without insertions; 0 on its own line.
double print(const std::string& method, const std::string& when, std::vector<double> latencies, double idle_p99,
             std::size_t inserted, const std::string& waiting)
{
    std::ranges::sort(latencies);
    const double p99 = part_of(latencies, 0.99);
    std::printf("| %-12s | %-6s | %8zu | %7.0f | %7.0f | %7.0f | %8.0f | ", method.c_str(), when.c_str(),
                latencies.size(), part_of(latencies, 0.5), p99, part_of(latencies, 0.999), latencies.back());
    if (idle_p99 > 0) std::printf("%5.2f x | ", p99 / idle_p99);
    if (idle_p99 == 0) std::printf("        | ");
    std::printf("%9zu | %10s |\n", inserted, waiting.c_str());
    std::fflush(stdout);
    return p99;
}

void measure(const Options& options, const Dataset& data, const Method& method)
{
    Database database = open_for(options, data, method, {}, nullptr);
    Database watcher(options.pgwarp_database);
    const auto waiting = [&] {
        return watcher.value("SELECT delta_rows FROM pgwarp_index_info('" + method.index() + "')");
    };
    search_for(0.5, data, database);
    const double idle_p99 = print(method.name, "idle", search_for(options.seconds, data, database), 0, 0, waiting());
    std::vector<double> all;
    Inserter inserter(options, data, method);
    for (int part = 1; part <= parts; ++part) {
        const std::vector<double> latencies = search_for(options.insert_seconds / parts, data, database);
        print(method.name, std::to_string(part * 100 / parts) + " %", latencies, idle_p99, inserter.inserted(),
              waiting());
        all.insert(all.end(), latencies.begin(), latencies.end());
    }
    const std::size_t inserted = inserter.inserted();
    inserter.finish();
    print(method.name, "all", all, idle_p99, inserted, waiting());
}

}  // namespace

void measure_insertions(const Options& options, const Dataset& data)
{
    std::printf("one client, %zu rows of %zu dimensions at first, %.0f inserts a second; us\n", data.base.rows,
                data.base.columns, options.inserts_per_second);
    std::printf(
        "| method       | when   |  queries |     p50 |     p99 |   p99.9 |      max | p99     |  inserted | in "
        "the logs |\n");
    std::printf(
        "|--------------|--------|----------|---------|---------|---------|----------|---------|-----------|---"
        "---------|\n");
    for (const Method& method : choose_pgwarp_indexes(options.methods, data.base.rows, options.k)) {
        load_table(options, data, method);
        Database database(options.pgwarp_database);
        database.run(create_index_sql(method, data.metric));
        database.run("VACUUM (FREEZE, ANALYZE) " + method.table());
        measure(options, data, method);
    }
}

}  // namespace pgwarp::bench
