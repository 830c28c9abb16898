// Search of an inverted file on the device: time, recall and share of the roofline, with operands on the device and
// from host to host. The index is built on the device.
//
//   ivfadc_bench [--rows N] [--dimensions D] [--queries N|FILE] [--base FILE.u8] [--truth FILE.ivecs] [--rotate 0|1]
//                [--lists L,...] [--probes P,...] [--batch B,...] [--k K] [--refine half|none|full|plain,...]
//                [--subquantizers M] [--codes pq|half|int8] [--profile 1] [--csv FILE --name NAME]
//
// refine = plain: the half vectors of the same build alone, as with codes = half.
//
// Without a file: a Gaussian mixture with a falling spectrum, randomly rotated. Recall of R@1: the true nearest row is
// the first answer; R@k: it is among the k; recall: the share of the k true nearest rows among the k answers.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "bench_data.h"
#include "device/context.h"
#include "device/error.h"
#include "ivfadc/builder.h"
#include "ivfadc/device_search.h"
#include "ivfadc/ivfadc.h"
#include "methods/arrays.h"
#include "methods/ivfadc/ivfadc.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench;
using cuda::ivfadc::Mirror;

constexpr double read_rate = 4.3e12;    // bytes a second, measured
constexpr double matrix_rate = 7.9e14;  // fp16 operations a second, measured

struct Built {
    IndexShape shape{};
    ParameterList options;
    std::vector<ArrayShape> arrays;
    std::map<std::string, std::vector<std::byte>> contents;
};

// Codes and half vectors in one build; the vectors themselves are added, so that one build serves every refine.
Built build(const Data& data, std::size_t lists, std::int64_t codes, std::size_t subquantizers, cuda::Context& context,
            ThreadPool& pool)
{
    Built built;
    built.shape.method = Method::ivfadc;
    built.shape.element = ElementType::float32;
    built.shape.metric = static_cast<std::uint8_t>(Metric::l2);
    built.shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    ParameterList asked;
    asked.set("lists", static_cast<std::int64_t>(lists));
    asked.set("codes", codes);
    if (codes == 0) asked.set("subquantizers", static_cast<std::int64_t>(subquantizers));
    asked.set("refine", 1);
    const auto builder = cuda::make_ivfadc_builder(context, built.shape, asked, cuda::ivfadc::make_searcher);
    RowBuffer rows(data.dimensions);
    std::vector<Tid> tids(data.rows());
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    rows.append(tids, data.base);
    rows.sort_by_tid();
    BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    builder->run(rows, progress, pool);
    built.options = builder->effective_options();
    built.arrays = builder->arrays();
    for (const ArrayShape& array : built.arrays) {
        std::vector<std::byte>& bytes = built.contents[array.name];
        bytes.resize(array.bytes());
        builder->read(array.name, 0, bytes);
    }
    built.arrays.push_back(make_array_shape(array_vectors, ArrayType::f32, data.rows(), data.dimensions));
    const auto vectors = std::as_bytes(std::span(data.base));
    built.contents[array_vectors].assign(vectors.begin(), vectors.end());
    return built;
}

template <class Target>
void feed(const Built& built, Target& target)
{
    constexpr std::size_t step = 8 << 20;
    for (const ArrayShape& array : built.arrays) {
        const std::vector<std::byte>& bytes = built.contents.at(array.name);
        for (std::size_t offset = 0; offset < bytes.size(); offset += step) {
            target.write(array.name, offset, std::span(bytes).subspan(offset, std::min(step, bytes.size() - offset)));
        }
    }
}

// With `plain` the lists hold half vectors alone (codes = 1, IvfCodes::half).
ParameterList with_refine(const ParameterList& options, std::int64_t refine, bool plain)
{
    ParameterList changed = options;
    if (plain) changed.set("codes", 1);
    changed.set("refine", refine);
    return changed;
}

