// A point in a stream that the host waits for.
#pragma once

#include <cuda_runtime_api.h>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

// Made when it is first recorded, for the device that the stream is of.
class Event
{
public:
    Event() = default;
    ~Event()
    {
        if (event_ != nullptr) (void)cudaEventDestroy(event_);
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record(cudaStream_t stream)
    {
        if (event_ == nullptr) check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
        check(cudaEventRecord(event_, stream), "recording an event");
    }
    // `waiting` tells what for, in errors. Nothing to wait for where it was never recorded.
    void wait(const char* waiting) const
    {
        if (event_ != nullptr) wait_for(event_, waiting);
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace pgwarp::cuda
