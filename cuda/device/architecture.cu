// A launch that tells whether the kernels are compiled for a device.
#include "device/context.h"
#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

__global__ void do_nothing() {}

}  // namespace

void check_architecture(Context& context)
{
    const auto stream = context.lease(Priority::search);
    do_nothing<<<1, 1, 0, stream>>>();
    check_launch("the kernels are not compiled for this device");
    stream.stream().synchronize();
}

}  // namespace pgwarp::cuda