// The true nearest rows: every list probed, ranked by full vectors. The first queries are checked by brute force.
std::vector<std::vector<RowResult>> find_truth(const Data& data, const Built& built, std::size_t k,
                                               cuda::Context& context, ThreadPool& pool)
{
    const auto searcher =
        cuda::ivfadc::make_searcher(built.shape, with_refine(built.options, 2, true), built.arrays, context);
    feed(built, *searcher);
    searcher->finish_load(pool);
    SearchBatch batch;
    batch.queries = data.queries;
    batch.count = data.asked();
    batch.k = static_cast<std::uint32_t>(k);
    batch.effort = 1 << 20;
    std::vector<std::vector<RowResult>> truth;
    searcher->search(batch, truth, pool);
    std::size_t wrong = 0;
    const std::size_t checked = std::min<std::size_t>(16, data.asked());
    pool.parallel_for(checked, 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t q = first; q < last; ++q) {
            RowResult best{HUGE_VAL, 0};
            for (std::size_t row = 0; row < data.rows(); ++row) {
                const double distance = canonical_distance(Metric::l2, data.queries.data() + q * data.dimensions,
                                                           data.base.data() + row * data.dimensions, data.dimensions);
                if (distance < best.distance) best = {distance, static_cast<std::uint32_t>(row)};
            }
            if (best.row != truth[q][0].row || best.distance != truth[q][0].distance) ++wrong;
        }
    });
    std::printf("truth: k=%zu by all probes and full vectors; %zu of %zu checked queries differ from brute force\n", k,
                wrong, checked);
    return truth;
}

struct Recall {
    double first = 0;  // R@1
    double among = 0;  // R@k
    double share = 0;  // recall@k
};

// Over the queries that have an answer.
Recall recall_of(const std::vector<std::vector<RowResult>>& truth, const std::vector<std::vector<RowResult>>& answers,
                 std::size_t k)
{
    Recall recall;
    double queries = 0;
    for (std::size_t q = 0; q < answers.size(); ++q) {
        if (answers[q].empty()) continue;
        queries += 1;
        std::vector<std::uint32_t> wanted;
        for (std::size_t i = 0; i < k; ++i) wanted.push_back(truth[q][i].row);
        const std::uint32_t nearest = wanted[0];
        std::sort(wanted.begin(), wanted.end());
        std::size_t found = 0;
        bool among = false;
        for (const RowResult& answer : answers[q]) {
            const std::uint32_t row = answer.row;
            found += std::binary_search(wanted.begin(), wanted.end(), row) ? 1 : 0;
            among = among || row == nearest;
        }
        recall.first += answers[q][0].row == nearest ? 1 : 0;
        recall.among += among ? 1 : 0;
        recall.share += static_cast<double>(found) / static_cast<double>(k);
    }
    return {recall.first / queries, recall.among / queries, recall.share / queries};
}

// Operands on the device: milliseconds of one batch, by events.
double time_on_device(const Mirror& mirror, std::size_t count, std::size_t probes, std::size_t k,
                      const float* host_queries, std::vector<std::uint32_t>& found, bool profile)
{
    const auto lease = mirror.context().lease(cuda::Priority::search);
    cuda::MemoryPool& pool = mirror.context().pool();
    const std::size_t dimensions = mirror.dimensions();
    cuda::DeviceArray<float> queries(pool, count * dimensions, "bench", lease);
    cuda::DeviceArray<double> values(pool, count * k, "bench", lease);
    cuda::DeviceArray<std::uint32_t> numbers(pool, count * k, "bench", lease);
    cuda::DeviceArray<std::uint32_t> counts(pool, count, "bench", lease);
    cuda::check(cudaMemcpyAsync(queries.data(), host_queries, queries.bytes(), cudaMemcpyHostToDevice, lease), "bench");
    // The searcher's own choice.
    const bool by_others = mirror.options().byte_codes && mirror.options().refine != IvfRefine::none;
    const std::size_t factor = !by_others ? 1 : k <= 20 ? 3 : 2;
    const std::size_t wanted = std::min(mirror.rows(), std::max(factor * k, k + 8 + k / 8));
    std::size_t bytes = 0;
    std::size_t chunk = 0;
    {
        const auto plan = cuda::ivfadc::plan_search(mirror, count, probes, wanted, k, true);
        bytes = plan.workspace;
        chunk = plan.count;
    }
    cuda::DeviceArray<std::byte> workspace(pool, bytes, "bench", lease);
    const auto run = [&] {
        for (std::size_t begin = 0; begin < count; begin += chunk) {
            const auto plan =
                cuda::ivfadc::plan_search(mirror, std::min(chunk, count - begin), probes, wanted, k, true);
            cuda::Chunk piece;
            piece.queries = queries.data() + begin * dimensions;
            piece.workspace = workspace.data();
            piece.answers = {values.data() + begin * k, numbers.data() + begin * k, counts.data() + begin};
            piece.stream = lease;
            cuda::ivfadc::enqueue_search(mirror, plan, piece, nullptr);
        }
    };
    cudaEvent_t start;
    cudaEvent_t stop;
    cuda::check(cudaEventCreate(&start), "bench");
    cuda::check(cudaEventCreate(&stop), "bench");
    std::vector<double> times;
    for (int i = 0; i < (profile ? 2 : 15); ++i) {
        cuda::check(cudaEventRecord(start, lease), "bench");
        run();
        cuda::check(cudaEventRecord(stop, lease), "bench");
        cuda::check(cudaEventSynchronize(stop), "bench");
        float milliseconds = 0;
        cuda::check(cudaEventElapsedTime(&milliseconds, start, stop), "bench");
        if (i >= 3 || profile) times.push_back(milliseconds);
    }
    found.resize(count);
    cuda::check(cudaMemcpy(found.data(), counts.data(), counts.bytes(), cudaMemcpyDeviceToHost), "bench");
    return median(times);
}

