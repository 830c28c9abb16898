// Measuring the recall of an ivfadc index anew, without building it: by what it keeps of its rows, streamed once.
#pragma once

#include <memory>

#include "methods/method.h"
#include "protocol/calibration.h"

namespace pgwarp
{

// A builder that is given the index's "centroids", "half_mean" and "half_scale", "list_of_row", "code_scale" where the
// options have them, the arrays of protocol/calibration.h, and after these what rows are kept as: "half", "vectors", or
// with codes = int8 and refine = none "codes". Pieces of that array come in order and are compared with the sample as
// they come; none is kept. run(), of no rows, makes the curve as a build does, of the lists that hold the true
// neighbours. It takes about a twentieth of a build's time, and 4 to 8 bytes a row.
//
// Throws BadRequest for options that keep nothing to compare (codes = pq, refine = none), and for arrays that don't
// fit.
std::unique_ptr<Builder> make_ivfadc_calibrator(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
