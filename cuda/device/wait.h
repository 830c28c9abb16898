// Waiting for a device: every wait of the module goes through here, so that one without end is noticed
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

// Wait without spinning for long work. `waiting` tells what for, in errors: "waiting for results".
void wait_for(cudaStream_t stream, const char* waiting);
void wait_for(cudaEvent_t event, const char* waiting);

// Copies from the device to any memory of the host, once all is done that `stream` had before, and waits for it. Into
// memory that is not page-locked the copy itself may block until then, before anybody could wait for the stream: the
// wait is known from before the copy.
void read_back(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const char* reading);

// Copies to the device from memory of the host that is not page-locked, which may change or go then. The copy is on its
// way at best: but it may block until the stream gets there, so it is a wait that is known.
void send(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const char* sending);

// Waits until no entry of `found` [count], in page-locked memory, is answer_pending (device/answers.h): looks at it for
// as long as `watched`, then leaves the waiting to the driver, which tells of errors too. The answers come from
// `stream`.
void wait_for_answers(const std::uint32_t* found, std::size_t count, std::chrono::microseconds watched,
                      cudaStream_t stream);

// Operations in double precision of a canonical distance, for each element, at most: cosine's two conversions, three
// products and three sums.
inline constexpr double canonical_operations = 8;

// How long work of so many float operations on a device, so many bytes over its bus, and so many operations in double
// precision, of which small cards do little, may take at the very worst: on a slow one, with others under way.
std::chrono::milliseconds patience_for(double operations, double bus_bytes = 0, double double_operations = 0);

// For what unwinds: waits until the stream reads and writes nothing any more. An error is left to the next call.
void drain(cudaStream_t stream) noexcept;

}  // namespace pgwarp::cuda
