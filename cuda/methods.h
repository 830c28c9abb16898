// The methods that devices serve.
#pragma once

#include "methods/method.h"

namespace pgwarp::cuda
{

// Null where the CPU is to serve the method.
const MethodDescriptor* find_method(Method method);

}  // namespace pgwarp::cuda
