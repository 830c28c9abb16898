// Measures the methods without a database: build seconds by phase, recall, microseconds a query, memory.
//
//   engine_bench --base base.bvecs --query query.bvecs --rows 100000 --method METHOD
//   engine_bench --base base.bvecs --query query.bvecs --rows 100000 --delta 0 1 5 10 25
//
// The second form measures searches beside rows inserted since the build, compared one by one and in parts.
//
// Base rows may be fvecs, bvecs, or plain rows of bytes (u8, with --dimensions). Truth is computed when the file given
// is for other rows, or none is given.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "described.h"
#include "engine_delta.h"
#include "methods/method.h"
#include "methods/recall/searches.h"
#include "metric_names.h"
#include "numeric/distance.h"
#include "numeric/top_k.h"
#include "protocol/calibration.h"

namespace
{

using namespace pgwarp;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t bytes_that_end_within_rows = 1000003;  // of a piece that is loaded

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Vectors {
    std::size_t dimensions = 0;
    std::vector<float> values;
    std::size_t count() const { return dimensions == 0 ? 0 : values.size() / dimensions; }
};

// Reads an fvecs, bvecs or u8 file in pieces, so that no second copy of the rows adds to the memory measured.
class Reader
{
public:
    Reader(const std::string& path, std::size_t u8_dimensions)
        : file_(path, std::ios::binary),
          plain_(path.ends_with(".u8")),
          bytes_(plain_ || path.ends_with(".bvecs")),
          dimensions_(u8_dimensions)
    {
        if (!file_) throw std::runtime_error("cannot open " + path);
    }

    // At most `most` further rows.
    Vectors read(std::size_t most)
    {
        Vectors result;
        while (result.count() < most && read_row()) {
            result.dimensions = dimensions_;
            result.values.insert(result.values.end(), row_.begin(), row_.end());
        }
        return result;
    }

private:
    bool read_row()
    {
        if (!plain_) {
            std::int32_t dimensions = 0;
            if (!file_.read(reinterpret_cast<char*>(&dimensions), sizeof(dimensions))) return false;
            dimensions_ = static_cast<std::size_t>(dimensions);
        }
        row_.resize(dimensions_);
        if (!bytes_) {
            const auto size = static_cast<std::streamsize>(dimensions_ * sizeof(float));
            return static_cast<bool>(file_.read(reinterpret_cast<char*>(row_.data()), size));
        }
        small_.resize(dimensions_);
        const auto size = static_cast<std::streamsize>(dimensions_);
        if (!file_.read(reinterpret_cast<char*>(small_.data()), size)) return false;
        std::copy(small_.begin(), small_.end(), row_.begin());
        return true;
    }

    std::ifstream file_;
    bool plain_;
    bool bytes_;
    std::size_t dimensions_;
    std::vector<float> row_;
    std::vector<std::uint8_t> small_;
};

void normalise(Vectors& vectors)
{
    for (std::size_t i = 0; i < vectors.values.size(); i += vectors.dimensions) {
        const double norm = canonical_norm(vectors.values.data() + i, vectors.dimensions);
        for (std::size_t d = 0; norm > 0 && d < vectors.dimensions; ++d)
            vectors.values[i + d] = static_cast<float>(vectors.values[i + d] / norm);
    }
}

using Neighbours = std::vector<std::vector<std::uint32_t>>;

// The k nearest rows of each query by float64 distances, ties by row.
Neighbours brute_force(Metric metric, std::span<const float> base, const Vectors& queries, std::size_t k,
                       ThreadPool& pool)
{
    Neighbours truth(queries.count());
    pool.parallel_for(queries.count(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            const float* query = queries.values.data() + q * queries.dimensions;
            std::vector<std::pair<double, std::uint32_t>> all(base.size() / queries.dimensions);
            for (std::size_t i = 0; i < all.size(); ++i) {
                const float* row = base.data() + i * queries.dimensions;
                all[i] = {canonical_distance(metric, query, row, queries.dimensions), static_cast<std::uint32_t>(i)};
            }
            const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(k, all.size()));
            std::partial_sort(all.begin(), last, all.end());
            for (auto item = all.begin(); item != last; ++item) truth[q].push_back(item->second);
        }
    });
    return truth;
}

long peak_kib()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

// Processor seconds of all threads: on a busy machine they are more reliable than the clock.
double cpu_seconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Prints each phase's seconds, by the clock and of the processor, as the next begins.
class PhaseClock
{
public:
    void enter(const std::string& phase)
    {
        if (phase == phase_) return;
        leave();
        phase_ = phase;
        start_ = Clock::now();
        cpu_start_ = cpu_seconds();
    }
    void leave()
    {
        if (!phase_.empty()) {
            std::printf("phase,%s,%.3f,cpu,%.3f\n", phase_.c_str(), seconds_since(start_), cpu_seconds() - cpu_start_);
        }
        phase_.clear();
    }

private:
    std::string phase_;
    Clock::time_point start_;
    double cpu_start_ = 0;
};

