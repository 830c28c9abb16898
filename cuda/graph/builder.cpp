// The graph build on the device: the CPU's builder with its long steps replaced.
#include <algorithm>
#include <new>
#include <unordered_set>
#include <utility>

#include "cluster/kmeans.h"
#include "cluster/staging.h"
#include "cluster/truth.h"
#include "device/error.h"
#include "device/wait.h"
#include "graph/edges.h"
#include "graph/entry.h"
#include "graph/graph.h"
#include "graph/grouped.h"
#include "graph/nearest.h"
#include "methods/graph/build_steps.h"
#include "numeric/sample.h"
#include "passes/exact_search.h"
#include "rows/gather.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr std::size_t fewest_rows = fewest_compared;                  // the CPU builds smaller graphs
constexpr std::size_t most_compared_with_all = std::size_t{4} << 20;  // larger sets of rows are grouped
constexpr std::uint64_t seed = 0x67726170;
constexpr std::size_t rows_per_seed = 40;  // rows of the k-means sample for each seed
constexpr std::size_t seed_iterations = 4;
constexpr std::size_t queries_of_step = 4096;

// The data in device memory while a build runs.
struct Resident {
    explicit Resident(Context& context)
        : build(context), lease(context.lease(Priority::build)), staging(static_cast<cudaStream_t>(lease))
    {
    }
    cudaStream_t stream() const { return lease; }

    Context::Build build;
    Context::Lease lease;
    Staging staging;
    DeviceArray<float> rows;
    const float* host_rows = nullptr;  // the host's copy of `rows`
};

class DeviceSteps : public GraphBuildSteps
{
public:
    explicit DeviceSteps(Context& context) : context_(context) {}

    bool draw(const GraphSpace& space, const GraphOptions& options, RowBitmap left_out, const BuildProgress& progress,
              ThreadPool& pool, std::vector<std::uint32_t>& seeds, GraphEdges& edges) override;
    std::optional<std::vector<std::vector<std::uint32_t>>> truth(Metric metric, std::span<const float> rows,
                                                                 std::size_t dimensions,
                                                                 const std::vector<std::uint32_t>& sample,
                                                                 ThreadPool& pool, const CancelToken* cancel) override;
    std::vector<std::uint32_t> reach(const GraphEdges& edges, std::span<const std::uint32_t> from) override;
    std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                            std::span<const ArrayShape> arrays) override;

private:
    template <class T>
    DeviceArray<T> array(std::size_t count) const
    {
        return DeviceArray<T>(context_.pool(), count, "graph build", resident_->stream());
    }
    const float* upload(std::span<const float> rows, ThreadPool& pool, const CancelToken* cancel);
    std::vector<std::uint32_t> choose_seeds(const ExactRows& rows, const DeadRows& left_out,
                                            const BuildProgress& progress) const;

    Context& context_;
    std::unique_ptr<Resident> resident_;
};

// Uploads each set of rows once.
const float* DeviceSteps::upload(std::span<const float> rows, ThreadPool& pool, const CancelToken* cancel)
{
    if (resident_ == nullptr) {
        check(cudaSetDevice(context_.device()), "choosing the device");
        resident_ = std::make_unique<Resident>(context_);
    }
    if (resident_->host_rows != rows.data()) {
        resident_->host_rows = nullptr;
        resident_->rows = {};
        resident_->rows = array<float>(rows.size());
        resident_->staging.upload(rows.data(), rows.size_bytes(), resident_->rows.data(), pool, cancel);
        resident_->host_rows = rows.data();
    }
    return resident_->rows.data();
}

// Chooses the rows nearest to the centres of clusters, with one cluster for each seed: sparse clusters get a seed
// however dense others are.
std::vector<std::uint32_t> DeviceSteps::choose_seeds(const ExactRows& rows, const DeadRows& left_out,
                                                     const BuildProgress& progress) const
{
    const cudaStream_t stream = resident_->stream();
    const std::size_t dimensions = rows.dimensions;
    const std::size_t wanted = seed_count(rows.rows);
    const std::vector<std::uint32_t> chosen = sample_rows(rows.rows, wanted * rows_per_seed, seed + 1);
    DeviceArray<std::uint32_t> numbers = array<std::uint32_t>(chosen.size());
    send(numbers.data(), chosen.data(), numbers.bytes(), stream, "sample");
    DeviceArray<float> sample = array<float>(chosen.size() * dimensions);
    rows::gather_rows(rows.vectors, dimensions, numbers.data(), chosen.size(), sample.data(), stream);
    KMeansOptions training;
    training.clusters = wanted;
    training.iterations = seed_iterations;
    training.seed = seed;
    training.cancel = progress.cancel;
    DeviceArray<float> centres = array<float>(wanted * dimensions);
    train_kmeans(context_, sample.data(), chosen.size(), dimensions, training, centres.data(), stream);

    DeviceArray<double> values = array<double>(wanted);
    DeviceArray<std::uint32_t> nearest = array<std::uint32_t>(2 * wanted);
    ExactStatistics statistics;
    for (std::size_t first = 0; first < wanted; first += queries_of_step) {
        const auto count = static_cast<std::uint32_t>(std::min(queries_of_step, wanted - first));
        const ExactAnswer answer{values.data() + first, nearest.data() + first, nearest.data() + wanted + first, 1};
        search_exactly(context_, rows, centres.data() + first * dimensions, count, left_out, answer, statistics,
                       progress.cancel, stream);
    }
    std::vector<std::uint32_t> found(2 * wanted);
    read_back(found.data(), nearest.data(), nearest.bytes(), stream, "choosing seeds");
    std::vector<std::uint32_t> seeds;
    std::unordered_set<std::uint32_t> seen;
    for (std::size_t i = 0; i < wanted; ++i) {
        if (found[wanted + i] == 1 && seen.insert(found[i]).second) seeds.push_back(found[i]);
    }
    return seeds;
}

