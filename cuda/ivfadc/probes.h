// The step from coarse scores to work: the lists that each query probes, and the pairs of queries and lists sorted by
// list.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/scan.h"
#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// Shapes as in ProbeView.
struct ProbeArrays {
    std::uint32_t* list;
    std::uint32_t* slot;
    float* constant;
    std::uint32_t* slots;
    GroupArrays groups{};
};

// The factor from coarse scores to the constants of pairs; 0: all constants are 0.
float constant_unit(const MirrorView& mirror);

// Selects the `probes` nearest lists of each query by coarse scores [count][stride], nearest first where probes <=
// select_most and probes < lists, else unordered. constant = coarse score * constant_unit(). Constants are infinite for
// a query whose scores are out of range. Asynchronous. Throws CudaError.
void select_probes(const MirrorView& mirror, const float* coarse, std::size_t stride, std::uint32_t count,
                   std::uint32_t probes, const ProbeArrays& out, cudaStream_t stream);

// The work of two phases, sorted by list: the pairs of rank < first_ranks, and the others. Device memory.
struct OrderArrays {
    std::uint32_t* counts;      // [2 * lists]
    std::uint32_t* cursors;     // [2 * lists]
    std::uint32_t* item_begin;  // [2 * lists]
    std::uint32_t* totals;      // [3]: 0, items of phase one, items of both
    std::uint32_t* order;       // [pairs]
    ScanItem* items;            // [most_items()]
};

// An upper bound of the items of both phases.
std::uint32_t most_items(std::uint32_t pairs, std::uint32_t lists, std::uint32_t longest);

void order_pairs(const MirrorView& mirror, const ProbeView& probes, std::uint32_t count, std::uint32_t first_ranks,
                 const OrderArrays& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
