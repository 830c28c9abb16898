// A searcher over what a builder holds, for its calibration: large arrays are not copied.
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

// One of vectors, halves and bits, as the options say. What is lent stays, unchanged, as long as the searcher.
struct LentArrays {
    EdgeView edges;
    std::span<const float> vectors;
    std::span<const half_bits> halves;
    std::span<const std::uint32_t> bits;
};

// Reads a small array whole.
using ReadArray = std::function<void(const std::string& name, std::span<std::byte> out)>;

// Ready to search. `arrays` has all rows; those before "neighbours" are read.
std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const ParameterList& options,
                                                   std::span<const ArrayShape> arrays, const ReadArray& read,
                                                   const LentArrays& lent, ThreadPool& pool);
// Over what a builder has made.
std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const Builder& builder,
                                                   const LentArrays& lent, ThreadPool& pool);

}  // namespace pgwarp
