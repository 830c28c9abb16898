// The graph on the device: times of a build and its steps, and recall and time of searches in every shape of the work.
// Each row of each table has its recall and its settings.
//
//   graph_bench [--rows N] [--dimensions D] [--queries N|FILE] [--base FILE.u8] [--rotate 0|1] [--cosine 1]
//               [--metric l2|ip|cosine|l1] [--degree D,...] [--build-degree B] [--vectors full|half|bits,...] [--bits
//               B]
//               [--embeddings 1] [--budget MIB]
//               [--cases build,curve,shapes,few,same,song,batches] [--ef E,...] [--batch B] [--k K,...]
//               [--settings "name=value,name=value;..."] [--repeat N] [--csv FILE --name NAME]
//
//   build    seconds of each phase of two builds, the second of which finds everything warm
//   curve    recall and queries a second for each ef_search and k
//   shapes   each setting of a search varied alone, around the defaults, at two of the ef_search
//   few      batches of 1, 2, 4, ... (--few) from and to host memory, with each of --settings: median and 99th
//            percentile
//   same     queries alone, and in small batches, against the same in a batch of all: how many have another answer
//   song     the choices of the SONG paper: visited structures, selected insertion, deletion, queries a warp, steps
//   batches  batch sizes 1 to all queries; threads and blocks of one query
//
// --budget is the device memory that an index may take once it is built, as on a smaller device: arrays without room
// are read from page-locked host memory ("host" in the CSV).
//
// --batch above the number of queries repeats some of them. Recall is that of a search through SQL: for bits and halves
// the bench asks for the backend's number of candidates, and neighbours among them count, since the backend ranks them
// by the rows. bench/plot draws the CSV.
//
//   custom   --settings, one row for each set of them, at each ef_search
//
// Without a file: a Gaussian mixture with a falling spectrum, randomly rotated; or vectors like those of text
// embedding models (bench/generated.h). Truth is the device's exact search.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench_data.h"
#include "device/context.h"
#include "device/error.h"
#include "generated.h"
#include "graph/device_search.h"
#include "graph/graph.h"
#include "graph_index.h"
#include "methods/graph/graph.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench;
using cuda::graph::Mirror;

// The number of results that the backend asks for, to return k rows.
std::size_t width_of(const Searcher& searcher, std::size_t k)
{
    switch (searcher.result_kind()) {
        case ResultKind::exact:
            return k;
        case ResultKind::lower_bound:
            return k + k / 8 + 3;
        case ResultKind::approximate:
            return std::max<std::size_t>(4 * k, 64);
    }
    return k;
}

// Of the k nearest rows, the share among `width` found ones.
double recall_of(const Results& truth, const std::uint32_t* rows, std::size_t count, std::size_t k, std::size_t width)
{
    double found = 0;
    std::vector<std::uint32_t> wanted(k);
    for (std::size_t q = 0; q < count; ++q) {
        for (std::size_t i = 0; i < k; ++i) wanted[i] = truth[q][i].row;
        std::sort(wanted.begin(), wanted.end());
        std::vector<std::uint32_t> own(rows + q * width, rows + (q + 1) * width);
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        for (const std::uint32_t row : own) found += std::binary_search(wanted.begin(), wanted.end(), row) ? 1 : 0;
    }
    return found / static_cast<double>(count * k);
}

struct Measured {
    double milliseconds = 0;  // of the batch, operands on the device
    double recall = 0;
    double turns = 0;  // of a query: turns of the loop, rows expanded, rows scored
    double expanded = 0;
    double scored = 0;
    cuda::graph::LaunchConfig shape;
};

// graph full, graph bits=128
std::string label(const GraphOptions& options)
{
    if (options.bits > 0) return "graph bits=" + std::to_string(options.bits);
    return options.vectors == GraphVectors::half ? "graph half" : "graph full";
}

