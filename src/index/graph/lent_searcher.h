// A searcher over what a builder holds, for its calibration: large arrays are not copied.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "index/graph/edges.h"
#include "index/index.h"
#include "numeric/distance.h"

namespace pgwarp
{

// One of vectors, halves and bits, as the options say. What is lent stays, unchanged, as long as the searcher.
struct LentArrays {
    EdgeView edges;
    std::span<const float> vectors;
    std::span<const half_bits> halves;
    std::span<const std::uint32_t> bits;
};

// Ready to search; the small arrays are read from the builder.
std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const Builder& builder,
                                                   const LentArrays& lent, ThreadPool& pool);

}  // namespace pgwarp
