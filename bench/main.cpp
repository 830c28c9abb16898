// pgwarp_bench: load the same rows into pgwarp's and pgvector's tables, build, search, and compare.
#include <cstdio>
#include <exception>

#include "batch.h"
#include "insertions.h"
#include "interference.h"
#include "report.h"
#include "restart.h"

namespace pgwarp::bench
{

namespace
{

void say(const char* what)
{
    std::printf("%s\n", what);
    std::fflush(stdout);
}

std::vector<Method> available_methods(const Options& options, const Dataset& data)
{
    std::vector<Method> methods = choose_methods(options.methods, data.base.rows, options.k);
    std::erase_if(methods, [&](const Method& method) { return connection_of(options, method.server).empty(); });
    return methods;
}

std::vector<double> load_tables(const Options& options, const Dataset& data, const std::vector<Method>& methods)
{
    std::vector<double> seconds;
    for (const Method& method : methods) {
        seconds.push_back(load_table(options, data, method));
        std::printf("  %-22s %8.2f s\n", method.name.c_str(), seconds.back());
        std::fflush(stdout);
    }
    return seconds;
}

// Measures all points in turn, round after round, so that other work of the machine slows all alike.
std::vector<Result> measure_points(const Options& options, const Dataset& data, const std::vector<Point>& points)
{
    std::vector<Result> results;
    for (const int clients : options.clients) {
        for (const Point& point : points) results.push_back({&point, clients, {}});
    }
    std::vector<std::vector<Measurement>> rounds(results.size());
    for (int round = 0; round < options.repeats; ++round) {
        std::printf("search, round %d of %d\n", round + 1, options.repeats);
        std::fflush(stdout);
        for (std::size_t i = 0; i < results.size(); ++i) {
            const Point& point = *results[i].point;
            rounds[i].push_back(measure_clients(options, data, *point.method, point.settings, results[i].clients));
        }
    }
    for (std::size_t i = 0; i < results.size(); ++i) results[i].measured = median_of(rounds[i]);
    return results;
}

Measurement look_up(const Options& options, const Dataset& data, const std::vector<Method>& methods, Server server)
{
    for (const Method& method : methods) {
        if (method.server != server) continue;
        std::vector<Measurement> rounds;
        for (int i = 0; i < options.repeats; ++i) rounds.push_back(measure_look_up(options, data, method));
        return median_of(rounds);
    }
    return {};
}

void run(const Options& options)
{
    say("reading data and computing the truth");
    Dataset data = load_dataset(options);
    if (options.kills > 0) return measure_restarts(options, data);
    if (options.while_building) return measure_interference(options, data);
    if (options.inserts_per_second > 0) return measure_insertions(options, data);
    if (!options.batch_parts.empty()) return measure_batches(options, std::move(data));
    const std::vector<Method> methods = available_methods(options, data);
    say("loading tables");
    const std::vector<double> load_seconds = load_tables(options, data, methods);
    std::vector<Build> builds = measure_builds(options, data, methods, load_seconds);
    std::vector<Point> points;
    for (const Method& method : methods) {
        std::printf("finding settings: %s\n", method.name.c_str());
        std::fflush(stdout);
        for (Point& point : tune(options, data, method)) points.push_back(std::move(point));
    }
    const std::vector<Result> results = measure_points(options, data, points);
    const Report report = {options,
                           data,
                           std::move(builds),
                           results,
                           look_up(options, data, methods, Server::pgwarp),
                           look_up(options, data, methods, Server::pgvector)};
    write_csv(report);
    print_tables(report);
}

}  // namespace

}  // namespace pgwarp::bench

int main(int argc, char** argv)
{
    try {
        pgwarp::bench::Options options;
        int exit_code = 0;
        if (!pgwarp::bench::parse_options(argc, argv, options, exit_code)) return exit_code;
        pgwarp::bench::run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
