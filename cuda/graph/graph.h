// The method graph on the device, with the contract of src/methods/graph (SONG; CAGRA, arXiv 2308.15136, for the
// build).
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda::graph
{

// On a context of the module: the one named, or the one with the most room.
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context);
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays);

// The nearest rows and the edges are made on the device, the rest as the CPU's builder does it.
std::unique_ptr<Builder> make_builder(Context& context, const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp::cuda::graph
