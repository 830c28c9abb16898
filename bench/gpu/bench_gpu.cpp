// Benchmarks measure the methods of the first GPU.
#include <memory>
#include <stdexcept>

#include "../bench_device.h"
#include "device/context.h"
#include "methods.h"

namespace pgwarp::bench
{

BenchDevice::BenchDevice()
{
    cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0));
}

BenchDevice::~BenchDevice()
{
    cuda::contexts().clear();
}

const MethodFactory& method_of_device(Method method)
{
    const MethodFactory* const found = cuda::find_method(method);
    if (found == nullptr) throw std::runtime_error("the GPU does not serve this method");
    return *found;
}

bool measures_gpu()
{
    return true;
}

}  // namespace pgwarp::bench