struct Options {
    std::vector<std::string> base;
    std::string query;
    std::string method = bench::approximate_method().name;
    std::string metric = "l2";
    std::size_t dimensions = 128;
    std::size_t rows = 100000;
    std::size_t queries = 1000;
    std::size_t threads = 0;
    std::size_t search_threads = 1;
    std::uint32_t k = 10;
    std::vector<std::string> options;
    std::vector<std::int64_t> probes;
    std::int64_t refine_factor = 0;
    std::size_t batch = 1;
    bool no_load = false;
    std::vector<double> delta;
    double recall = 0.95;
};

// Median microseconds and recall of one setting.
void measure(const Searcher& searcher, const Options& options, const Vectors& queries, const Neighbours& truth,
             std::int64_t effort, std::int64_t probes, float promised)
{
    ThreadPool pool(options.batch > 1 ? options.threads : options.search_threads);
    SearchBatch batch;
    batch.k = options.k;
    batch.effort = effort;
    if (probes > 0) batch.settings.set(effort_parameter(bench::method_named(options.method)), probes);
    if (options.refine_factor > 0) batch.settings.set("refine_factor", options.refine_factor);
    std::vector<double> times;
    std::vector<std::vector<RowResult>> results;
    double found = 0;
    double first = 0;
    for (int round = 0; round < 2; ++round) {
        times.clear();
        found = first = 0;
        for (std::size_t q = 0; q < queries.count(); q += options.batch) {
            batch.count = std::min(options.batch, queries.count() - q);
            batch.queries = std::span(queries.values).subspan(q * queries.dimensions, batch.count * queries.dimensions);
            const auto start = Clock::now();
            searcher.search(batch, results, pool);
            times.push_back(seconds_since(start) * 1e6 / static_cast<double>(batch.count));
            for (std::size_t i = 0; i < batch.count; ++i) {
                const std::size_t k = std::min<std::size_t>(options.k, truth[q + i].size());
                for (const RowResult& result : results[i]) {
                    const auto end = truth[q + i].begin() + static_cast<std::ptrdiff_t>(k);
                    found += std::find(truth[q + i].begin(), end, result.row) != end ? 1 : 0;
                    first += result.row == truth[q + i][0] ? 1 : 0;
                }
            }
        }
    }
    std::sort(times.begin(), times.end());
    double total = 0;
    for (const double time : times) total += time;
    const double n = static_cast<double>(queries.count());
    std::printf(
        "search,effort=%ld,%s,k=%u,batch=%zu,recall=%.4f,first_in_k=%.4f,promised=%.4f,median_us=%.1f,mean_us=%.1f\n",
        effort,
        [&] {
            std::string text;
            const ParameterList list = searcher.resolved_settings(batch);
            for (std::uint32_t i = 0; i < list.count; ++i)
                text += std::string(i > 0 ? "," : "") + list.items[i].name + "=" + std::to_string(list.items[i].value);
            return text;
        }()
            .c_str(),
        options.k, options.batch, found / (n * options.k), first / n, static_cast<double>(promised),
        times[times.size() / 2], total / static_cast<double>(times.size()));
    std::fflush(stdout);
}

// Fills the buffer, as a parallel heap scan would: in chunks.
void read_rows(const Options& options, Metric metric, RowBuffer& rows)
{
    Reader reader(options.base.front(), options.dimensions);
    std::size_t file = 0;
    while (rows.size() < options.rows) {
        Vectors piece = reader.read(std::min<std::size_t>(4096, options.rows - rows.size()));
        if (piece.count() == 0) {
            if (++file == options.base.size()) return;
            reader = Reader(options.base[file], options.dimensions);
            continue;
        }
        if (metric == Metric::cosine) normalise(piece);
        std::vector<Tid> tids(piece.count());
        for (std::size_t i = 0; i < tids.size(); ++i) {
            const std::size_t row = rows.size() + i;
            tids[i] = {static_cast<std::uint32_t>(row / 50), static_cast<std::uint16_t>(row % 50 + 1), 0};
        }
        rows.append(tids, piece.values);
    }
}

// Searches with delta rows, which are the rest of the base.
void run_delta(const Options& options, const IndexShape& shape, const ParameterList& parameters, const Vectors& queries,
               ThreadPool& pool)
{
    const Metric metric = static_cast<Metric>(shape.metric);
    const double most = *std::max_element(options.delta.begin(), options.delta.end());
    Options more = options;
    more.rows += static_cast<std::size_t>(static_cast<double>(options.rows) * most / 100);
    RowBuffer all(queries.dimensions);
    read_rows(more, metric, all);
    if (all.size() < more.rows) throw std::runtime_error("too few rows for this delta");
    const std::size_t indexed = options.rows * queries.dimensions;
    RowBuffer rows(queries.dimensions);
    rows.append(all.tids().first(options.rows), all.vectors().first(indexed));
    const auto builder = find_method(shape.method)->make_builder(shape, parameters);
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    std::printf("rows,%zu,dimensions,%zu,simd,%s,threads,%zu\n", rows.size(), queries.dimensions, simd_target(),
                pool.threads());
    bench::DeltaRun run;
    run.shape = shape;
    run.k = options.k;
    run.batch = options.batch;
    run.threads = options.batch > 1 ? options.threads : options.search_threads;
    run.recall = options.recall;
    run.queries = queries.values;
    run.rows = all.vectors().first(indexed);
    run.delta = all.vectors().subspan(indexed);
    run.percentages = options.delta;
    bench::measure_delta(run, *builder, pool);
}

