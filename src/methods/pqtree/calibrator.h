// Measures the recall of an existing pqtree index by its stored rows, streamed once.
#pragma once

#include <memory>

#include "methods/method.h"
#include "protocol/calibration.h"

namespace pgwarp
{

// A builder that takes the arrays of TreeArrays::quantizer_shapes(), "codes", the arrays of protocol/calibration.h, and
// then the stored rows: "half" or "vectors". Pieces of that array come in order, are compared with the sample as they
// come, and are not kept. run() takes no rows and makes the curve as a build does.
//
// Throws BadRequest for options without vectors (refine = none), and for arrays that do not fit.
std::unique_ptr<Builder> make_pqtree_calibrator(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
