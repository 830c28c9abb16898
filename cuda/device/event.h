// A point in a stream that the host or another stream waits for.
#pragma once

#include <cuda_runtime_api.h>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

// The event is made when it is first recorded, on the current device.
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
    // waiting: the purpose of the wait, for errors. Returns at once where the event was never recorded. Throws
    // CudaError.
    void wait(const char* waiting) const
    {
        if (event_ != nullptr) wait_for(event_, waiting);
    }
    // Work that is enqueued in `stream` from now on waits.
    void hold(cudaStream_t stream) const
    {
        if (event_ != nullptr) check(cudaStreamWaitEvent(stream, event_, 0), "ordering streams");
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace pgwarp::cuda
