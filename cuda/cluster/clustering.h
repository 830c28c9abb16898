// k-means as a build on the device, the counterpart of src/methods/clustering/clustering.h.
#pragma once

#include "methods/method.h"
#include "protocol/clustering.h"

namespace pgwarp::cuda
{

// The factory for the device module's find_method().
const MethodFactory* clustering_factory();

}  // namespace pgwarp::cuda
