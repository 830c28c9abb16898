#include "restart.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "builds.h"

namespace pgwarp::bench
{

namespace
{

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Restart {
    double answered_ms;  // from the kill to the first answer
    double serving_ms;   // of that, until the next engine served
};

// The expected answer of a search: its query's recall before any process was killed.
class Checked
{
public:
    Checked(const Options& options, const Dataset& data, Database& database)
        : options_(options), data_(data), database_(database)
    {
        for (std::size_t q = 0; q < data.queries.rows; ++q) before_.push_back(recall(q));
    }
    double recall_before() const
    {
        double sum = 0;
        for (const double recall : before_) sum += recall;
        return sum / static_cast<double>(before_.size());
    }
    void search(std::size_t q)
    {
        const double now = recall(q);
        if (now >= before_[q]) return;
        throw std::runtime_error("wrong answer after a restart: recall " + std::to_string(now) + " instead of " +
                                 std::to_string(before_[q]));
    }

private:
    double recall(std::size_t q)
    {
        return data_.truth.recall(data_.base, data_.queries.row(q), q, data_.metric,
                                  database_.search("search", data_.queries.row(q)), options_.k);
    }

    const Options& options_;
    const Dataset& data_;
    Database& database_;
    std::vector<double> before_;
};

void kill_engine(Database& status)
{
    const int engine = std::stoi(status.value("SELECT DISTINCT engine_pid FROM pgwarp_status"));
    if (engine > 1 && ::kill(engine, SIGKILL) == 0) return;
    throw std::runtime_error("cannot kill the engine (process " + std::to_string(engine) +
                             "): " + std::strerror(errno) + "; run as root or as the server's user");
}

double engine_age_ms(Database& status)
{
    return std::stod(status.value("SELECT DISTINCT extract(epoch FROM uptime) * 1000 FROM pgwarp_status"));
}

Restart restart_once(Database& status, Checked& checked, std::size_t q)
{
    kill_engine(status);
    const auto killed = Clock::now();
    checked.search(q);
    const double answered = milliseconds_since(killed);
    const double age = engine_age_ms(status);
    return {answered, milliseconds_since(killed) - age};
}

void print(const Method& method, double recall, std::vector<Restart> restarts)
{
    std::vector<double> answered;
    std::vector<double> serving;
    for (const Restart& restart : restarts) {
        answered.push_back(restart.answered_ms);
        serving.push_back(restart.serving_ms);
    }
    std::printf("| %-12s | %5zu | %6.4f | %6.0f | %6.0f | %6.0f | %6.0f | %6.0f |\n", method.name.c_str(),
                restarts.size(), recall, std::ranges::min(answered), median(answered), std::ranges::max(answered),
                median(serving), median(answered) - median(serving));
    std::fflush(stdout);
}

void measure(const Options& options, const Dataset& data, const Method& method)
{
    Database database = open_for(options, data, method, {}, nullptr);
    Database status(options.pgwarp_database);
    Checked checked(options, data, database);
    std::vector<Restart> restarts;
    for (int i = 0; i < options.kills; ++i) {
        // A short-lived engine is started again with growing pauses, which are not measured here.
        std::this_thread::sleep_for(std::chrono::duration<double>(options.settle_seconds));
        const std::size_t q = static_cast<std::size_t>(i) % data.queries.rows;
        restarts.push_back(restart_once(status, checked, q));
        for (std::size_t other = 0; other < std::min<std::size_t>(20, data.queries.rows); ++other)
            checked.search(other);
    }
    print(method, checked.recall_before(), std::move(restarts));
    database.run("SELECT pgwarp_release('" + method.index() + "')");
}

}  // namespace

void measure_restarts(const Options& options, const Dataset& data)
{
    const auto methods = choose_pgwarp_indexes(options.methods, data.base.rows, options.k);
    for (const Method& method : methods) {
        load_table(options, data, method);
        Database(options.pgwarp_database).run(create_index_sql(method, data.metric));
    }
    std::printf("from SIGKILL of the engine to the first right answer, %zu rows, ms\n", data.base.rows);
    std::printf("| method       | kills | recall |    min | median |    max | engine |   load |\n");
    std::printf("|--------------|-------|--------|--------|--------|--------|--------|--------|\n");
    for (const Method& method : methods) measure(options, data, method);
}

}  // namespace pgwarp::bench
