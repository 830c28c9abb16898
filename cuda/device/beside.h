// What the host does while a device works for it.
#pragma once

#include "device/context.h"
#include "index/index.h"

namespace pgwarp::cuda
{

// Runs it, if there is any. Where it throws, the stream's work is waited for first: its memory may go then.
inline void run_beside(const Context::Lease& stream, Meanwhile* meanwhile)
{
    if (meanwhile == nullptr) return;
    try {
        meanwhile->run();
    } catch (...) {
        (void)cudaStreamSynchronize(stream);
        throw;
    }
}

}  // namespace pgwarp::cuda
