// Launches of small batches, recorded as a CUDA graph and replayed in one call: their time is that of launching.
//
// A recording is good for the same work on the same memory. The caller describes both by a key: every number that
// shapes, pointers or branches of the launches depend on (counts, k, addresses of workspace, operands and answers).
// A key met for the first time is launched as it is, which also loads kernels and raises their limits of shared memory;
// met again it is recorded. The least recently used recordings go when there are too many, all of them by clear().
//
// One owner at a time: keep it with the workspace that its launches use, and let it go, or clear it, before that
// memory.
//
// Off unless PGWARP_CUDA_GRAPHS=1 is in the engine's environment: replays under many clients have ended the process in
// the driver (cudaGraphLaunch). Then everything is launched as it is.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <vector>

namespace pgwarp::cuda
{

class CapturedLaunches
{
public:
    // Keeps at most `capacity` recordings (>= 1).
    explicit CapturedLaunches(std::size_t capacity = 32) : capacity_(capacity) {}
    ~CapturedLaunches() { clear(); }
    CapturedLaunches(const CapturedLaunches&) = delete;
    CapturedLaunches& operator=(const CapturedLaunches&) = delete;

    // Enqueues on `stream` what `enqueue(stream)` enqueues: kernels, copies between device and page-locked memory,
    // memsets; no allocation and no waiting. Where a recording cannot be made the launches go as they are. What
    // `enqueue` throws is passed on, with nothing recorded.
    void run(std::span<const std::uint64_t> key, cudaStream_t stream, const std::function<void(cudaStream_t)>& enqueue);

    // Forgets all, once the replays under way have ended.
    void clear();

    // Whether launches are recorded at all, in this process. Tests may say so.
    static bool enabled();
    static void enable(bool on);

    std::size_t recorded() const;
    std::uint64_t replayed() const { return replayed_; }

private:
    struct Recording {
        std::vector<std::uint64_t> key;
        cudaGraphExec_t graph = nullptr;  // none: met once
        bool refused = false;             // cannot be recorded
    };
    using Recordings = std::list<Recording>;  // the most recently used first

    Recordings::iterator find(std::span<const std::uint64_t> key);
    void forget(Recordings::iterator recording);

    const std::size_t capacity_;
    cudaStream_t stream_ = nullptr;  // of the last run
    Recordings recordings_;
    std::uint64_t replayed_ = 0;
};

}  // namespace pgwarp::cuda
