// Exact search on the device, with the contract and the answers of src/methods/exact/exact.h. Array: vectors
// [rows][dimensions], f32 or f16.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"
#include "passes/exact_search.h"

namespace pgwarp::cuda
{

// context must outlive the searcher. write() and search() are thread-safe. Throws std::bad_alloc where the rows exceed
// the device's budget.
std::unique_ptr<Searcher> make_exact_searcher(Context& context, const IndexShape& shape,
                                              std::span<const ArrayShape> arrays);

// Counts of the queries that a searcher of make_exact_searcher() has answered since its load, by way of the answer.
// Throws std::bad_cast for other searchers.
ExactStatistics exact_statistics(const Searcher& searcher);

}  // namespace pgwarp::cuda
