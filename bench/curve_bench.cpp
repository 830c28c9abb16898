// Recall against queries a second of several indexes of the same rows, all points in turn, as CSV (see docs/graph.md).
//
//   curve_bench --name sift --base base.u8 --query query.bvecs --rows 100000 --turned --csv out.csv
//               --index METHOD --index METHOD,NAME=NUMBER --ef 16 32 64 --k 1 10 100
//
// Rows of the CSV, by kind:
//   build       milliseconds of a build (host_ms), calibration included
//   search      one setting: recall@k, queries/s and milliseconds a batch. One query at a time runs on one thread, and
//               the fastest of its rounds counts, so that other work of the machine does not; batches run on all
//               threads, and the fastest round counts
//   calibrated  recall@k over all queries of a search with a target recall
//
// Recall is that of a search through SQL: for bounds and estimates the bench asks for the backend's number of
// candidates, and counts neighbours among them, since the backend ranks them by the rows. That ranking is not in the
// times.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>

#include "curve_data.h"
#include "described.h"
#include "methods/method.h"
#include "methods/recall/searches.h"
#include "metric_names.h"
#include "protocol/calibration.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench;
using Clock = std::chrono::steady_clock;
using Neighbours = std::vector<std::vector<std::uint32_t>>;

constexpr std::size_t most_points = 12;    // of a curve along a schedule
constexpr float least_of_interest = 0.6F;  // recall that such a curve begins at

struct Options {
    CurveSource source;
    std::string name = "generated";
    std::string metric = "l2";
    std::vector<std::string> indexes{linking_method().name};
    std::vector<std::int64_t> efs;
    std::vector<std::uint32_t> ks{10};
    std::vector<std::size_t> batches;
    std::vector<double> recalls;
    std::size_t timed = 1000;
    std::size_t rounds = 3;
    std::size_t threads = 0;
    std::string csv;
};

