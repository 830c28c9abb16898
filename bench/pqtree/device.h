// Where indexes are built and searched: on the CPU, or on a GPU.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp::bench::pqtree
{

class Device
{
public:
    virtual ~Device() = default;
    virtual const char* name() const { return "cpu"; }  // in tables
    virtual bool is_gpu() const { return false; }
    // Never null.
    virtual const MethodFactory* method(Method method) const { return find_method(method); }
};

// Null in a program without CUDA.
std::unique_ptr<Device> open_gpu();

}  // namespace pgwarp::bench::pqtree
