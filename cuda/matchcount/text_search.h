// The index method matchcount on the device, for text: the answers of src/methods/matchcount/text_search.h.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// context must outlive the searcher.
std::unique_ptr<Searcher> make_text_searcher(Context& context, const IndexShape& shape, const ParameterList& options,
                                             std::span<const ArrayShape> arrays);

}  // namespace pgwarp::cuda
