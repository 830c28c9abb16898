// Merges: encoding rows for an existing ivfadc index, with its lists and quantizers.
#pragma once

#include <cstdint>
#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that takes the arrays "centroids", "rotation" or "rotation_signs", "codebooks", "half_mean" and
// "half_scale", where the options have them. It makes "half_scale", whose largest error is that of all rows, old and
// new, and for the new rows alone "list_of_row", "code_scale", "codes", "half" and "vectors".
//
// It may also take "list_of_row" of the new rows, with no_list for a list that it is to find.
std::unique_ptr<Builder> make_ivfadc_merge_builder(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
