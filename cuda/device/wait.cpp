#include "device/wait.h"

#include <algorithm>
#include <thread>

#include "device/answers.h"
#include "device/error.h"
#include "methods/device_wait.h"

namespace pgwarp::cuda
{

namespace
{

void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

template <class Wait>
cudaError_t watched(const Wait& wait)
{
    const DeviceWait waiting;
    return wait();
}

}  // namespace

void wait_for(cudaStream_t stream, const char* waiting)
{
    check(watched([stream] { return cudaStreamSynchronize(stream); }), waiting);
}

void wait_for(cudaEvent_t event, const char* waiting)
{
    check(watched([event] { return cudaEventSynchronize(event); }), waiting);
}

void read_back(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const char* reading)
{
    const auto read = [&] {
        const cudaError_t copied = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
        return copied == cudaSuccess ? cudaStreamSynchronize(stream) : copied;
    };
    check(watched(read), reading);
}

void send(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const char* sending)
{
    check(watched([=] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream); }), sending);
}

void wait_for_answers(const std::uint32_t* found, std::size_t count, std::chrono::microseconds watched,
                      cudaStream_t stream)
{
    constexpr int between_clocks = 64;
    const auto started = DeviceClock::now();
    std::size_t first = 0;
    const auto look = [&] {
        while (first < count && __atomic_load_n(found + first, __ATOMIC_ACQUIRE) != answer_pending) ++first;
        return first == count;
    };
    for (int turn = 1; turn % between_clocks != 0 || DeviceClock::now() - started < watched; ++turn) {
        if (look()) return;
        relax();
    }
    wait_for(stream, "waiting for answers");
    if (!look()) check(cudaErrorUnknown, "waiting for answers");  // a lost device ends the process
}

std::chrono::milliseconds patience_for(double operations, double bus_bytes, double double_operations)
{
    constexpr double operations_a_millisecond = 1e9;
    constexpr double double_operations_a_millisecond = 5e7;  // half of what a T4 does
    constexpr double bytes_a_millisecond = 1e6;
    constexpr double most = 3.6e6;  // an hour
    const double more = operations / operations_a_millisecond + bus_bytes / bytes_a_millisecond +
                        double_operations / double_operations_a_millisecond;
    return device_patience + std::chrono::milliseconds(static_cast<std::int64_t>(std::min(more, most)));
}

void drain(cudaStream_t stream) noexcept
{
    (void)watched([stream] { return cudaStreamSynchronize(stream); });
}

}  // namespace pgwarp::cuda
