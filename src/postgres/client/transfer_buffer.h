// Transfer buffers leased from the engine, mapped into this process: for data too large for a frame.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// map == nullptr: none could be had (send inline).
struct TransferBuffer {
    uint32 id;
    char* map;
    uint64 bytes;
};
TransferBuffer lease_transfer_buffer(BufferPurpose purpose);
void return_transfer_buffer(TransferBuffer* buffer);  // also at transaction abort, by itself

}  // namespace pgwarp
