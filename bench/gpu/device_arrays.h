// Arrays of the benchmarks on their way to the device and back.
#pragma once

#include <span>
#include <vector>

#include "device/context.h"
#include "device/memory.h"
#include "device/wait.h"

namespace pgwarp::bench
{

template <class T>
cuda::DeviceArray<T> sent(std::span<const T> values, cuda::Context& context, cudaStream_t stream)
{
    cuda::DeviceArray<T> array(context.pool(), values.size(), "bench", stream);
    cuda::send(array.data(), values.data(), array.bytes(), stream, "sending");
    return array;
}

template <class T>
cuda::DeviceArray<T> sent(const std::vector<T>& values, cuda::Context& context, cudaStream_t stream)
{
    return sent(std::span(values), context, stream);
}

template <class T>
std::vector<T> received(const cuda::DeviceArray<T>& array, cudaStream_t stream)
{
    std::vector<T> values(array.size());
    cuda::read_back(values.data(), array.data(), array.bytes(), stream, "reading");
    return values;
}

}  // namespace pgwarp::bench