// The inputs of tables.
struct Bench {
    const Arguments& arguments;
    const Data& data;
    const GraphIndex& built;
    const Results& truth;
    Mirror& mirror;
    const Searcher& searcher;
    ThreadPool& pool;
    std::ofstream& csv;

    Measured measure(const ParameterList& settings, std::size_t ef, std::size_t k, std::size_t count) const;
    void row(const std::string& what, const ParameterList& settings, std::size_t ef, std::size_t k,
             std::size_t count) const;
    void head(const char* title) const
    {
        std::printf(
            "\n%s\n%-44s %5s %6s %4s  recall   device ms   queries/s  turns expanded  scored  lanes team bits  "
            "shared  state B\n",
            title, "setting", "ef", "batch", "k");
    }
    void ask(std::size_t first, std::size_t count, std::size_t ef, const ParameterList& settings, Results& out) const;
    void same() const;
    void few(const std::string& settings) const;
    void few_of(const ParameterList& settings, std::size_t ef, std::size_t count) const;
};

Measured Bench::measure(const ParameterList& settings, std::size_t ef, std::size_t k, std::size_t count) const
{
    const auto lease = mirror.context().lease(cuda::Priority::search);
    cuda::MemoryPool& memory = mirror.context().pool();
    const std::size_t dimensions = data.dimensions;
    const std::size_t width = std::min(width_of(searcher, k), mirror.rows());
    const std::size_t kept = std::max(ef, width);
    // The timed batch may be one query: recall is measured over batches of at least 1,000 queries together.
    const std::size_t judged = std::min((1000 + count - 1) / count * count, data.asked() / count * count);
    cuda::DeviceArray<float> queries(memory, judged * dimensions, "bench", lease);
    cuda::DeviceArray<double> values(memory, judged * width, "bench", lease);
    cuda::DeviceArray<std::uint32_t> rows(memory, judged * width, "bench", lease);
    cuda::DeviceArray<std::uint32_t> found(memory, judged, "bench", lease);
    cuda::DeviceArray<cuda::graph::TraversalCounts> work(memory, count, "bench", lease);
    cuda::check(cudaMemcpyAsync(queries.data(), data.queries.data(), queries.bytes(), cudaMemcpyHostToDevice, lease),
                "bench");
    const auto plan = cuda::graph::plan_search(mirror, settings, kept, width, count);
    if (plan.shape.shared_bytes > mirror.context().shared_bytes_per_block()) throw std::runtime_error("does not fit");
    cuda::DeviceArray<std::byte> workspace(memory, plan.workspace, "bench", lease);
    const auto run = [&](std::size_t first, bool count_work) {
        for (std::size_t begin = first; begin < first + count; begin += plan.count) {
            const auto some = cuda::graph::plan_search(mirror, settings, kept, width,
                                                       std::min<std::size_t>(plan.count, first + count - begin));
            // The shape is that of the whole batch.
            auto piece = some;
            piece.shape = plan.shape;
            cuda::Chunk chunk;
            chunk.queries = queries.data() + begin * dimensions;
            chunk.workspace = workspace.data();
            chunk.answers = {values.data() + begin * width, rows.data() + begin * width, found.data() + begin};
            chunk.stream = lease;
            cuda::graph::enqueue_search(mirror, piece, chunk, nullptr,
                                        count_work ? work.data() + (begin - first) : nullptr);
        }
    };
    cudaEvent_t start;
    cudaEvent_t stop;
    cuda::check(cudaEventCreate(&start), "bench");
    cuda::check(cudaEventCreate(&stop), "bench");
    std::vector<double> times;
    const std::size_t repeats = arguments.number("repeat", 9);
    for (std::size_t i = 0; i < repeats + 2; ++i) {
        cuda::check(cudaEventRecord(start, lease), "bench");
        run(0, false);
        cuda::check(cudaEventRecord(stop, lease), "bench");
        cuda::check(cudaEventSynchronize(stop), "bench");
        float milliseconds = 0;
        cuda::check(cudaEventElapsedTime(&milliseconds, start, stop), "bench");
        if (i >= 2) times.push_back(milliseconds);
    }
    run(0, true);
    for (std::size_t first = count; first < judged; first += count) run(first, false);
    std::vector<std::uint32_t> host_rows(judged * width);
    std::vector<cuda::graph::TraversalCounts> host_work(count);
    cuda::check(cudaMemcpyAsync(host_rows.data(), rows.data(), rows.bytes(), cudaMemcpyDeviceToHost, lease), "bench");
    cuda::check(cudaMemcpyAsync(host_work.data(), work.data(), work.bytes(), cudaMemcpyDeviceToHost, lease), "bench");
    lease.stream().synchronize();
    cuda::check(cudaEventDestroy(start), "bench");
    cuda::check(cudaEventDestroy(stop), "bench");
    Measured measured;
    measured.milliseconds = median(times);
    measured.recall = recall_of(truth, host_rows.data(), judged, k, width);
    measured.shape = plan.shape;
    for (const auto& counts : host_work) {
        measured.turns += counts.turns / static_cast<double>(count);
        measured.expanded += counts.expanded / static_cast<double>(count);
        measured.scored += counts.scored / static_cast<double>(count);
    }
    return measured;
}

