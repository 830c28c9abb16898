#include "batch.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "batch_work.h"
#include "builds.h"
#include "report.h"

namespace pgwarp::bench
{

namespace
{

constexpr double most_seconds = 60;  // spent on one work: no new round begins after

bool wants(const Options& options, const char* part)
{
    return std::ranges::find(options.batch_parts, part) != options.batch_parts.end() ||
           std::ranges::find(options.batch_parts, "all") != options.batch_parts.end();
}

bool wants_whole_table(const Options& options)
{
    for (const char* part : {"join", "filter", "search", "clients", "knn_graph"}) {
        if (wants(options, part)) return true;
    }
    return false;
}

// The settings that options.settings give for this method, or METHOD/PART where the part has settings of its own.
std::optional<Settings> given_settings(const Options& options, const std::string& method, const std::string& part)
{
    const std::string name = part.empty() ? method : method + "/" + part;
    for (const std::string& given : options.settings) {
        std::istringstream words(given);
        std::string word;
        words >> word;
        if (word != name) continue;
        Settings settings;
        while (words >> word) {
            const std::size_t equals = word.find('=');
            if (equals == std::string::npos) throw std::runtime_error("--settings wants NAME=VALUE, not " + word);
            settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
        }
        return settings;
    }
    return std::nullopt;
}

// The method searching only rows of one kind, a tenth of them.
Method filtered(Method method)
{
    method.filter = "kind = 0";
    if (method.server == Server::pgvector && !method.knob.empty()) {
        const std::string family = method.access_method;
        for (Settings& variant : method.variants) variant.emplace_back(family + ".iterative_scan", "relaxed_order");
    }
    return method;
}

// Distances of the nearest rows of kind 0.
GroundTruth filtered_truth(const Options& options, const Dataset& data)
{
    Matrix<float> rows = {0, data.base.columns, {}};
    for (std::size_t i = 0; i < data.base.rows; ++i) {
        if (kind_of(i) != 0) continue;
        const auto values = data.base.row(i);
        rows.values.insert(rows.values.end(), values.begin(), values.end());
        ++rows.rows;
    }
    Matrix<float> queries = data.queries;
    queries.rows = std::min(options.queries, queries.rows);
    queries.values.resize(queries.rows * queries.columns);
    return GroundTruth::compute(rows, queries, data.metric, options.k, options.cache);
}

void load_and_build(const Options& options, const Dataset& data, const Method& method)
{
    Database database(connection_of(options, method.server));
    const auto exists = [&](const std::string& relation) {
        return database.value("SELECT to_regclass('" + relation + "') IS NOT NULL") == "t";
    };
    const bool loaded = options.reuse && exists(method.table()) &&
                        database.value("SELECT count(*) FROM " + method.table()) == std::to_string(data.base.rows);
    if (!loaded) std::printf("  %-22s %8.2f s to load\n", method.name.c_str(), load_table(options, data, method));
    if (loaded && exists(method.index())) return;
    Options once = options;
    once.build_repeats = 1;
    measure_builds(once, data, {method}, {0.0});
}

// All work that is measured with one method on the whole table.
void add_works(const Options& options, const Dataset& data, const Method& method, std::vector<BatchWork>& works)
{
    const bool ours = method.server == Server::pgwarp;
    if (const std::optional<Point> point = batch_point(options, data, method, "")) {
        // knn_search is compared with pgvector's join.
        if (wants(options, "join") || (wants(options, "search") && !ours))
            works.push_back(join_work(options, data, *point, "join"));
        if (wants(options, "search") && ours) works.push_back(search_work(options, data, *point));
        for (const int clients : options.clients) {
            if (wants(options, "clients")) works.push_back(client_work(options, data, *point, clients));
        }
        if (wants(options, "knn_graph") && ours) works.push_back(graph_work(options, data, *point));
    }
    if (!wants(options, "filter")) return;
    const Method some = filtered(method);
    if (const std::optional<Point> point = batch_point(options, data, some, "filter"))
        works.push_back(join_work(options, data, *point, "filter"));
}

void measure_rounds(const Options& options, std::vector<BatchWork>& works)
{
    std::vector<double> spent(works.size());
    for (int round = 0; round < options.repeats; ++round) {
        std::printf("round %d of %d\n", round + 1, options.repeats);
        std::fflush(stdout);
        for (std::size_t i = 0; i < works.size(); ++i) {
            if (spent[i] > most_seconds) continue;
            const Measurement measured = works[i].measure();
            spent[i] += measured.median_us / 1e6;
            works[i].rounds.push_back(measured);
        }
    }
}

// The fastest of pgvector at the same task: knn_search is compared with its join.
const BatchWork* peer_of(const std::vector<BatchWork>& works, const BatchWork& work)
{
    const std::string kind = work.kind == "knn_search" ? "join" : work.kind;
    const BatchWork* best = nullptr;
    for (const BatchWork& other : works) {
        if (other.method.server != Server::pgvector || other.kind != kind || other.clients != work.clients) continue;
        if (best == nullptr || median_of(other.rounds).queries_per_second > median_of(best->rounds).queries_per_second)
            best = &other;
    }
    return best;
}

// The time of the shortest prepared statement, for comparing machines: microseconds.
double look_up_us(const Options& options, const Dataset& data, const std::vector<Method>& methods)
{
    for (const Method& method : methods) {
        if (method.server == Server::pgwarp) return measure_look_up(options, data, method).median_us;
    }
    return 0;
}

void print(const Options& options, const Dataset& data, const std::vector<BatchWork>& works, double look_up)
{
    std::printf("\n%s: %zu rows of %zu dimensions, %s, k = %zu; medians of at most %d rounds\n", options.name.c_str(),
                data.base.rows, data.base.columns, options.metric.c_str(), options.k, options.repeats);
    std::printf("\n%-10s %-30s %8s %7s %8s %12s %12s %10s %10s %10s   settings\n", "work", "method", "queries",
                "clients", "recall", "time ms", "queries/s", "p50 us", "p99 us", "ratio");
    for (const BatchWork& work : works) {
        const Measurement measured = median_of(work.rounds);
        const bool statement = measured.p99_us == 0;
        std::printf("%-10s %-30s %8zu %7d %8.4f", work.kind.c_str(), work.method.name.c_str(), work.queries,
                    work.clients, work.recall);
        if (statement)
            std::printf(" %12.1f %12.1f %10s %10s", measured.median_us / 1e3, measured.queries_per_second, "", "");
        if (!statement)
            std::printf(" %12s %12.1f %10.1f %10.1f", "", measured.queries_per_second, measured.median_us,
                        measured.p99_us);
        const BatchWork* peer = peer_of(works, work);
        if (peer == nullptr) std::printf(" %10s", "");
        if (peer != nullptr)
            std::printf(" %9.2fx", measured.queries_per_second / median_of(peer->rounds).queries_per_second);
        std::printf("   %s (%s)\n", describe(work.settings).c_str(), work.planner.c_str());
    }
    std::printf("\ntime: of the whole statement, its rows counted by the server; p50, p99: of one prepared search\n");
    std::printf("ratio: queries/s over those of pgvector at the same work (knn_search: its join)\n");
    std::printf(
        "recall: of the first %zu queries (pgwarp's join, knn_search: of all; knn_graph: of rows of 100 blocks)\n",
        options.queries);
    if (look_up > 0) std::printf("primary-key look-up in pgwarp's database, median: %.1f us\n", look_up);
}

}  // namespace

std::optional<Point> batch_point(const Options& options, const Dataset& data, const Method& method,
                                 const std::string& part)
{
    std::string name = method.name;
    if (name.starts_with("parts-")) name = name.substr(name.find('-', 6) + 1);
    if (const auto given = given_settings(options, name, part)) {
        bool forced = false;
        open_for(options, data, method, *given, &forced);
        return Point{&method, 0, *given, measure_recall(options, data, method, *given), forced};
    }
    std::printf("finding settings: %s %s\n", method.name.c_str(), part.c_str());
    std::fflush(stdout);
    Options one_target = options;
    one_target.targets.resize(1);
    const std::vector<Point> points = tune(one_target, data, method);
    // The fastest comes first; where none reaches the target, only the method's own choice for the target.
    if (points.empty() || (points[0].target > 0 && points[0].recall < points[0].target)) return std::nullopt;
    return points[0];
}

void measure_batches(const Options& options, Dataset data)
{
    std::vector<BatchWork> works;
    if (wants(options, "filter")) data.filtered_truth = filtered_truth(options, data);
    std::vector<Method> methods;
    if (wants_whole_table(options)) methods = choose_methods(options.methods, data.base.rows, options.k);
    for (const Method& method : methods) {
        if (connection_of(options, method.server).empty()) continue;
        if (!method.indexed()) throw std::runtime_error(method.name + " is no index");
        std::printf("loading and building: %s\n", method.name.c_str());
        std::fflush(stdout);
        load_and_build(options, data, method);
        load_asked(options, data, method.server);
        add_works(options, data, method, works);
    }
    if (wants(options, "partitions")) {
        std::printf("loading and building: partitions\n");
        for (BatchWork& work : partition_works(options, data)) works.push_back(std::move(work));
    }
    measure_rounds(options, works);
    write_batch_csv(options, data, works);
    print(options, data, works, look_up_us(options, data, methods));
}

}  // namespace pgwarp::bench
