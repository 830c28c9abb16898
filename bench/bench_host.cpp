// Benchmarks measure the methods of the CPU.
#include "bench_device.h"

namespace pgwarp::bench
{

BenchDevice::BenchDevice() = default;
BenchDevice::~BenchDevice() = default;

const MethodFactory& method_of_device(Method method)
{
    return *find_method(method);
}

bool measures_gpu()
{
    return false;
}

}  // namespace pgwarp::bench