void Bench::row(const std::string& what, const ParameterList& settings, std::size_t ef, std::size_t k,
                std::size_t count) const
{
    Measured measured;
    try {
        measured = measure(settings, ef, k, count);
    } catch (const std::runtime_error& error) {
        std::printf("%-44s %5zu %6zu %4zu  %s\n", what.c_str(), ef, count, k, error.what());
        return;
    }
    const double rate = static_cast<double>(count) / measured.milliseconds * 1e3;
    std::printf("%-44s %5zu %6zu %4zu  %.4f  %10.4f  %10.0f  %5.0f  %7.0f %7.0f  %4ux%u %4u %4u  %6u  %7.0f\n",
                what.c_str(), ef, count, k, measured.recall, measured.milliseconds, rate, measured.turns,
                measured.expanded, measured.scored, measured.shape.lanes, measured.shape.cluster,
                measured.shape.logical_warp, measured.shape.visited_bits, measured.shape.shared_bytes,
                measured.scored * (static_cast<double>(mirror.limits().row_bytes) + 4) +
                    measured.expanded * 4 * static_cast<double>(mirror.options().degree));
    std::fflush(stdout);
    if (!csv.is_open()) return;
    std::string choices = what;
    std::replace(choices.begin(), choices.end(), ',', ' ');
    csv << "search," << arguments.text("name", "generated") << ',' << data.rows() << ',' << data.dimensions << ','
        << label(mirror.options()) << (mirror.host_bytes() > 0 ? " host" : "") << ",degree=" << mirror.options().degree
        << " ef=" << ef << ' ' << choices << ',' << count << ',' << k << ',' << measured.recall << ','
        << measured.milliseconds << ',' << rate << ',' << std::endl;
}

// "name=value,name=value"
ParameterList settings_of(const std::string& text)
{
    ParameterList settings;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');) {
        if (item == "default") continue;
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos) throw std::runtime_error("a setting is name=value: " + item);
        settings.set(item.substr(0, equals).c_str(), std::stoll(item.substr(equals + 1)));
    }
    return settings;
}

// From host memory to host memory, as the engine searches.
void Bench::ask(std::size_t first, std::size_t count, std::size_t ef, const ParameterList& settings, Results& out) const
{
    static ThreadPool alone(1);
    SearchBatch batch;
    batch.queries = std::span(data.queries).subspan(first * data.dimensions, count * data.dimensions);
    batch.count = count;
    batch.k = 10;
    batch.settings = settings;
    batch.effort = static_cast<std::int64_t>(ef);
    searcher.search(batch, out, alone);
}

