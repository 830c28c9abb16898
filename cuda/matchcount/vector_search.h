// The index method matchcount on the device, for vectors: the answers of the CPU's searcher
// (src/methods/matchcount/vector_searcher.cpp), with the same candidates.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// context must outlive the searcher.
std::unique_ptr<Searcher> make_vector_searcher(Context& context, const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays);

}  // namespace pgwarp::cuda
