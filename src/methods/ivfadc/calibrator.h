// Measures the recall of an existing ivfadc index by its stored rows, streamed once.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A Recalibrator (methods/recall/recalibration.h) that takes the index's "centroids", "half_mean" and "half_scale",
// "list_of_row", "code_scale" where the options have them. The stored rows are "half", "vectors", or with codes = int8
// and refine = none "codes". It takes about a twentieth of a build's time, and 4 to 8 bytes a row. Throws BadRequest
// for options without rows to compare (codes = pq, refine = none).
std::unique_ptr<Builder> make_ivfadc_calibrator(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