void Bench::same() const
{
    const std::size_t all = std::min<std::size_t>(data.asked(), 10000);
    std::printf("\nwhose ten rows are not those that they have in a batch of %zu\n   ef  batch   queries  others\n",
                all);
    for (const std::size_t ef : arguments.numbers("same-ef", "16,48,96,128,192,512")) {
        Results together;
        Results own;
        ask(0, all, ef, {}, together);
        for (const std::size_t count : {1, 8, 64, 1000}) {
            const std::size_t asked = std::min<std::size_t>(all, 2000) / count * count;
            std::size_t others = 0;
            for (std::size_t first = 0; first < asked; first += count) {
                ask(first, count, ef, {}, own);
                for (std::size_t q = 0; q < count; ++q) {
                    const auto same_row = [](const RowResult& a, const RowResult& b) { return a.row == b.row; };
                    others += std::ranges::equal(own[q], together[first + q], same_row) ? 0 : 1;
                }
            }
            std::printf("%5zu %6zu  %8zu  %6zu\n", ef, count, asked, others);
            std::fflush(stdout);
        }
    }
}

void Bench::few(const std::string& settings) const
{
    std::stringstream sets(settings);
    for (std::string text; std::getline(sets, text, ';');) {
        std::printf("\nfrom and to host memory, k = 10, %s\n", text.c_str());
        std::printf("   ef  batch  recall  median us     p99 us   queries/s  lanes cluster help steps\n");
        for (const std::size_t ef : arguments.numbers("few-ef", "64,128,192,256")) {
            for (const std::size_t count : arguments.numbers("few", "1,2,4,8,16,32,64,256,1024")) {
                if (count <= data.asked()) few_of(settings_of(text), ef, count);
            }
        }
    }
}

void Bench::few_of(const ParameterList& settings, std::size_t ef, std::size_t count) const
{
    std::vector<double> times;
    Results results;
    std::vector<std::uint32_t> rows;
    Results truth_of_rows;
    const std::size_t repeats = count < 64 ? 1000 : 200;
    for (std::size_t i = 0; i < repeats; ++i) {
        const std::size_t first = i * count % (data.asked() - count + 1);
        const auto begin = Clock::now();
        ask(first, count, ef, settings, results);
        times.push_back(seconds_since(begin) * 1e6);
        for (std::size_t q = 0; q < count && truth_of_rows.size() < 2000; ++q) {
            truth_of_rows.push_back(truth[first + q]);
            for (std::size_t j = 0; j < 10; ++j) rows.push_back(results[q][j].row);
        }
    }
    std::sort(times.begin(), times.end());
    const double typical = times[times.size() / 2];
    const auto shape = cuda::graph::launch_config(settings, ef, 19, count, mirror.limits());
    std::printf("%5zu %6zu  %.4f %10.1f %10.1f %11.0f  %5u %7u %4s %5u\n", ef, count,
                recall_of(truth_of_rows, rows.data(), truth_of_rows.size(), 10, 10), typical,
                times[times.size() * 99 / 100], static_cast<double>(count) / typical * 1e6, shape.lanes, shape.cluster,
                shape.shares_scores ? "yes" : "no", shape.traversal.steps);
    std::fflush(stdout);
}

