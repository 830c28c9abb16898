// The searcher of sparse vectors on a device, under inner product, cosine and L2.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "matchcount/sparse_session.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// Throws BadRequest for arrays that do not fit the shape, std::bad_alloc.
std::unique_ptr<Searcher> make_sparse_searcher(Context& context, const IndexShape& shape,
                                               std::span<const ArrayShape> arrays,
                                               const matchcount::SparseTuning& tuning = {},
                                               const SparseSearchTuning& search_tuning = {});

// For measurements: between searches.
void set_sparse_tuning(Searcher& searcher, const SparseSearchTuning& tuning);

// Counts of the searches of such a searcher so far.
SparseStatistics sparse_statistics(const Searcher& searcher);

}  // namespace pgwarp::cuda
