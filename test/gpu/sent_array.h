// Copies an array from the host to the device for a test.
#pragma once

#include <vector>

#include "device/wait.h"
#include "shared_context.h"

namespace pgwarp::test
{

template <class T>
cuda::DeviceArray<T> sent(const std::vector<T>& values, const cuda::Context::Lease& lease)
{
    cuda::DeviceArray<T> array(shared_context().pool(), values.size(), "test", lease);
    if (!values.empty()) cuda::send(array.data(), values.data(), array.bytes(), lease, "sending");
    return array;
}

}  // namespace pgwarp::test
