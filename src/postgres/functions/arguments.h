// Checks of arguments that several functions take.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

// Returns k if an engine's reply has room for k results; raises 22023 otherwise. k = 0 gives no rows, as LIMIT 0 does.
inline uint32 checked_k(int32 k)
{
    if (k < 0 || k > static_cast<int32>(max_k)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("k must be between 0 and %u", max_k)));
    }
    return static_cast<uint32>(k);
}

}  // namespace pgwarp
