#include "cluster/kmeans.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "cluster/update.h"
#include "device/error.h"
#include "device/event.h"
#include "device/idle_pool.h"
#include "device/wait.h"
#include "numeric/kmeans_rules.h"
#include "rows/gather.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t launch_elements = std::size_t{1} << 26;  // read by a launch: about 0.15 ms

// A warp hashes a row.
__global__ void hash_rows_kernel(const float* rows, std::size_t dimensions, const std::uint32_t* numbers,
                                 std::size_t count, std::uint64_t* hashes)
{
    const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (i >= count) return;
    const float* row = rows + numbers[i] * dimensions;
    unsigned long long hash = 0;
    for (std::size_t e = lane; e < dimensions; e += 32) hash += row_hash_term(__float_as_uint(row[e] + 0.0F), e);
    hash = warp_sum(hash);
    if (lane == 0) hashes[i] = hash;
}

// Waits for the device.
std::vector<std::uint64_t> hashes_of(Context& context, const float* rows, std::size_t dimensions,
                                     std::span<const std::uint32_t> numbers, cudaStream_t stream)
{
    DeviceArray<std::uint32_t> device_numbers(context.pool(), numbers.size(), "cluster workspace", stream);
    DeviceArray<std::uint64_t> device_hashes(context.pool(), numbers.size(), "cluster workspace", stream);
    send(device_numbers.data(), numbers.data(), numbers.size_bytes(), stream, "copying row numbers");
    const std::size_t step = std::clamp<std::size_t>(launch_elements / dimensions, 1, std::size_t{1} << 21);
    for (std::size_t first = 0; first < numbers.size(); first += step) {
        const std::size_t here = std::min(step, numbers.size() - first);
        hash_rows_kernel<<<static_cast<unsigned>((here + 7) / 8), 256, 0, stream>>>(
            rows, dimensions, device_numbers.data() + first, here, device_hashes.data() + first);
        check_launch("hash rows");
    }
    std::vector<std::uint64_t> hashes(numbers.size());
    read_back(hashes.data(), device_hashes.data(), device_hashes.bytes(), stream, "waiting for hashes");
    return hashes;
}

// The counters of an iteration, on the device; the host reads `settled`.
struct Outcome {
    std::uint32_t changed;
    std::uint32_t moved;
    std::uint32_t settled;
};

// Settles the training when few labels changed and no centroid was moved. Iterations that are launched already then
// leave the centroids alone.
__global__ void settle_kernel(Outcome* outcome, std::size_t count)
{
    if (std::uint64_t{outcome->changed} * 1000 < count && outcome->moved == 0) outcome->settled = 1;
    outcome->changed = 0;
}

// Two numbers in pinned memory, kept for the next training because allocating and freeing pinned memory stops the
// device.
class PinnedPair
{
public:
    PinnedPair() : memory_(idle().take())
    {
        if (memory_ == nullptr) memory_ = std::make_unique<PinnedArray<std::uint32_t>>(2);
    }
    ~PinnedPair() { idle().put_back(std::move(memory_)); }
    PinnedPair(const PinnedPair&) = delete;
    PinnedPair& operator=(const PinnedPair&) = delete;
    std::uint32_t* data() { return memory_->data(); }

private:
    // Never destroyed, because static objects may outlive the driver.
    static IdlePool<PinnedArray<std::uint32_t>>& idle()
    {
        static auto* pairs = new IdlePool<PinnedArray<std::uint32_t>>();
        return *pairs;
    }
    std::unique_ptr<PinnedArray<std::uint32_t>> memory_;
};

