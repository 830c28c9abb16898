// Exact search on the device: what src/methods/exact/exact.h is on the CPU, with the same answers. Array: vectors
// [rows][dimensions], f32 or f16.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"
#include "passes/exact_search.h"

namespace pgwarp::cuda
{

// context must outlive the searcher. write() and search() are thread-safe. Throws std::bad_alloc when the rows do not
// fit the device's budget.
std::unique_ptr<Searcher> make_exact_searcher(Context& context, const IndexShape& shape,
                                              std::span<const ArrayShape> arrays);

// How a searcher made here has answered since it was loaded.
ExactStatistics exact_statistics(const Searcher& searcher);

}  // namespace pgwarp::cuda
