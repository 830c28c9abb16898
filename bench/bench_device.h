// The device whose methods a benchmark of the engine measures: the CPU, or the GPU in the programs of bench/gpu.
#pragma once

#include "methods/method.h"

namespace pgwarp::bench
{

// Holds the device while the program runs.
class BenchDevice
{
public:
    BenchDevice();
    ~BenchDevice();
    BenchDevice(const BenchDevice&) = delete;
    BenchDevice& operator=(const BenchDevice&) = delete;
};

const MethodFactory& method_of_device(Method method);
bool measures_gpu();

}  // namespace pgwarp::bench
