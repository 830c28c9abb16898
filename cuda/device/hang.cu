#include "device/error.h"
#include "device/hang.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

__device__ std::uint64_t device_nanoseconds()
{
    std::uint64_t now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void spin(std::uint64_t nanoseconds)
{
    const std::uint64_t begun = device_nanoseconds();
    while (device_nanoseconds() - begun < nanoseconds) __nanosleep(1000000);
}

}  // namespace

void keep_busy(cudaStream_t stream, std::uint32_t seconds)
{
    spin<<<1, 1, 0, stream>>>(std::uint64_t{1000000000} * seconds);
    check_launch("a kernel that hangs");
}

void hang(Context& context, std::uint32_t seconds)
{
    const Context::Lease stream = context.lease(Priority::search);
    keep_busy(stream, seconds);
    stream.stream().synchronize();
}

}  // namespace pgwarp::cuda
