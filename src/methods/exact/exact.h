// Exact search over resident vectors (Faiss paper, section 5.1, on the CPU). Array: vectors [rows][dimensions], f32, or
// f16 of rows as they came where keeps_halves(), or u32 of rows of bits (methods/description.h). Sparse vectors are in
// the arrays of methods/rows/stored_lists.h.
#pragma once

#include <memory>
#include <span>

#include "methods/description.h"
#include "methods/method.h"

namespace pgwarp
{

std::unique_ptr<Builder> make_exact_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_exact_searcher(const IndexShape& shape, const ParameterList& options,
                                              std::span<const ArrayShape> arrays);
// For rows of bits.
std::unique_ptr<Searcher> make_bit_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays);
// For sparse vectors.
std::unique_ptr<Searcher> make_exact_sparse_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays);

}  // namespace pgwarp
