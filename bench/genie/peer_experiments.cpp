// The approximation ratio, recall and speed of matchcount beside the other methods for vectors, in the engine.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "../described.h"
#include "experiments.h"
#include "methods/method.h"
#include "methods/recall/searches.h"

namespace pgwarp::bench::genie
{

namespace
{

constexpr std::uint32_t k = 10;
constexpr std::size_t most_efforts = 12;

struct PeerIndex {
    std::unique_ptr<Searcher> searcher;
    std::vector<std::int64_t> efforts;
    double build_s = 0;
};

std::vector<float> floats(std::span<const std::uint8_t> bytes)
{
    return {bytes.begin(), bytes.end()};
}

// By the default options.
PeerIndex build(const MethodDescription& method, const ByteVectors& vectors, ThreadPool& pool)
{
    RowBuffer rows(vectors.dimensions);
    std::vector<Tid> tids(vectors.rows());
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    rows.append(tids, floats(vectors.base));
    rows.sort_by_tid(&pool);
    IndexShape shape{};
    shape.method = method.method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = static_cast<std::uint32_t>(vectors.dimensions);
    const MethodFactory* factory = find_method(method.method);
    const auto builder = factory->make_builder(shape, {});
    PeerIndex index;
    const auto begin = std::chrono::steady_clock::now();
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    index.build_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::vector<ArrayShape> arrays = builder->arrays();
    index.searcher = factory->make_searcher(shape, builder->effective_options(), arrays);
    feed_searcher(*builder, *index.searcher, pool);
    const Calibration calibration = builder->calibration();
    const std::size_t step = calibration.count / most_efforts + 1;
    for (std::size_t i = 0; i < calibration.count; i += step) index.efforts.push_back(calibration.points[i].effort);
    if (index.efforts.empty()) index.efforts.push_back(0);
    return index;
}

struct Found {
    std::vector<Nearest> nearest;  // ranked by their distances, as the backend does
    double fastest_s = std::numeric_limits<double>::infinity();
};

// One query at a time; the fastest of several rounds counts, so that other work of the machine does not.
Found search(const PeerIndex& index, const ByteVectors& vectors, std::int64_t effort, std::size_t rounds)
{
    const std::vector<float> queries = floats(vectors.queries);
    SearchBatch batch;
    batch.count = 1;
    batch.k = index.searcher->result_kind() == ResultKind::exact ? k : 64;
    batch.effort = effort;
    Found found;
    std::vector<std::vector<RowResult>> results(1);
    for (std::size_t round = 0; round < rounds; ++round) {
        double seconds = 0;
        for (std::size_t query = 0; query < vectors.asked(); ++query) {
            batch.queries = std::span(queries).subspan(query * vectors.dimensions, vectors.dimensions);
            const auto begin = std::chrono::steady_clock::now();
            index.searcher->search(batch, results, caller_alone());
            seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            if (round > 0) continue;
            Nearest& nearest = found.nearest.emplace_back();
            for (const RowResult& result : results[0])
                nearest.emplace_back(byte_distance(false, vectors.row(result.row).data(), vectors.query(query).data(),
                                                   vectors.dimensions),
                                     result.row);
            std::sort(nearest.begin(), nearest.end());
            nearest.resize(std::min<std::size_t>(nearest.size(), k));
        }
        found.fastest_s = std::min(found.fastest_s, seconds);
    }
    return found;
}

}  // namespace

void run_peers(const Plan& plan, ThreadPool& pool)
{
    if (!plan.sources.has("sift")) {
        std::printf("skipped: recall beside other methods, base.u8 and query.bvecs or query.u8 are not there\n");
        return;
    }
    std::printf("recall beside other methods\n");
    ByteVectors vectors = plan.sources.vectors("sift", plan.sources.quick() ? 20 : 200);
    // A graph of a million rows takes minutes.
    const std::size_t rows = plan.rows != 0 ? plan.rows : plan.sources.quick() ? 1000 : 100000;
    vectors.base.resize(std::min(rows, vectors.rows()) * vectors.dimensions);
    const std::vector<Nearest> truth = nearest_by_brute_force(false, vectors, vectors.asked(), k, pool);
    Table table(plan.output, "recall",
                "device method data rows queries k effort build_s recall_at_k ratio query_ms queries_per_second");
    for (const MethodDescription* method : vector_methods()) {
        const PeerIndex index = build(*method, vectors, pool);
        for (const std::int64_t effort : index.efforts) {
            const Found found = search(index, vectors, effort, plan.repeat);
            double recall = 0;
            double ratio = 0;
            for (std::size_t query = 0; query < truth.size(); ++query) {
                recall += recall_of(found.nearest[query], truth[query], k);
                ratio += approximation_ratio(found.nearest[query], truth[query], k, false);
            }
            const auto queries = static_cast<double>(truth.size());
            table.row("cpu", method->name, "sift", vectors.rows(), truth.size(), k, std::to_string(effort),
                      index.build_s, recall / queries, ratio / queries, 1e3 * found.fastest_s / queries,
                      queries / found.fastest_s);
        }
    }
}

}  // namespace pgwarp::bench::genie
