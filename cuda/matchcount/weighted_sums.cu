#include "matchcount/weighted_sums.h"

#include "device/error.h"
#include "device/shared_memory.h"
#include "device/wait.h"
#include "matchcount/counter_parts.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr char purpose[] = "matchcount weights";
constexpr int threads = 512;
constexpr std::uint32_t fewest_rows = 4096;  // of a part

extern __shared__ std::int32_t part_sums[];

// Returns the first posting of [begin, end) whose row is at least `row`.
__device__ std::uint64_t first_posting(const std::uint32_t* rows, std::uint64_t begin, std::uint64_t end,
                                       std::uint32_t row)
{
    while (begin < end) {
        const std::uint64_t middle = begin + (end - begin) / 2;
        if (rows[middle] < row)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// A warp takes an item at a time.
__global__ __launch_bounds__(threads) void sums_kernel(WeightedListsView lists, WeightedQueries queries,
                                                       CounterParts parts, PartLaunch launch, std::int32_t* sums)
{
    const std::uint32_t query = launch.first_query + blockIdx.x;
    const std::uint32_t first = (launch.first_part + blockIdx.y) * parts.rows;
    const std::uint32_t rows = min(parts.rows, lists.rows - first);
    for (std::uint32_t i = threadIdx.x; i < rows; i += threads) part_sums[i] = 0;
    __syncthreads();
    for (std::uint32_t i = queries.item_offsets[query] + threadIdx.x / 32; i < queries.item_offsets[query + 1];
         i += threads / 32) {
        const ScaledItem item = queries.items[i];
        const std::uint64_t end = lists.starts[item.list + 1];
        std::uint64_t at = first_posting(lists.posting_rows, lists.starts[item.list], end, first) + threadIdx.x % 32;
        for (; at < end && lists.posting_rows[at] - first < rows; at += 32)
            atomicAdd(part_sums + (lists.posting_rows[at] - first),
                      __double2int_rn(__dmul_rn(item.weight, static_cast<double>(lists.weights[at]))));
    }
    __syncthreads();
    std::int32_t* const out = sums + std::size_t{query} * lists.rows + first;
    for (std::uint32_t i = threadIdx.x; i < rows; i += threads) out[i] = part_sums[i];
}

}  // namespace

DeviceWeightedLists::DeviceWeightedLists(const pgwarp::matchcount::WeightedLists& lists, MemoryPool& pool,
                                         const Context::Lease& stream)
    : row_count_(lists.keywords().rows()),
      starts_(pool, lists.keywords().list_count() + 1, purpose, stream),
      rows_(pool, lists.keywords().postings(), purpose, stream),
      weights_(pool, lists.keywords().postings(), purpose, stream)
{
    const pgwarp::matchcount::KeywordLists& keywords = lists.keywords();
    std::vector<std::uint64_t> starts(starts_.size());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) starts[i] = keywords.start(i);
    starts.back() = keywords.postings();
    const std::span<const std::uint32_t> rows =
        keywords.lists(pgwarp::matchcount::KeywordLists::Numbers{0, keywords.list_count()});
    send(starts_.data(), starts.data(), starts_.bytes(), stream, "loading weights");
    send(rows_.data(), rows.data(), rows_.bytes(), stream, "loading weights");
    send(weights_.data(), lists.weights().data(), weights_.bytes(), stream, "loading weights");
    stream.stream().synchronize();
}

WeightedListsView DeviceWeightedLists::view() const
{
    return {row_count_, starts_.data(), rows_.data(), weights_.data()};
}

std::vector<ScaledItem> scaled_items(const pgwarp::matchcount::WeightedLists& lists,
                                     std::span<const pgwarp::matchcount::WeightedItem> items, int exponent)
{
    std::vector<ScaledItem> scaled;
    for (const pgwarp::matchcount::WeightedItem& item : items) {
        std::size_t number = 0;
        double weight = 0;
        if (scale_item(lists, item, exponent, &number, &weight))
            scaled.push_back({weight, static_cast<std::uint32_t>(number)});
    }
    return scaled;
}

void fixed_point_sums(const WeightedListsView& lists, const WeightedQueries& queries, std::int32_t* sums,
                      const Context& context, cudaStream_t stream)
{
    if (queries.count == 0 || lists.rows == 0) return;
    const CounterParts parts = counter_parts(lists.rows, sizeof(std::int32_t), 0, queries.count, fewest_rows, context);
    allow_shared_memory(sums_kernel, SharedMemoryUse::before_caches);
    for_each_launch(parts, queries.count, usual_limits(context), [&](const PartLaunch& launch) {
        sums_kernel<<<dim3(launch.queries, launch.parts), threads, parts.rows * sizeof(std::int32_t), stream>>>(
            lists, queries, parts, launch, sums);
        check_launch("sums of weights");
    });
}

}  // namespace pgwarp::cuda::matchcount
