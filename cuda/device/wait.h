// Waits for a device. Every wait of the module goes through here, so that a hanging device is noticed
// (methods/device_wait.h).
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda
{

// Builds and loads wait for work that takes minutes.
inline constexpr std::chrono::minutes build_patience{30};

// Wait; the thread sleeps during long work. waiting: the purpose, for errors: "waiting for results". Throw CudaError.
void wait_for(cudaStream_t stream, const char* waiting);
void wait_for(cudaEvent_t event, const char* waiting);

// Copies from the device to any host memory after all earlier work of `stream`, and waits for the copy. A copy into
// memory that is not page-locked may block in the driver before the wait begins, so the copy counts as part of the
// wait.
void read_back(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const char* reading);

// Copies to the device from host memory that is not page-locked and that the caller may change or free afterwards. The
// copy itself may block until the stream reaches it, so it counts as a wait.
void send(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const char* sending);

// Waits until no entry of `found` [count], in page-locked memory, is answer_pending (device/answers.h). Polls for the
// time `watched` and then waits for `stream`, which writes the answers; the driver reports errors there.
void wait_for_answers(const std::uint32_t* found, std::size_t count, std::chrono::microseconds watched,
                      cudaStream_t stream);

// Double-precision operations of a canonical distance per element, at most: for cosine two conversions, three products
// and three sums.
inline constexpr double canonical_operations = 8;

// An upper bound of the time for `operations` float operations on a device, bus_bytes over its bus and
// double_operations in double precision (few per second on small cards), on a slow device that others use too.
std::chrono::milliseconds patience_for(double operations, double bus_bytes = 0, double double_operations = 0);

// For destructors during an exception: waits until the stream's work is done. The next call reports an error of the
// stream.
void drain(cudaStream_t stream) noexcept;

}  // namespace pgwarp::cuda