// One training run. The host stays one iteration ahead, so that the device never waits for the host.
class Trainer
{
public:
    Trainer(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
            const KMeansOptions& options, float* centroids, cudaStream_t stream, MatrixPath path)
        : options_(options),
          rows_(rows),
          count_(count),
          dimensions_(dimensions),
          centroids_(centroids),
          stream_(stream),
          assigner_(context, rows, count, dimensions, centroids, options.clusters, stream, path),
          update_(context, count, dimensions, options.clusters, stream),
          labels_(context.pool(), count, "cluster workspace", stream),
          outcome_(context.pool(), 1, "cluster workspace", stream)
    {
        check(cudaMemsetAsync(labels_.data(), 0xFF, labels_.bytes(), stream), "clearing labels");
        check(cudaMemsetAsync(outcome_.data(), 0, outcome_.bytes(), stream), "clearing an outcome");
    }

    // Waits for the stream, after an exception too, because the device still writes to pinned memory.
    ~Trainer() { drain(stream_); }

    std::size_t run()
    {
        std::size_t iteration = 0;
        for (; iteration < options_.iterations; ++iteration) {
            if (options_.progress) options_.progress(iteration, options_.iterations);
            if (options_.cancel != nullptr) options_.cancel->check();
            launch(iteration);
            if (iteration > 0 && settled(iteration - 1)) break;
        }
        if (options_.progress) options_.progress(options_.iterations, options_.iterations);
        return iteration;
    }

private:
    void launch(std::size_t iteration)
    {
        Outcome* outcome = outcome_.data();
        const bool last = iteration + 1 == options_.iterations;
        assigner_.assign(centroids_, labels_.data(), &outcome->changed, stream_);
        update_.group(labels_.data(), stream_);
        update_.average(rows_, assigner_.frame().view(), centroids_, &outcome->settled, stream_);
        update_.fill_small(rows_, options_.balanced && !last, options_.seed, centroids_, &outcome->settled,
                           &outcome->moved, stream_);
        if (options_.spherical)
            normalise_centroids(centroids_, options_.clusters, dimensions_, &outcome->settled, stream_);
        settle_kernel<<<1, 1, 0, stream_>>>(outcome, count_);
        check_launch("settle");
        check(cudaMemcpyAsync(settled_.data() + iteration % 2, &outcome->settled, sizeof(std::uint32_t),
                              cudaMemcpyDeviceToHost, stream_),
              "reading an outcome");
        done_[iteration % 2].record(stream_);
    }

    bool settled(std::size_t iteration)
    {
        done_[iteration % 2].wait("waiting for an iteration");
        return settled_.data()[iteration % 2] != 0;
    }

    const KMeansOptions& options_;
    const float* rows_;
    std::size_t count_;
    std::size_t dimensions_;
    float* centroids_;
    cudaStream_t stream_;
    TrainingAssigner assigner_;
    CentroidUpdate update_;
    DeviceArray<std::uint32_t> labels_;
    DeviceArray<Outcome> outcome_;
    PinnedPair settled_;
    Event done_[2];
};

}  // namespace

std::size_t train_kmeans(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
                         const KMeansOptions& options, float* centroids, cudaStream_t stream, MatrixPath path)
{
    if (options.clusters == 0) return 0;
    if (count == 0) {
        check(cudaMemsetAsync(centroids, 0, options.clusters * dimensions * sizeof(float), stream),
              "clearing centroids");
        return 0;
    }
    const std::vector<std::uint32_t> chosen =
        choose_first_rows(count, options.clusters, options.seed,
                          [&](auto numbers) { return hashes_of(context, rows, dimensions, numbers, stream); });
    DeviceArray<std::uint32_t> numbers(context.pool(), chosen.size(), "cluster workspace", stream);
    send(numbers.data(), chosen.data(), numbers.bytes(), stream, "copying row numbers");
    rows::gather_rows(rows, dimensions, numbers.data(), chosen.size(), centroids, stream);
    if (options.spherical) {
        DeviceArray<std::uint32_t> never(context.pool(), 1, "cluster workspace", stream);
        check(cudaMemsetAsync(never.data(), 0, never.bytes(), stream), "clearing a flag");
        normalise_centroids(centroids, options.clusters, dimensions, never.data(), stream);
    }
    if (count <= options.clusters) return 0;
    return Trainer(context, rows, count, dimensions, options, centroids, stream, path).run();
}

}  // namespace pgwarp::cuda