struct HostTime {
    double median;
    double p99;
    std::vector<std::vector<RowResult>> answers;  // by query; empty for a query that no batch held
};

HostTime time_host_to_host(const Searcher& searcher, const Data& data, std::size_t count, std::size_t probes,
                           std::size_t k, ThreadPool& pool)
{
    std::vector<double> times;
    std::vector<std::vector<RowResult>> results;
    std::vector<std::vector<RowResult>> answers(data.asked());
    const std::size_t repeats = count < 100 ? 1000 : 21;
    for (std::size_t i = 0; i < repeats; ++i) {
        SearchBatch batch;
        const std::size_t first = i * count % (data.asked() - count + 1);
        batch.queries = std::span(data.queries).subspan(first * data.dimensions, count * data.dimensions);
        batch.count = count;
        batch.k = static_cast<std::uint32_t>(k);
        batch.effort = static_cast<std::int64_t>(probes);
        const auto begin = Clock::now();
        searcher.search(batch, results, pool);
        times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
        std::copy(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(count),
                  answers.begin() + static_cast<std::ptrdiff_t>(first));
    }
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times[times.size() * 99 / 100], std::move(answers)};
}

// The least that a batch needs: centroids and touched lists read once, and the products of all pairs.
double roofline_milliseconds(const Mirror& mirror, std::size_t count, std::size_t probes)
{
    const auto lists = static_cast<double>(mirror.lists());
    const auto rows = static_cast<double>(mirror.rows());
    const auto dimensions = static_cast<double>(mirror.dimensions());
    const auto queries = static_cast<double>(count);
    const double share = static_cast<double>(probes) / lists;
    const double touched = 1 - std::pow(1 - share, queries);
    const double row_bytes = mirror.view().scans_codes   ? static_cast<double>(mirror.options().subquantizers) + 4
                             : mirror.view().scans_bytes ? dimensions + 8
                                                         : 2 * dimensions + 4;
    const double bytes = lists * 2 * dimensions + touched * rows * row_bytes + queries * 4 * dimensions;
    const double operations = 2 * dimensions * queries * (lists + share * rows);
    return 1e3 * std::max(bytes / read_rate, operations / matrix_rate);
}

std::vector<std::vector<RowResult>> read_truth(const std::string& path, std::size_t k)
{
    const std::vector<unsigned char> bytes = read_file(path);
    std::int32_t width = 0;
    std::memcpy(&width, bytes.data(), 4);
    const std::size_t record = 4 + static_cast<std::size_t>(width) * 4;
    std::vector<std::vector<RowResult>> truth(bytes.size() / record);
    for (std::size_t q = 0; q < truth.size(); ++q) {
        for (std::size_t i = 0; i < k; ++i) {
            std::uint32_t row = 0;
            std::memcpy(&row, bytes.data() + q * record + 4 + i * 4, 4);
            truth[q].push_back({0, row});
        }
    }
    return truth;
}

