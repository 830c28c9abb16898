// This backend's connection to pgwarp-engine: opening (and asking the launcher for an engine), requests, waits that
// obey cancel, statement_timeout, termination and postmaster death within milliseconds. On cancel the connection is
// closed, which tells the engine; the next request opens a fresh one.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
}

#include "postgres/client/request_result.h"

namespace pgwarp
{

// True when an engine is reachable or could be started (a worker slot, not single-user mode); cheap enough for the
// planner: remembers its answer for a while.
bool engine_available();

// Whether the engine searches on a GPU, as far as this session knows: it is told when it connects.
bool engine_has_gpu();

// Makes sure that there is a connection; starts the engine if need be and waits for it, at most pgwarp.engine_timeout.
// Raises an error when there is none to be had.
void open_engine();
// The same without an error when there is none: false, and `why` gets a palloc'ed reason.
bool try_open_engine(char** why);
// Connects to the engine that runs now, if there is one that answers at once. Starts none, and needs none: after a
// failure it does not try again for a while.
bool join_engine();
bool engine_is_open();
void close_engine();

// Number of times this backend's connection was (re)opened: state kept by the engine for a connection (leases, builds)
// is gone when it changes.
uint64 engine_connection_epoch();

using ProgressCallback = void (*)(const ProgressReply* progress, void* state);

struct RequestOptions {
    bool take_descriptor = false;  // a file descriptor may come with the reply
    ProgressCallback progress = nullptr;
    void* progress_state = nullptr;
    TimestampTz deadline = 0;  // after which the connection counts as lost; 0: none
};

// One request on the open connection. On unsent and lost, and when an error is raised, the connection is closed.
RequestResult try_request(MessageType type, const RequestPiece* pieces, int piece_count,
                          const RequestOptions& options = {});

// The same once no other session repeats a request: for one whose first try ended with the engine. Opens a connection.
RequestResult try_request_alone(MessageType type, const RequestPiece* pieces, int piece_count,
                                const RequestOptions& options = {});

// A request whose reply is taken later, so that the engine works meanwhile. Other requests may come between; its reply
// may then be gone.
struct RequestAhead {
    uint64 id;  // 0: none
    uint64 epoch;
};
// Sends on the open connection. False: there is none, or it has ended.
bool send_ahead(MessageType type, const RequestPiece* pieces, int piece_count, RequestAhead* ahead);
// Waits for the reply; `unsent` when it is gone.
RequestResult receive_ahead(RequestAhead* ahead);

// Sends a request without a reply, and does not wait. For transaction callbacks: raises no error.
void post_request(MessageType type, const void* bytes, uint32 length);

}  // namespace pgwarp
