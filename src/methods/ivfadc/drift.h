// Drift of an ivfadc index: the mean error of centroids and codes for new rows, beside that for the rows of the index.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that takes the arrays of protocol/drift.h and makes the array "drift" alone. Codes are compared where
// vectors are stored and codewords were trained on enough rows. Throws BadRequest for arrays that do not fit.
std::unique_ptr<Builder> make_ivfadc_drift(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
