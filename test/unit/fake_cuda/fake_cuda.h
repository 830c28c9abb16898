// Tests' hold on the stand-in for the CUDA runtime: kernels, memory that is short, and counts of calls.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <functional>

namespace pgwarp::test
{

struct FakeCuda {
    std::atomic<std::size_t> device_allocations{0};
    std::atomic<std::size_t> pinned_allocations{0};
    std::atomic<std::size_t> copies{0};
    std::atomic<std::size_t> launches{0};
    std::atomic<std::size_t> device_bytes{0};  // allocated and not freed
    std::atomic<std::size_t> free_bytes{std::size_t{1} << 40};
};

FakeCuda& fake_cuda();

// A kernel: runs on the stream's thread, after all that the stream had before.
void launch(cudaStream_t stream, std::function<void()> kernel);

}  // namespace pgwarp::test
