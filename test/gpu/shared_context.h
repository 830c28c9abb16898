// A context of the first device, without a budget of its own, for all tests: a process can have only some dozens, each
// has a memory pool.
#pragma once

#include "device/context.h"

namespace pgwarp::test
{

inline cuda::Context& shared_context()
{
    static cuda::Context only(0, 0);
    return only;
}

}  // namespace pgwarp::test
