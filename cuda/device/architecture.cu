// The architecture that the kernels are compiled for: a launch that tells whether a device runs them, and its number.
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

int kernel_architecture()
{
    thread_local int known_device = -1;
    thread_local int known = 0;
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    if (device != known_device) {
        cudaFuncAttributes attributes{};
        check(cudaFuncGetAttributes(&attributes, do_nothing), "asking for a kernel");
        known = attributes.ptxVersion;
        known_device = device;
    }
    return known;
}

}  // namespace pgwarp::cuda