void run_cases(const Bench& bench, const std::function<bool(const char*)>& wants)
{
    const Arguments& arguments = bench.arguments;
    const std::size_t all = std::min(bench.data.asked(), arguments.number("batch", 10000));
    const std::vector<std::size_t> efs = arguments.numbers("ef", "16,24,32,48,64,96,128,192,256,384,512");
    const std::vector<std::size_t> ks = arguments.numbers("k", "10");
    if (wants("curve")) {
        bench.head("curve");
        for (const std::size_t k : ks) {
            for (const std::size_t ef : efs) bench.row("default", {}, ef, k, all);
        }
    }
    if (wants("shapes")) {
        const std::vector<std::pair<const char*, std::vector<int>>> choices{{"multi_step", {1, 2, 3, 4, 8, 16}},
                                                                            {"lanes", {8, 16, 32, 64, 128, 256}},
                                                                            {"team", {4, 8, 16, 32}},
                                                                            {"visited_bits", {8, 9, 10, 11, 12, 13}},
                                                                            {"seeds", {256, 1024, 2048, 4096, 8192}},
                                                                            {"starts", {4, 8, 16, 32, 64, 128}},
                                                                            {"multi_query", {1, 2, 4}},
                                                                            {"routes", {1, 2}}};
        bench.head("shapes: one setting at a time");
        for (const std::size_t ef : arguments.numbers("shape-ef", "64,192")) {
            bench.row("default", {}, ef, ks[0], all);
            for (const auto& [name, values] : choices) {
                for (const int value : values) {
                    ParameterList settings;
                    settings.set(name, value);
                    bench.row(std::string(name) + "=" + std::to_string(value), settings, ef, ks[0], all);
                }
            }
        }
        // Settings that interact.
        bench.head("shapes: lanes with steps");
        for (const std::size_t ef : arguments.numbers("shape-ef", "64,192")) {
            for (const int lanes : {32, 64, 128}) {
                for (const int steps : {1, 2, 4, 8}) {
                    ParameterList settings;
                    settings.set("lanes", lanes);
                    settings.set("multi_step", steps);
                    bench.row("lanes=" + std::to_string(lanes) + " multi_step=" + std::to_string(steps), settings, ef,
                              ks[0], all);
                }
            }
        }
    }
    if (wants("song")) {
        bench.head("SONG's choices");
        for (const std::size_t ef : arguments.numbers("song-ef", "32,64,128,256")) {
            for (const char* text :
                 {"default", "visited=0", "visited=0,selected_insertion=1", "visited=0,visited_deletion=1",
                  "visited=0,unbounded_queue=1", "visited=1", "visited=1,selected_insertion=1", "visited=2",
                  "visited=2,selected_insertion=1", "visited=2,visited_deletion=1", "multi_query=2", "multi_query=4",
                  "multi_step=1", "multi_step=2", "multi_step=4", "multi_step=8", "multi_step=32"}) {
                for (const std::size_t k : ks) bench.row(text, settings_of(text), ef, k, all);
            }
        }
    }
    if (wants("batches")) {
        bench.head("batch sizes");
        for (const std::size_t ef : arguments.numbers("shape-ef", "64,192")) {
            for (std::size_t count = 1; count <= all; count *= 10) bench.row("default", {}, ef, ks[0], count);
        }
        bench.head("one query: blocks and steps");
        for (const std::size_t ef : arguments.numbers("shape-ef", "64,192")) {
            for (const int cluster : {1, 2, 4, 8}) {
                for (const int help : {1, 2}) {
                    for (const int steps : {4, 8, 16, 32}) {
                        ParameterList settings;
                        settings.set("cluster", cluster);
                        settings.set("help", help);
                        settings.set("multi_step", steps);
                        bench.row("cluster=" + std::to_string(cluster) + " help=" + std::to_string(help) +
                                      " multi_step=" + std::to_string(steps),
                                  settings, ef, ks[0], 1);
                    }
                }
            }
        }
    }
    if (wants("same")) bench.same();
    if (wants("few")) bench.few(arguments.text("settings", "default"));
    if (wants("custom")) {
        bench.head("custom");
        std::stringstream sets(arguments.text("settings", ""));
        for (std::string text; std::getline(sets, text, ';');) {
            for (const std::size_t ef : efs) bench.row(text, settings_of(text), ef, ks[0], all);
        }
    }
}

