// From coarse scores to work: the lists that each query probes, and the pairs of queries and lists sorted by list.
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

// What coarse scores are multiplied with to be constants; 0 = constants are 0.
float constant_unit(const MirrorView& mirror);

// The `probes` nearest lists of each query by coarse scores [count][stride], nearest first where probes <= select_most,
// else in any order. constant = coarse score / unit^(2 for l2, 1 else) where rows are codes, else 0; unit = the scale
// of the centroids' halves. Constants are infinite for a query whose scores are out of range.
void select_probes(const MirrorView& mirror, const float* coarse, std::size_t stride, std::uint32_t count,
                   std::uint32_t probes, const ProbeArrays& out, cudaStream_t stream);

// Sorted work of two phases: pairs of rank < first_ranks, and the others. Device memory, shapes beside the names.
struct OrderArrays {
    std::uint32_t* counts;      // [2 * lists]
    std::uint32_t* cursors;     // [2 * lists]
    std::uint32_t* item_begin;  // [2 * lists]
    std::uint32_t* totals;      // [3]: 0, items of phase one, items of both
    std::uint32_t* order;       // [pairs]
    ScanItem* items;            // [most_items()]
};

// A bound on the items of both phases.
std::uint32_t most_items(std::uint32_t pairs, std::uint32_t lists, std::uint32_t longest);

void order_pairs(const MirrorView& mirror, const ProbeView& probes, std::uint32_t count, std::uint32_t first_ranks,
                 const OrderArrays& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
