// This backend's connection to pgwarp-engine: opening (and asking the launcher for an engine), requests, waits that
// obey cancel, statement_timeout, termination and postmaster death within milliseconds.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "lib/stringinfo.h"
}

#include "protocol/messages.h"

namespace pgwarp
{

// True when an engine is reachable or could be started (a worker slot, not single-user mode); cheap enough for the
// planner: remembers its answer for a while.
bool engine_available();

// Whether the engine searches on a GPU, as far as this session knows: it is told when it connects.
bool engine_has_gpu();

// A reply to be read in place; valid until the next request on the connection.
struct EngineReply {
    MessageType type;  // reply, acknowledge (errors were raised)
    const char* payload;
    uint32 payload_bytes;
    int file_descriptor;  // -1 or one received
};

using ProgressCallback = void (*)(const ProgressReply* progress, void* state);

// Sends one request made of up to three pieces and waits for its reply. The engine's own errors are raised with a
// fitting SQLSTATE and hint. When the engine dies meanwhile: if `retry` the request is sent once more, alone, after its
// restart (at most pgwarp.engine_timeout); if it dies again a clear error is raised. On cancel the connection is
// closed, which tells the engine; the next request opens a fresh one.
struct RequestPiece {
    const void* bytes;
    uint32 length;
};
EngineReply engine_request(MessageType type, const RequestPiece* pieces, int piece_count, bool retry,
                           ProgressCallback progress = nullptr, void* progress_state = nullptr);

// Number of times this backend's connection was (re)opened: state kept by the engine for a connection (leases, builds)
// is gone when it changes.
uint64 engine_connection_epoch();

// A transfer buffer leased from the engine, mapped into this process. map == nullptr: none could be had (send inline).
struct TransferBuffer {
    uint32 id;
    char* map;
    uint64 bytes;
};
TransferBuffer lease_transfer_buffer(BufferPurpose purpose);
void return_transfer_buffer(TransferBuffer* buffer);  // also at transaction abort, by itself

// Quarantine: after an index made the engine die twice, its searches are sent to the CPU device for a while.
bool index_is_quarantined(const MirrorKey& key);
void quarantine_index(const MirrorKey& key);

}  // namespace pgwarp