// Builds one index, and makes its tables.
void run_index(const Arguments& arguments, const Data& data, const Results& truth, std::size_t degree,
               const std::string& vectors, cuda::Context& context, ThreadPool& pool, std::ofstream& csv)
{
    const std::string cases = "," + arguments.text("cases", "build,curve,shapes,few") + ",";
    const auto wants = [&](const char* name) { return cases.find("," + std::string(name) + ",") != std::string::npos; };
    const std::string name = arguments.text("name", "generated");
    std::printf("\n== %s, %zu x %zu, %zu queries, degree %zu, %s\n", name.c_str(), data.rows(), data.dimensions,
                data.asked(), degree, vectors.c_str());
    GraphIndex built = build_graph(data, arguments, degree, vectors, context, pool);
    print_build(built);
    if (wants("build")) {
        built = build_graph(data, arguments, degree, vectors, context, pool);
        print_build(built);
    }
    if (csv.is_open()) {
        const GraphOptions options = GraphOptions::resolve(built.options, data.dimensions);
        csv << "build," << name << ',' << data.rows() << ',' << data.dimensions << ',' << label(options)
            << ",degree=" << degree << ",,,,,," << built.seconds * 1e3 << std::endl;
    }
    cuda::Context small(0, arguments.number("budget", 0) << 20);
    Mirror mirror(small, built.shape, built.options, built.arrays);
    built.feed(mirror);
    mirror.finish_load();
    // A context with a budget of its own, since one budget may have no room for both.
    cuda::Context smaller(0, arguments.number("budget", 0) << 20);
    const auto searcher = cuda::graph::make_searcher(built.shape, built.options, built.arrays, smaller);
    built.feed(*searcher);
    searcher->finish_load(pool);
    const auto rows = static_cast<double>(mirror.rows());
    std::printf("%.1f bytes a row on the device, %.1f in host memory\n",
                static_cast<double>(mirror.device_bytes()) / rows, static_cast<double>(mirror.host_bytes()) / rows);
    run_cases({arguments, data, built, truth, mirror, *searcher, pool, csv}, wants);
}

// Vectors of length 1.
void normalise(std::vector<float>& rows, std::size_t dimensions)
{
    for (std::size_t i = 0; i < rows.size(); i += dimensions) {
        const double norm = canonical_norm(rows.data() + i, dimensions);
        for (std::size_t d = 0; d < dimensions; ++d) rows[i + d] = static_cast<float>(rows[i + d] / norm);
    }
}

Data load_data(const Arguments& arguments, ThreadPool& pool)
{
    if (arguments.number("embeddings", 0) == 0) return load(arguments, pool);
    Generated generated = generate_embeddings(arguments.number("rows", 1000000), arguments.number("dimensions", 1536),
                                              arguments.number("queries", 10000));
    return {generated.base.columns, std::move(generated.base.values), std::move(generated.queries.values)};
}

void run(const Arguments& arguments)
{
    ThreadPool pool(0);
    cuda::Context context(0, 0);
    Data data = load_data(arguments, pool);
    const Metric metric = metric_of(arguments);
    if (metric == Metric::cosine) {
        normalise(data.base, data.dimensions);
        normalise(data.queries, data.dimensions);
    }
    const std::size_t asked = data.asked();
    for (std::size_t i = asked; i < arguments.number("batch", 0); ++i) {
        const std::size_t from = i % asked * data.dimensions;
        for (std::size_t d = 0; d < data.dimensions; ++d) data.queries.push_back(data.queries[from + d]);
    }
    const std::vector<std::size_t> ks = arguments.numbers("k", "10");
    const std::size_t most_k = std::max<std::size_t>(10, *std::max_element(ks.begin(), ks.end()));
    const Results truth = find_truth(data, metric, most_k, context, pool);
    std::ofstream csv = arguments.csv();
    for (const std::string& vectors : arguments.texts("vectors", "full")) {
        for (const std::size_t degree : arguments.numbers("degree", "32")) {
            run_index(arguments, data, truth, degree, vectors, context, pool, csv);
        }
    }
}

}  // namespace

int main(int count, char** values)
{
    return run_benchmark(count, values, run);
}
