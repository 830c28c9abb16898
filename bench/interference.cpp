#include "interference.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>

#include "builds.h"

namespace pgwarp::bench
{

namespace
{

using Clock = std::chrono::steady_clock;

// Latencies in microseconds.
struct Latencies {
    std::vector<double> p50;
    std::vector<double> p99;
    std::vector<double> p999;
    double largest = 0;
    std::size_t queries = 0;

    void add(std::vector<double> all)
    {
        std::ranges::sort(all);
        const auto at = [&](double part) { return all[static_cast<std::size_t>(part * double(all.size() - 1))]; };
        p50.push_back(at(0.5));
        p99.push_back(at(0.99));
        p999.push_back(at(0.999));
        largest = std::max(largest, all.back());
        queries += all.size();
    }
};

// Builds an index and drops it, again and again, until the object is destroyed, which first awaits the present build.
class Builder
{
public:
    Builder(const Options& options, const Dataset& data, const Method& method)
        : database_(options.pgwarp_database), create_(create_index_sql(method, data.metric)), index_(method.index())
    {
        thread_ = std::jthread([this](std::stop_token stop) { work(stop); });
    }
    // The time of each build, in seconds; rethrows the error of a failed build.
    std::vector<double> finish()
    {
        thread_.request_stop();
        thread_.join();
        if (failure_) std::rethrow_exception(failure_);
        return times_;
    }

private:
    void work(std::stop_token stop)
    {
        try {
            while (!stop.stop_requested()) {
                const auto start = Clock::now();
                database_.run(create_);
                times_.push_back(std::chrono::duration<double>(Clock::now() - start).count());
                database_.run("DROP INDEX " + index_);
            }
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    Database database_;
    std::string create_;
    std::string index_;
    std::vector<double> times_;
    std::exception_ptr failure_;
    std::jthread thread_;
};

void print(const std::string& searched, const std::string& built, const Latencies& latencies, double idle_p99,
           const std::vector<double>& builds)
{
    std::printf("| %-11s | %-12s | %8zu | %7.0f | %7.0f | %7.0f | %8.0f | ", searched.c_str(), built.c_str(),
                latencies.queries, median(latencies.p50), median(latencies.p99), median(latencies.p999),
                latencies.largest);
    if (builds.empty()) {
        std::printf("        |        |        |\n");
    } else {
        std::printf("%5.2f x | %6zu | %6.2f |\n", median(latencies.p99) / idle_p99, builds.size(), median(builds));
    }
    std::fflush(stdout);
}

void measure(const Options& options, const Dataset& data, const Method& searched, const Method& built)
{
    Database database = open_for(options, data, searched, {}, nullptr);
    search_for(0.5, data, database);
    Latencies idle;
    Latencies busy;
    std::vector<double> builds;
    for (int round = 0; round < options.repeats; ++round) {
        idle.add(search_for(options.seconds, data, database));
        Builder builder(options, data, built);
        busy.add(search_for(options.seconds, data, database));
        for (const double time : builder.finish()) builds.push_back(time);
    }
    print(searched.name, "-", idle, 0, {});
    print(searched.name, built.name, busy, median(idle.p99), builds);
}

// The same method on another table.
Method on_other_table(Method method)
{
    method.name = "other-" + method.name;
    return method;
}

}  // namespace

void measure_interference(const Options& options, const Dataset& data)
{
    const auto methods = choose_pgwarp_indexes(options.methods, data.base.rows, options.k);
    for (const Method& method : methods) {
        load_table(options, data, method);
        load_table(options, data, on_other_table(method));
        Database(options.pgwarp_database).run(create_index_sql(method, data.metric));
    }
    std::printf("one client, %zu rows in each table, us; builds in s\n", data.base.rows);
    std::printf(
        "| searched    | building     |  queries |     p50 |     p99 |   p99.9 |      max | p99     | builds | median "
        "|\n");
    std::printf(
        "|-------------|--------------|----------|---------|---------|---------|----------|---------|--------|--------|"
        "\n");
    for (const Method& searched : methods) {
        for (const Method& built : methods) measure(options, data, searched, on_other_table(built));
    }
}

}  // namespace pgwarp::bench
