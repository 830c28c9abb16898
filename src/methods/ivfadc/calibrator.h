// Measures the recall of an existing ivfadc index by its stored rows, streamed once.
#pragma once

#include <memory>

#include "methods/method.h"
#include "protocol/calibration.h"

namespace pgwarp
{

// A builder that takes the index's "centroids", "half_mean" and "half_scale", "list_of_row", "code_scale" where the
// options have them, the arrays of protocol/calibration.h, and then the stored rows: "half", "vectors", or with codes =
// int8 and refine = none "codes". Pieces of that array come in order, are compared with the sample as they come, and
// are not kept. run() takes no rows and makes the curve as a build does, from the lists of the true neighbours. It
// takes about a twentieth of a build's time, and 4 to 8 bytes a row.
//
// Throws BadRequest for options without rows to compare (codes = pq, refine = none), and for arrays that do not fit.
std::unique_ptr<Builder> make_ivfadc_calibrator(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
