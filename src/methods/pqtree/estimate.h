// The estimate of an index of this method.
#pragma once

#include "methods/build_estimate.h"

namespace pgwarp
{

BuildEstimate estimate_pqtree_build(const EstimateInput& input);

}  // namespace pgwarp
