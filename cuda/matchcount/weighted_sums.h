// Weighted match counts on the device: scores of all rows in fixed point, with the sums of
// pgwarp::matchcount::fixed_point_scores(). A block adds the products of one query in one part of the rows, in shared
// memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

#include "device/context.h"
#include "methods/matchcount/weighted_count.h"

namespace pgwarp::cuda::matchcount
{

// The lists in device memory, as kernels read them. List i has the postings [starts[i], starts[i + 1]), ascending by
// row.
struct WeightedListsView {
    std::uint32_t rows = 0;
    const std::uint64_t* starts = nullptr;
    const std::uint32_t* posting_rows = nullptr;
    const float* weights = nullptr;
};

class DeviceWeightedLists
{
public:
    // Waits for the copies. Throws std::bad_alloc. The stream must outlive the lists.
    DeviceWeightedLists(const pgwarp::matchcount::WeightedLists& lists, MemoryPool& pool, const Context::Lease& stream);

    WeightedListsView view() const;
    std::uint64_t memory_bytes() const { return starts_.bytes() + rows_.bytes() + weights_.bytes(); }

private:
    std::uint32_t row_count_;
    DeviceArray<std::uint64_t> starts_;
    DeviceArray<std::uint32_t> rows_;
    DeviceArray<float> weights_;
};

struct ScaledItem {
    double weight;  // times 2^exponent
    std::uint32_t list;
};

// Returns the items that add to sums, in host memory.
std::vector<ScaledItem> scaled_items(const pgwarp::matchcount::WeightedLists& lists,
                                     std::span<const pgwarp::matchcount::WeightedItem> items, int exponent);

// In device memory.
struct WeightedQueries {
    std::uint32_t count = 0;
    const std::uint32_t* item_offsets = nullptr;  // [count + 1]
    const ScaledItem* items = nullptr;
};

// sums[query][row], device memory. Asynchronous. Throws CudaError.
void fixed_point_sums(const WeightedListsView& lists, const WeightedQueries& queries, std::int32_t* sums,
                      const Context& context, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
