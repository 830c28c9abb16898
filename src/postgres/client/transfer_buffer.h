// Transfer buffers leased from the engine and mapped into this process: for data too large for a frame.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// map == nullptr: no buffer was available, the data goes in the request.
struct TransferBuffer {
    uint32 id;
    char* map;
    uint64 bytes;
};
// Leases a buffer. Opens a connection; raises the engine's refusal.
TransferBuffer lease_transfer_buffer(BufferPurpose purpose);
void return_transfer_buffer(TransferBuffer* buffer);  // transaction abort does the same

}  // namespace pgwarp
