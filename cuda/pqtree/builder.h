// The pqtree build on the device: the CPU's builder with its steps replaced.
#pragma once

#include <memory>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda::pqtree
{

// Throws BadRequest for invalid options. Where the device has no room for the rows, the CPU runs all steps.
//
// Rows are assigned to the nearest of all leaves of a part, by dense products, where the CPU descends: on a device that
// takes less time, and a search finds more in as many candidates. Lines are chosen by the CPU.
std::unique_ptr<Builder> make_builder(Context& context, const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp::cuda::pqtree
