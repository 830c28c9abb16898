// Selection behind calibration's truth: the nearest rows so far of all queries are kept while the rows pass by in
// pieces. Rows of a piece that are nearer than the last of these are collected; then the k nearest stay. Ties go to the
// lower rows.
#include "cluster/truth.h"

#include <algorithm>
#include <limits>
#include <span>

#include "cluster/row_products.h"
#include "device/error.h"
#include "device/wait.h"
#include "methods/recall/truth.h"
#include "rows/gather.h"
#include "select/block_rank.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 1024;
constexpr std::uint64_t most_list_bytes = std::uint64_t{1} << 30;
// Pieces are as long as the rows before them, within these bounds: then about k rows of a piece are collected.
constexpr std::size_t fewest_piece_rows = std::size_t{1} << 14;
constexpr std::size_t most_piece_rows = std::size_t{1} << 17;

// Keeps the k smallest keys of each list, a block a query, and lowers its bound. bounds: [queries], those of `lists`.
__global__ __launch_bounds__(threads) void keep_nearest_kernel(NearLists lists, unsigned k, float* bounds)
{
    __shared__ RankShared shared;
    SelectKey* keys = lists.keys + blockIdx.x * lists.room;
    const unsigned count = lists.counts[blockIdx.x];
    if (count < k) return;
    const RankBound ranked = find_rank<threads>(shared, k, k, [&](const auto& take) {
        for (unsigned i = threadIdx.x; i < count; i += threads) take(keys[i]);
    });
    keep_ranked<threads>(keys, count, ranked, k, &shared.kept);
    if (threadIdx.x != 0) return;
    lists.counts[blockIdx.x] = k;
    bounds[blockIdx.x] = key_bound(ranked.bound);
}

// Copies the first k keys of each list to `found` [queries][k], for l2 with the squared distance in the place of the
// score; a warp a key. Scores from products lose the differences of rows that are near each other and far from the
// origin. queries: [count][dimensions].
__global__ __launch_bounds__(threads) void finish_kernel(const float* queries, std::size_t count, const float* rows,
                                                         std::size_t dimensions, NearLists lists, unsigned k,
                                                         bool subtracts, SelectKey* found)
{
    const std::size_t place = (std::size_t{blockIdx.x} * threads + threadIdx.x) / 32;
    if (place >= count * k) return;
    SelectKey key = lists.keys[place / k * lists.room + place % k];
    if (subtracts) {
        const float* query = queries + place / k * dimensions;
        const float* row = rows + key_id(key) * dimensions;
        float sum = 0;
        for (std::size_t d = threadIdx.x % 32; d < dimensions; d += 32) {
            const float difference = query[d] - row[d];
            sum += difference * difference;
        }
        key = make_key(warp_sum(sum), key_id(key));
    }
    if (threadIdx.x % 32 == 0) found[place] = key;
}

std::vector<std::uint32_t> neighbours(std::span<SelectKey> found, std::uint32_t self)
{
    std::ranges::sort(found);
    std::vector<std::uint32_t> rows;
    rows.reserve(found.size());
    for (const SelectKey key : found) {
        const auto row = static_cast<std::uint32_t>(key);
        if (row != self && rows.size() < Calibration::ks[3]) rows.push_back(row);
    }
    return rows;
}

// The number of queries whose lists fit into a quarter of the memory left.
std::size_t queries_together(const MemoryPool& pool, std::size_t room)
{
    return std::clamp<std::size_t>(std::min(pool.unspent() / 4, most_list_bytes) / sizeof(SelectKey) / room, 1, 1024);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> calibration_truth(Context& context, Metric metric, const float* rows,
                                                          std::size_t count, std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, cudaStream_t stream)
{
    std::vector<std::vector<std::uint32_t>> truth(sample.size());
    if (sample.empty() || count == 0) return truth;
    const auto k = static_cast<unsigned>(std::min<std::size_t>(Calibration::ks[3] + 1, count));
    const std::size_t piece = std::min(most_piece_rows, count);
    const std::size_t room = k + piece;
    const std::size_t step = std::min(queries_together(context.pool(), room), sample.size());
    const bool subtracts = metric == Metric::l2;
    constexpr const char* name = "build workspace";
    MemoryPool& memory = context.pool();
    DeviceArray<std::uint32_t> numbers(memory, sample.size(), name, stream);
    DeviceArray<float> queries(memory, sample.size() * dimensions, name, stream);
    DeviceArray<float> norms(memory, subtracts ? piece : 0, name, stream);
    DeviceArray<float> sums(memory, near_sums(step, dimensions), name, stream);
    DeviceArray<SelectKey> keys(memory, step * room, name, stream);
    DeviceArray<unsigned> counts(memory, step, name, stream);
    DeviceArray<float> bounds(memory, step, name, stream);
    DeviceArray<SelectKey> found(memory, sample.size() * k, name, stream);
    const NearLists lists{keys.data(), room, counts.data(), bounds.data()};
    const std::vector<float> unbounded(step, std::numeric_limits<float>::infinity());
    send(numbers.data(), sample.data(), numbers.bytes(), stream, "copying a sample");
    rows::gather_rows(rows, dimensions, numbers.data(), sample.size(), queries.data(), stream);
    for (std::size_t query = 0; query < sample.size(); query += step) {
        const std::size_t some = std::min(step, sample.size() - query);
        const float* asked = queries.data() + query * dimensions;
        check(cudaMemsetAsync(counts.data(), 0, counts.bytes(), stream), "clearing counts");
        send(bounds.data(), unbounded.data(), bounds.bytes(), stream, "copying bounds");
        for (std::size_t first = 0; first < count;) {
            if (cancel != nullptr) cancel->check();
            const std::size_t here = std::min(std::clamp(first, fewest_piece_rows, most_piece_rows), count - first);
            const float* passing = rows + first * dimensions;
            if (subtracts) squared_norms(passing, here, dimensions, norms.data(), stream);
            collect_near(asked, some, passing, norms.data(), here, first, dimensions, lists, sums.data(), stream);
            keep_nearest_kernel<<<static_cast<unsigned>(some), threads, 0, stream>>>(lists, k, bounds.data());
            check_launch("keep neighbours");
            first += here;
        }
        const auto blocks = static_cast<unsigned>((some * k * 32 + threads - 1) / threads);
        finish_kernel<<<blocks, threads, 0, stream>>>(asked, some, rows, dimensions, lists, k, subtracts,
                                                      found.data() + query * k);
        check_launch("finish neighbours");
    }
    std::vector<SelectKey> host(found.size());
    read_back(host.data(), found.data(), found.bytes(), stream, "waiting for neighbours");
    pool.parallel_for(sample.size(), 4, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) truth[q] = neighbours(std::span(host).subspan(q * k, k), sample[q]);
    });
    return truth;
}

}  // namespace pgwarp::cuda
