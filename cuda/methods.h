// The methods of this module: those of the registry that have a folder here, and k-means.
#pragma once

#include "methods/method.h"

namespace pgwarp::cuda
{

// Returns null where the CPU serves the method.
const MethodFactory* find_method(Method method);
// The method that misses no row: exact search.
const MethodFactory* complete_method();

#define PGWARP_DECLARE_METHOD(name, number, on_device) const MethodFactory& name##_method();
PGWARP_METHODS(PGWARP_DECLARE_METHOD)
#undef PGWARP_DECLARE_METHOD

}  // namespace pgwarp::cuda