void run(const Options& options)
{
    ThreadPool pool(options.threads);
    const Metric metric = metric_named(options.metric);
    Vectors queries = Reader(options.query, options.dimensions).read(options.queries);
    if (metric == Metric::cosine) normalise(queries);
    IndexShape shape{};
    ParameterList parameters;
    shape.method = bench::method_named(options.method).method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = static_cast<std::uint32_t>(queries.dimensions);
    for (const std::string& option : options.options) {
        const auto at = option.find('=');
        parameters.set(option.substr(0, at).c_str(), std::stoll(option.substr(at + 1)));
    }
    if (!options.delta.empty()) return run_delta(options, shape, parameters, queries, pool);
    RowBuffer rows(queries.dimensions);
    read_rows(options, metric, rows);
    const Neighbours truth =
        options.no_load ? Neighbours() : brute_force(metric, rows.vectors(), queries, options.k, pool);
    std::printf("rows,%zu,dimensions,%zu,simd,%s,threads,%zu,kib_before,%ld\n", rows.size(), queries.dimensions,
                simd_target(), pool.threads(), peak_kib());
    const MethodFactory* method = find_method(shape.method);
    const auto builder = method->make_builder(shape, parameters);
    PhaseClock phases;
    BuildProgress progress{[&](const char* phase, std::uint64_t, std::uint64_t) { phases.enter(phase); }, nullptr};
    const auto start = Clock::now();
    const double cpu_start = cpu_seconds();
    rows.sort_by_tid();
    builder->run(rows, progress, pool);
    phases.leave();
    std::printf("build,%.3f,cpu,%.3f,kib_peak,%ld\n", seconds_since(start), cpu_seconds() - cpu_start, peak_kib());
    const Calibration calibration = builder->calibration();
    const ParameterList effective = builder->effective_options();
    for (std::uint32_t i = 0; i < effective.count; ++i)
        std::printf("option,%s,%ld\n", effective.items[i].name, static_cast<long>(effective.items[i].value));
    if (options.no_load) return;
    const auto load_start = Clock::now();
    const std::vector<ArrayShape> arrays = builder->arrays();
    const auto searcher = method->make_searcher(shape, effective, arrays);
    feed_searcher(*builder, *searcher, pool, bytes_that_end_within_rows);
    std::printf("load,%.3f,bytes,%lu\n", seconds_since(load_start),
                static_cast<unsigned long>(searcher->memory_bytes()));
    for (const std::int64_t probes : options.probes) measure(*searcher, options, queries, truth, 0, probes, -1);
    for (const double recall : {0.8, 0.9, 0.95, 0.98, 0.99, 0.995}) {
        const EffortChoice choice = choose_effort(calibration, options.k, recall);
        std::printf("asked=%.3f,", recall);
        measure(*searcher, options, queries, truth, choice.effort, 0, choice.attained);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app{"Measures pgwarp's methods without a database"};
    app.add_option("--base", options.base, "rows: .fvecs, .bvecs or .u8, several files one after the other")
        ->required();
    app.add_option("--query", options.query, "queries: .fvecs, .bvecs or .u8")->required();
    app.add_option("--method", options.method, "an access method");
    app.add_option("--metric", options.metric, "l2, ip, cosine or l1");
    app.add_option("--dimensions", options.dimensions, "dimensions of .u8 files");
    app.add_option("--rows", options.rows, "rows taken of the base");
    app.add_option("--queries", options.queries, "queries taken");
    app.add_option("--threads", options.threads, "threads of the build, 0 = cores");
    app.add_option("--search-threads", options.search_threads, "threads of a search of one query, 0 = cores");
    app.add_option("--k", options.k, "neighbours asked for");
    app.add_option("--option", options.options, "build options, NAME=NUMBER");
    app.add_option("--probes", options.probes, "efforts (lists probed, rows kept) that are also measured");
    app.add_option("--refine-factor", options.refine_factor, "0 = chosen");
    app.add_option("--batch", options.batch, "queries a call");
    app.add_option("--delta", options.delta, "percent of the rows inserted since the build, several");
    app.add_option("--recall", options.recall, "asked for with --delta");
    app.add_flag("--no-load", options.no_load, "build only");
    CLI11_PARSE(app, argc, argv);
    try {
        run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "engine_bench: %s\n", error.what());
        return 1;
    }
}
