// The index method matchcount on the device, for text: the answers of src/methods/matchcount/text_search.h.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// Of an index of text under edit distance. context must outlive the searcher. Grams are the CPU's alone: the option for
// them changes no answer.
std::unique_ptr<Searcher> make_text_searcher(Context& context, const IndexShape& shape,
                                             std::span<const ArrayShape> arrays);

}  // namespace pgwarp::cuda
