// The estimate of an index of this method.
#pragma once

#include "methods/build_estimate.h"

namespace pgwarp
{

BuildEstimate estimate_graph_build(const EstimateInput& input);

}  // namespace pgwarp
