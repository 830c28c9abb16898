// Bulk copies between plain host memory and the device through a small ring of pinned memory: threads fill or empty one
// slot while the device's copy engine works on another. Rings are kept for the next build, as pinning is slow.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "device/memory.h"
#include "numeric/parallel.h"

namespace pgwarp::cuda
{

class Staging
{
public:
    static constexpr std::size_t slot_bytes = std::size_t{8} << 20;
    static constexpr std::size_t slots = 4;

    // Takes a ring that lies idle or makes one. The stream must outlive it.
    explicit Staging(cudaStream_t stream);
    // Waits for the copies under way.
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Both throw Cancelled and CudaError. Then no copy is under way, so both memories may be freed.
    //
    // Copies to the device in order of the stream; `host` is no longer read when this returns.
    void upload(const void* host, std::size_t bytes, void* device, ThreadPool& pool, const CancelToken* cancel);
    // Copies from the device, and waits until `host` is complete.
    void download(const void* device, std::size_t bytes, void* host, ThreadPool& pool, const CancelToken* cancel);

private:
    struct Ring;
    cudaStream_t stream_;
    std::unique_ptr<Ring> ring_;
};

}  // namespace pgwarp::cuda