bool DeviceSteps::draw(const GraphSpace& space, const GraphOptions& options, RowBitmap left_out,
                       const BuildProgress& progress, ThreadPool& pool, std::vector<std::uint32_t>& seeds,
                       GraphEdges& edges)
{
    const std::size_t count = space.count();
    if (count < fewest_rows || count >= most_rows) return false;
    try {
        const auto rows = static_cast<std::uint32_t>(count);
        const auto degree = static_cast<std::uint32_t>(options.degree);
        const auto width = static_cast<std::uint32_t>(options.build_degree);
        progress.report("copying rows", 0, count);
        const float* vectors = upload(space.rows(), pool, progress.cancel);
        const cudaStream_t stream = resident_->stream();
        DeviceArray<std::uint32_t> nearest = array<std::uint32_t>(count * width);
        {
            const ExactRows exact = make_exact_rows(context_.pool(), space.metric(), vectors, rows,
                                                    static_cast<std::uint32_t>(space.dimensions()), stream);
            DeviceArray<std::uint64_t> dead;
            DeviceArray<float> penalties;
            DeadRows without;
            if (!left_out.empty()) {
                dead = array<std::uint64_t>(left_out.size());
                send(dead.data(), left_out.data(), dead.bytes(), stream, "rows left out");
                penalties = array<float>(exact.scored.padded_positions);
                mark_dead(exact.scored, dead.data(), penalties.data(), stream);
                without = {dead.data(), penalties.data()};
            }
            progress.report("choosing seeds", 0, 1);
            seeds = choose_seeds(exact, without, progress);
            if (count <= most_compared_with_all) {
                NearestJob job;
                job.rows = &exact;
                job.left_out = dead.data();
                job.width = width;
                job.out = nearest.data();
                job.cancel = progress.cancel;
                job.progress = [&](std::uint64_t done) { progress.report("comparing rows", done, count); };
                nearest_rows(context_, job, stream);
            }
        }
        if (count > most_compared_with_all) {
            GroupedJob job;
            job.metric = space.metric();
            job.vectors = vectors;
            job.rows = rows;
            job.dimensions = static_cast<std::uint32_t>(space.dimensions());
            job.left_out = left_out;
            job.width = width;
            job.out = nearest.data();
            job.cancel = progress.cancel;
            job.progress = [&](std::uint64_t done) { progress.report("comparing rows", done, count); };
            grouped_nearest_rows(context_, job, stream);
        }
        progress.report("pruning edges", 0, 1);
        DeviceArray<std::uint32_t> drawn = array<std::uint32_t>(count * degree);
        draw_edges(context_, nearest.data(), rows, width, degree, drawn.data(), stream);
        edges.degree = degree;
        edges.neighbours.resize(count * degree);
        resident_->staging.download(drawn.data(), drawn.bytes(), edges.neighbours.data(), pool, progress.cancel);
        return !seeds.empty();
    } catch (const std::bad_alloc&) {
        seeds.clear();
        resident_.reset();
        return false;
    }
}

std::optional<std::vector<std::vector<std::uint32_t>>> DeviceSteps::truth(Metric metric, std::span<const float> rows,
                                                                          std::size_t dimensions,
                                                                          const std::vector<std::uint32_t>& sample,
                                                                          ThreadPool& pool, const CancelToken* cancel)
{
    // calibration_truth() does not support l1.
    if (metric == Metric::l1 || resident_ == nullptr) return std::nullopt;
    try {
        const float* vectors = upload(rows, pool, cancel);
        return cuda::calibration_truth(context_, metric, vectors, rows.size() / dimensions, dimensions, sample, pool,
                                       cancel, resident_->stream());
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

std::vector<std::uint32_t> DeviceSteps::reach(const GraphEdges& edges, std::span<const std::uint32_t> from)
{
    if (edges.count() < fewest_rows) return {};
    try {
        ThreadPool one_thread(1);
        check(cudaSetDevice(context_.device()), "choosing the device");
        const Context::Build build(context_);
        const Context::Lease lease = context_.lease(Priority::build);
        DeviceArray<std::uint32_t> neighbours(context_.pool(), edges.neighbours.size(), "graph build", lease);
        {
            Staging staging(lease);
            staging.upload(edges.neighbours.data(), neighbours.bytes(), neighbours.data(), one_thread, nullptr);
        }
        return reach_rows(context_, neighbours.data(), static_cast<std::uint32_t>(edges.count()),
                          static_cast<std::uint32_t>(edges.degree), from, lease);
    } catch (const std::bad_alloc&) {
        return {};
    }
}

// Called for the calibration. The build's device memory is not needed any more.
std::unique_ptr<Searcher> DeviceSteps::make_searcher(const IndexShape& shape, const ParameterList& options,
                                                     std::span<const ArrayShape> arrays)
{
    const bool on_device = resident_ != nullptr;
    resident_.reset();
    if (!on_device) return nullptr;
    try {
        return graph::make_searcher(shape, options, arrays, context_);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

}  // namespace

std::unique_ptr<Builder> make_builder(Context& context, const IndexShape& shape, const ParameterList& options)
{
    return make_graph_builder(shape, options, std::make_unique<DeviceSteps>(context));
}

}  // namespace pgwarp::cuda::graph
