// The method ivfadc on the device, with the contract of src/methods/ivfadc (Faiss paper, sections 2 and 5).
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda::ivfadc
{

// Makes a searcher on the given context, or on the one with the most free memory. Throws std::bad_alloc where no form
// fits, BadRequest for wrong arrays.
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context);
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays);

}  // namespace pgwarp::cuda::ivfadc
