// Encoding rows for an ivfadc index that exists, with its lists and quantizers as they are.
#pragma once

#include <cstdint>
#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that is given the arrays "centroids", "rotation" or "rotation_signs", "codebooks", "half_mean" and
// "half_scale", where the options have them, and makes for the new rows alone "list_of_row", "code_scale", "codes",
// "half" and "vectors"; before them "half_scale", whose largest error is that of all rows, old and new.
//
// "list_of_row" may be given for the new rows as well, no_list where their list is to be found.
std::unique_ptr<Builder> make_ivfadc_merge_builder(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
