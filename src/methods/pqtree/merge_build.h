// Merges: encoding rows for an existing pqtree index, with its tree and lines.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that takes the arrays of TreeArrays::quantizer_shapes(). It makes "half_scale", whose largest error is that
// of all rows, old and new, and for the new rows alone "codes", "half" and "vectors".
std::unique_ptr<Builder> make_pqtree_merge_builder(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
