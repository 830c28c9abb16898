// One context of the first device for all tests, with the default budget: every context has a memory pool, so a process
// can have only some dozens.
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
