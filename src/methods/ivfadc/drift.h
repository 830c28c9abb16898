// Drift of an ivfadc index: the mean error with which centroids and codes stand for new rows, beside that of the rows
// that they were trained on.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that is given what protocol/drift.h says and makes the array "drift" alone. Codes are compared where
// vectors are kept and codewords were trained on enough rows. Throws BadRequest for arrays that don't fit.
std::unique_ptr<Builder> make_ivfadc_drift(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
