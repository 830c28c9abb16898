// A searcher over the arrays of a builder, for calibration, without copies of the large ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "methods/graph/edges.h"
#include "methods/method.h"
#include "numeric/distance.h"

namespace pgwarp
{

// Edges, and one of vectors, halves and bits, as the options say. They outlive the searcher and do not change.
struct LentArrays {
    EdgeView edges;
    std::span<const float> vectors;
    std::span<const half_bits> halves;
    std::span<const std::uint32_t> bits;
};

// Reads a small array whole.
using ReadArray = std::function<void(const std::string& name, std::span<std::byte> out)>;

// Returns a loaded searcher. `arrays`: the shapes of all arrays; those before "neighbours" are read.
std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const ParameterList& options,
                                                   std::span<const ArrayShape> arrays, const ReadArray& read,
                                                   const LentArrays& lent, ThreadPool& pool);
// The same for a finished builder.
std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const Builder& builder,
                                                   const LentArrays& lent, ThreadPool& pool);

}  // namespace pgwarp
