// The index method matchcount on the device, for sets and attributes by the number of common parts: the answers of the
// CPU's searcher (src/methods/matchcount/part_search.h).
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// Of an index under the overlap metric. context must outlive the searcher.
std::unique_ptr<Searcher> make_part_searcher(Context& context, const IndexShape& shape,
                                             std::span<const ArrayShape> arrays);

}  // namespace pgwarp::cuda
