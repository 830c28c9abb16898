// Time of work in a stream, by the device's clock.
#pragma once

#include <cuda_runtime_api.h>

#include "device/error.h"

namespace pgwarp::bench
{

class EventTimer
{
public:
    explicit EventTimer(cudaStream_t stream) : stream_(stream)
    {
        cuda::check(cudaEventCreate(&start_), "timing");
        cuda::check(cudaEventCreate(&stop_), "timing");
    }
    ~EventTimer()
    {
        (void)cudaEventDestroy(start_);
        (void)cudaEventDestroy(stop_);
    }
    EventTimer(const EventTimer&) = delete;
    EventTimer& operator=(const EventTimer&) = delete;

    // Waits for the work that work() has put into the stream. Milliseconds.
    template <class Work>
    double time(Work&& work)
    {
        cuda::check(cudaEventRecord(start_, stream_), "timing");
        work();
        cuda::check(cudaEventRecord(stop_, stream_), "timing");
        cuda::check(cudaEventSynchronize(stop_), "timing");
        float milliseconds = 0;
        cuda::check(cudaEventElapsedTime(&milliseconds, start_, stop_), "timing");
        return milliseconds;
    }

private:
    cudaStream_t stream_;
    cudaEvent_t start_ = nullptr;
    cudaEvent_t stop_ = nullptr;
};

}  // namespace pgwarp::bench