void run(const Arguments& arguments)
{
    ThreadPool pool(0);
    ThreadPool alone(1);
    cuda::Context context(0, 0);
    const auto begin = Clock::now();
    const auto seconds = [&] { return seconds_since(begin); };
    const Data data = load(arguments, pool);
    const std::size_t k = arguments.number("k", 10);
    const std::size_t subquantizers = arguments.number("subquantizers", 64);
    const std::string kind = arguments.text("codes", subquantizers != 0 ? "pq" : "half");
    const std::int64_t codes = kind == "int8" ? 2 : kind == "half" ? 1 : 0;
    std::printf("%zu x %zu, %zu queries, k=%zu (%.1f s)\n", data.rows(), data.dimensions, data.asked(), k, seconds());
    std::ofstream csv = arguments.csv();
    std::vector<std::vector<RowResult>> truth;
    if (!arguments.text("truth", "").empty()) truth = read_truth(arguments.text("truth", ""), k);
    for (const std::size_t lists : arguments.numbers("lists", "1024")) {
        const Built built = build(data, lists, codes, subquantizers, context, pool);
        std::printf("codes = %s, lists %lld built (%.1f s)\n", kind.c_str(),
                    static_cast<long long>(built.options.get("lists", 0)), seconds());
        const bool profile = arguments.number("profile", 0) != 0;  // for a profiler: few launches, no recall
        if (truth.empty() && !profile) truth = find_truth(data, built, k, context, pool);
        const auto lists_made = static_cast<std::size_t>(built.options.get("lists", 0));
        std::printf(
            "refine  lists  batch probes   R@1   R@k  recall  device ms   queries/s   us/query  host ms      p99  "
            "queries/s  B/query  %%roof  again\n");
        for (const std::string& name : arguments.texts("refine", "half,none")) {
            const bool plain = name == "plain";
            const std::int64_t refine = name == "none" ? 0 : name == "full" ? 2 : 1;
            const ParameterList options = with_refine(built.options, refine, plain);
            Mirror mirror(context, built.shape, options, built.arrays);
            feed(built, mirror);
            mirror.finish_load();
            const auto searcher = cuda::ivfadc::make_searcher(built.shape, options, built.arrays, context);
            feed(built, *searcher);
            searcher->finish_load(pool);
            std::printf("refine = %s: %.1f bytes a row on the device\n", name.c_str(),
                        static_cast<double>(mirror.device_bytes()) / static_cast<double>(mirror.rows()));
            for (const std::size_t asked : arguments.numbers("batch", "1,16,10000")) {
                const std::size_t batch = std::min(asked, data.asked());
                for (const std::size_t asked_probes : arguments.numbers("probes", "8,16,32,64")) {
                    const std::size_t probes = std::min(asked_probes, lists_made);
                    std::vector<std::uint32_t> found;
                    const double device = time_on_device(mirror, batch, probes, k, data.queries.data(), found, profile);
                    if (profile) continue;
                    const auto lost = std::count(found.begin(), found.end(), cuda::ivfadc::overflowed);
                    const HostTime host =
                        time_host_to_host(*searcher, data, batch, probes, k, batch < 1000 ? alone : pool);
                    const Recall recall = recall_of(truth, host.answers, k);
                    const double roof = roofline_milliseconds(mirror, batch, probes);
                    const double queries = static_cast<double>(batch);
                    const double bytes = static_cast<double>(probes) / static_cast<double>(lists_made) *
                                         static_cast<double>(data.rows()) *
                                         (codes == 2 && !plain ? static_cast<double>(data.dimensions)
                                          : refine == 0        ? static_cast<double>(subquantizers)
                                                               : 2.0 * static_cast<double>(data.dimensions));
                    std::printf(
                        "%-6s %6zu %6zu %6zu  %.4f %.4f %.4f  %9.4f  %10.0f  %9.4f %8.3f %8.3f %10.0f %8.0f %6.1f "
                        "%5ld\n",
                        name.c_str(), lists_made, batch, probes, recall.first, recall.among, recall.share, device,
                        queries / device * 1e3, device * 1e3 / queries, host.median, host.p99,
                        queries / host.median * 1e3, bytes, 100 * roof / device, static_cast<long>(lost));
                    std::fflush(stdout);
                    if (csv.is_open()) {
                        csv << arguments.text("name", "generated") << ',' << data.rows() << ',' << data.dimensions
                            << ",ivfadc " << kind << ' ' << name << ",lists=" << lists_made << " probes=" << probes
                            << ',' << batch << ',' << k << ',' << recall.share << ',' << device << ','
                            << queries / device * 1e3 << ',' << host.median << std::endl;
                    }
                }
            }
        }
    }
}

}  // namespace

int main(int count, char** values)
{
    return run_benchmark(count, values, run);
}
