// The method graph on the device, with the contract of src/methods/graph (SONG; CAGRA, arXiv 2308.15136, for the
// build).
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda::graph
{

// Makes a searcher on the given context, or on the one with the most free memory. Throws std::bad_alloc where no form
// fits, BadRequest for wrong arrays.
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context);
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays);

// Nearest rows, edges, seeds and calibration are computed on the device, the rest by the CPU's builder.
std::unique_ptr<Builder> make_builder(Context& context, const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp::cuda::graph
