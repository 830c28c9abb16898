// The ivfadc build on the device: the CPU's builder with its steps replaced.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

using SearcherFactory = std::unique_ptr<Searcher> (*)(const IndexShape& shape, const ParameterList& options,
                                                      std::span<const ArrayShape> arrays);

// Throws BadRequest for invalid options. Where the device has no room for the rows and the workspace, the CPU runs all
// steps. make_searcher: makes the searcher that calibrates indexes without refinement (refine = none) by real searches.
std::unique_ptr<Builder> make_ivfadc_builder(Context& context, const IndexShape& shape, const ParameterList& options,
                                             SearcherFactory make_searcher);

}  // namespace pgwarp::cuda
