// k-means as a build on the device: what src/methods/clustering/clustering.h is on the CPU.
#pragma once

#include "methods/method.h"
#include "protocol/clustering.h"

namespace pgwarp::cuda::clustering
{

// Builder of the device; it has no searches.
MethodDescriptor method();

}  // namespace pgwarp::cuda::clustering
