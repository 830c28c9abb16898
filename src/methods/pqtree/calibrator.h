// Measures the recall of an existing pqtree index by its stored rows, streamed once.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A Recalibrator (methods/recall/recalibration.h) that takes the arrays of TreeArrays::quantizer_shapes() and "codes".
// Throws BadRequest for options without vectors (refine = none).
std::unique_ptr<Builder> make_pqtree_calibrator(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
