#include "device/captured_launches.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

// None where the launches cannot be recorded; the stream is as before then, and nothing was enqueued.
cudaGraphExec_t record(cudaStream_t stream, const std::function<void(cudaStream_t)>& enqueue)
{
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    cudaGraph_t graph = nullptr;
    try {
        enqueue(stream);
    } catch (...) {
        (void)cudaStreamEndCapture(stream, &graph);
        (void)cudaGetLastError();
        if (graph != nullptr) (void)cudaGraphDestroy(graph);
        throw;
    }
    cudaGraphExec_t executable = nullptr;
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || graph == nullptr ||
        cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess) {
        executable = nullptr;
        (void)cudaGetLastError();
    }
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    return executable;
}

std::atomic<bool>& switch_of_recording()
{
    static std::atomic<bool> on = [] {
        const char* given = std::getenv("PGWARP_CUDA_GRAPHS");
        return given != nullptr && std::string_view(given) == "1";
    }();
    return on;
}

}  // namespace

bool CapturedLaunches::enabled()
{
    return switch_of_recording();
}

void CapturedLaunches::enable(bool on)
{
    switch_of_recording() = on;
}

CapturedLaunches::Recordings::iterator CapturedLaunches::find(std::span<const std::uint64_t> key)
{
    return std::find_if(recordings_.begin(), recordings_.end(),
                        [&](const Recording& recording) { return std::ranges::equal(recording.key, key); });
}

void CapturedLaunches::forget(Recordings::iterator recording)
{
    if (recording->graph != nullptr) {
        // Who polls for answers may come here while the last replay is still on its way out.
        (void)cudaStreamSynchronize(stream_);
        (void)cudaGraphExecDestroy(recording->graph);
    }
    recordings_.erase(recording);
}

void CapturedLaunches::run(std::span<const std::uint64_t> key, cudaStream_t stream,
                           const std::function<void(cudaStream_t)>& enqueue)
{
    if (!enabled()) return enqueue(stream);
    stream_ = stream;
    const auto found = find(key);
    if (found == recordings_.end()) {
        enqueue(stream);
        if (recordings_.size() >= std::max<std::size_t>(1, capacity_)) forget(std::prev(recordings_.end()));
        recordings_.push_front({{key.begin(), key.end()}, nullptr, false});
        return;
    }
    recordings_.splice(recordings_.begin(), recordings_, found);
    if (found->graph == nullptr && !found->refused) {
        found->graph = record(stream, enqueue);
        found->refused = found->graph == nullptr;
    }
    if (found->refused) return enqueue(stream);
    check(cudaGraphLaunch(found->graph, stream), "replaying launches");
    ++replayed_;
}

void CapturedLaunches::clear()
{
    while (!recordings_.empty()) forget(recordings_.begin());
}

std::size_t CapturedLaunches::recorded() const
{
    return static_cast<std::size_t>(
        std::count_if(recordings_.begin(), recordings_.end(), [](const Recording& r) { return r.graph != nullptr; }));
}

}  // namespace pgwarp::cuda
