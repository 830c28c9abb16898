// What the host does while a device works for it.
#pragma once

#include "device/context.h"
#include "device/error.h"
#include "device/wait.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// Runs it, if there is any. It may turn to another device. Where it throws, the stream's work is waited for first: its
// memory may go then.
inline void run_beside(cudaStream_t stream, Meanwhile* meanwhile)
{
    if (meanwhile == nullptr || meanwhile->begun()) return;
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    try {
        meanwhile->run();
        check(cudaSetDevice(device), "choosing the device");
    } catch (...) {
        drain(stream);
        throw;
    }
}

}  // namespace pgwarp::cuda