double milliseconds_since(Clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Index {
    std::string label;  // the method, and its form of rows
    const MethodDescription* method = nullptr;
    ParameterList options;
    Calibration calibration{};
    std::unique_ptr<Searcher> searcher;
    double build_ms = 0;
};

Index named(const std::string& text)
{
    const IndexChoice choice(text);
    Index index;
    index.label = choice.method->name;
    index.method = choice.method;
    index.options = choice.options;
    return index;
}

void build(const CurveData& data, Metric metric, Index& index, ThreadPool& pool)
{
    RowBuffer rows(data.dimensions);
    std::vector<Tid> tids(data.rows());
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    rows.append(tids, data.base);
    rows.sort_by_tid(&pool);
    IndexShape shape{};
    shape.method = index.method->method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    const MethodFactory* method = find_method(index.method->method);
    const auto builder = method->make_builder(shape, index.options);
    const auto start = Clock::now();
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    index.build_ms = milliseconds_since(start);
    index.calibration = builder->calibration();
    index.options = builder->effective_options();
    if (index.method->links_rows) {
        const std::int64_t vectors = index.options.get("vectors", 0);
        index.label += vectors == 0   ? " full"
                       : vectors == 1 ? " half"
                                      : " bits=" + std::to_string(index.options.get("bits", 0));
    }
    const std::vector<ArrayShape> arrays = builder->arrays();
    index.searcher = method->make_searcher(shape, index.options, arrays);
    feed_searcher(*builder, *index.searcher, pool);
}

// The number of results that the backend asks for, to return k rows.
std::uint32_t width_of(const Searcher& searcher, Metric metric, std::uint32_t k)
{
    switch (searcher.result_kind()) {
        case ResultKind::exact:
            return metric == Metric::cosine ? k + 2 : k;
        case ResultKind::lower_bound:
            return k + k / 8 + 3;
        case ResultKind::approximate:
            return std::max(4 * k, 64U);
    }
    return k;
}

struct Point {
    const Index* index;
    std::string kind;  // of the CSV
    std::uint32_t k;
    std::size_t batch;
    std::int64_t effort;
    std::size_t queries;  // that are asked
    std::string asked;    // for, of a calibrated search
    double recall = 0;
    std::vector<double> best;  // milliseconds of each batch, of the round that was fastest
};

double found_of(const std::vector<RowResult>& results, const std::vector<std::uint32_t>& truth, std::uint32_t k)
{
    const auto end = truth.begin() + std::min<std::ptrdiff_t>(k, static_cast<std::ptrdiff_t>(truth.size()));
    double found = 0;
    for (const RowResult& result : results) found += std::find(truth.begin(), end, result.row) != end ? 1 : 0;
    return found / k;
}

void measure(const CurveData& data, const Neighbours& truth, Metric metric, Point& point, ThreadPool& pool)
{
    SearchBatch batch;
    batch.k = width_of(*point.index->searcher, metric, point.k);
    batch.effort = point.effort;
    std::vector<std::vector<RowResult>> results;
    double recall = 0;
    for (std::size_t q = 0; q < point.queries; q += point.batch) {
        batch.count = std::min(point.batch, point.queries - q);
        batch.queries = std::span(data.queries).subspan(q * data.dimensions, batch.count * data.dimensions);
        const auto start = Clock::now();
        point.index->searcher->search(batch, results, pool);
        const double time = milliseconds_since(start);
        const std::size_t number = q / point.batch;
        if (number == point.best.size()) point.best.push_back(std::numeric_limits<double>::infinity());
        point.best[number] = std::min(point.best[number], time);
        for (std::size_t i = 0; i < batch.count; ++i) recall += found_of(results[i], truth[q + i], point.k);
    }
    point.recall = recall / static_cast<double>(point.queries);
}

// The efforts of a curve. Linked rows: the given values of ef, without equivalent ones, as a search keeps no fewer rows
// than it returns. Other methods: efforts along their calibration.
std::vector<std::int64_t> efforts_of(const Index& index, const Options& options, std::uint32_t k)
{
    if (is_complete(*index.method)) return {0};
    if (index.method->links_rows) {
        const std::int64_t least = width_of(*index.searcher, options.source.metric, k);
        std::vector<std::int64_t> efs{least};
        std::copy_if(options.efs.begin(), options.efs.end(), std::back_inserter(efs),
                     [&](std::int64_t ef) { return ef > least; });
        return efs;
    }
    std::vector<std::int64_t> all;
    std::size_t column = 0;
    while (column < 3 && Calibration::ks[column] < k) ++column;
    for (std::uint32_t i = 0; i < index.calibration.count; ++i) {
        const CalibrationPoint& point = index.calibration.points[i];
        if (point.recall[column] >= least_of_interest) all.push_back(point.effort);
    }
    std::vector<std::int64_t> chosen;
    const std::size_t step = all.size() / most_points + 1;
    for (std::size_t i = 0; i < all.size(); i += step) chosen.push_back(all[i]);
    return chosen;
}

std::vector<Point> points_of(const std::vector<Index>& indexes, const Options& options, const CurveData& data)
{
    std::vector<Point> points;
    const std::size_t timed = std::min(options.timed, data.asked());
    for (const std::uint32_t k : options.ks) {
        for (const Index& index : indexes) {
            for (const std::int64_t effort : efforts_of(index, options, k))
                points.push_back({&index, "search", k, 1, effort, timed, "", 0, {}});
        }
    }
    for (const std::size_t batch : options.batches) {
        for (const std::int64_t effort : efforts_of(indexes.front(), options, options.ks.front())) {
            const std::size_t queries = batch == 1 ? timed : std::min(data.asked(), std::max(batch, timed));
            points.push_back({&indexes.front(), "search", options.ks.front(), batch, effort, queries, "", 0, {}});
        }
    }
    return points;
}

std::vector<Point> calibrated_points(const std::vector<Index>& indexes, const Options& options, const CurveData& data)
{
    std::vector<Point> points;
    for (const Index& index : indexes) {
        for (const std::uint32_t k : options.ks) {
            for (const double recall : options.recalls) {
                if (index.calibration.count == 0) continue;
                const EffortChoice choice = choose_effort(index.calibration, k, recall);
                char asked[64];
                std::snprintf(asked, sizeof(asked), "recall=%g promised=%.4f ", recall,
                              static_cast<double>(choice.attained));
                points.push_back({&index, "calibrated", k, data.asked(), choice.effort, data.asked(), asked, 0, {}});
            }
        }
    }
    return points;
}

void write_row(std::ostream& out, const Options& options, const CurveData& data, const Point& point)
{
    SearchBatch batch;
    batch.k = width_of(*point.index->searcher, options.source.metric, point.k);
    batch.effort = point.effort;
    std::string settings = point.asked;
    const ParameterList list = point.index->searcher->resolved_settings(batch);
    for (std::uint32_t i = 0; i < list.count; ++i) {
        settings += (i > 0 ? " " : "") + std::string(list.items[i].name) + "=" + std::to_string(list.items[i].value);
    }
    double total = 0;
    for (const double time : point.best) total += time;
    char numbers[128];
    std::snprintf(numbers, sizeof(numbers), "%zu,%u,%.4f,,%.1f,%.4f", std::min(point.batch, point.queries), point.k,
                  point.recall, static_cast<double>(point.queries) / total * 1e3,
                  total / static_cast<double>(point.best.size()));
    out << point.kind << ',' << options.name << ',' << data.rows() << ',' << data.dimensions << ','
        << point.index->label << ',' << settings << ',' << numbers << std::endl;
}

void run(const Options& options)
{
    ThreadPool pool(options.threads);
    ThreadPool alone(1);
    const Metric metric = options.source.metric;
    const CurveData data = load_curve_data(options.source, pool);
    const Neighbours truth =
        nearest_of_all(data, metric, *std::max_element(options.ks.begin(), options.ks.end()), pool);
    const bool fresh = !std::filesystem::exists(options.csv) || std::filesystem::file_size(options.csv) == 0;
    std::ofstream out(options.csv, std::ios::app);
    if (!out) throw std::runtime_error("cannot write " + options.csv);
    if (fresh) out << "kind,data,rows,dimensions,method,settings,batch,k,recall,device_ms,queries_per_second,host_ms\n";
    std::vector<Index> indexes;
    for (const std::string& text : options.indexes) {
        Index& index = indexes.emplace_back(named(text));
        build(data, metric, index, pool);
        out << "build," << options.name << ',' << data.rows() << ',' << data.dimensions << ',' << index.label
            << ",,,,,,," << index.build_ms << std::endl;
        std::printf("%s, %zu rows: %s built in %.2f s\n", options.name.c_str(), data.rows(), index.label.c_str(),
                    index.build_ms / 1e3);
        std::fflush(stdout);
    }
    std::vector<Point> points = points_of(indexes, options, data);
    for (std::size_t round = 0; round < options.rounds; ++round) {
        for (Point& point : points) measure(data, truth, metric, point, point.batch == 1 ? alone : pool);
    }
    for (Point& point : calibrated_points(indexes, options, data)) {
        measure(data, truth, metric, point, pool);
        std::printf("%s k=%u %s attained=%.4f ef=%ld\n", point.index->label.c_str(), point.k, point.asked.c_str(),
                    point.recall, static_cast<long>(point.effort));
        std::fflush(stdout);
        points.push_back(point);
    }
    for (const Point& point : points) write_row(out, options, data, point);
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app{"Measures curves of recall against queries/s of indexes without a database"};
    app.add_option("--name", options.name, "what the CSV calls the rows");
    app.add_option("--base", options.source.base, "rows: fvecs, bvecs, idx or u8, several files one after the other");
    app.add_option("--query", options.source.query, "queries, likewise");
    app.add_option("--generated", options.source.generated, "without files: clustered or embedding");
    app.add_option("--dimensions", options.source.dimensions, "of u8 files and of generated rows");
    app.add_option("--rows", options.source.rows, "rows taken of the base; 0 = all");
    app.add_option("--queries", options.source.queries, "queries taken");
    app.add_flag("--turned", options.source.turned, "turn rows and queries by a fixed orthogonal matrix");
    app.add_option("--metric", options.metric, "l2, ip, cosine or l1");
    app.add_option("--index", options.indexes, "METHOD[,OPTION=NUMBER...], several");
    app.add_option("--ef", options.efs, "rows kept (ef_search) that methods which link rows are measured at");
    app.add_option("--k", options.ks, "neighbours asked for");
    app.add_option("--batch", options.batches,
                   "batch sizes that the first index is measured at besides, at the first k");
    app.add_option("--recall", options.recalls, "recalls to ask for, measured over all queries");
    app.add_option("--timed", options.timed, "queries that a curve is measured with");
    app.add_option("--rounds", options.rounds, "how often");
    app.add_option("--threads", options.threads, "of builds and batches, 0 = cores");
    app.add_option("--csv", options.csv, "file that rows are added to")->required();
    CLI11_PARSE(app, argc, argv);
    try {
        options.source.metric = metric_named(options.metric);
        run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "curve_bench: %s\n", error.what());
        return 1;
    }
}
