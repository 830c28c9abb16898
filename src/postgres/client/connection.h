// This backend's connection to pgwarp-engine: opening (and asking the launcher for an engine), requests, and waits that
// obey cancel, statement_timeout, termination and postmaster death within milliseconds. On cancel the connection is
// closed, which tells the engine; the next request opens a new one.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
}

#include "postgres/client/request_result.h"

namespace pgwarp
{

// True when an engine is reachable or could be started (there is a worker slot and the server is not in single-user
// mode). The answer is cached for a while, so that the planner can call this often.
bool engine_available();

// Whether the engine searches on a GPU, as far as this session knows: the reply to hello says so.
bool engine_has_gpu();

// Makes sure that there is a connection; starts the engine if need be and waits for it, at most pgwarp.engine_timeout.
// Raises an error if no connection can be opened.
void open_engine();
// The same without an error: returns false, and sets `why` to a palloc'ed reason.
bool try_open_engine(char** why);
// Connects to the running engine if one answers at once; never starts an engine. After a failure it makes no attempt
// for a while. Returns whether the connection is open.
bool join_engine();
// Whether the connection is open, without a test of the peer.
bool engine_is_open();
// Closes the connection; without one it has no effect.
void close_engine();

// Number of times that this backend's connection was opened. When it changes, the engine has dropped the state of the
// old connection (leases, builds).
uint64 engine_connection_epoch();

using ProgressCallback = void (*)(const ProgressReply* progress, void* state);

struct RequestOptions {
    bool take_descriptor = false;  // a file descriptor may come with the reply
    ProgressCallback progress = nullptr;
    void* progress_state = nullptr;
    TimestampTz deadline = 0;  // after this time the connection counts as lost; 0: none
    // Sends what the request needs of its connection; called by try_request_alone(). False: the request is not sent.
    bool (*equip)(const void* state) = nullptr;
    const void* equip_state = nullptr;
};

// Sends one request on the open connection and waits for its reply. The connection is closed on `unsent`, on `lost` and
// when an error is raised.
RequestResult try_request(MessageType type, const RequestPiece* pieces, int piece_count,
                          const RequestOptions& options = {});

// The same, after waiting until no other session repeats a request: for a request whose first try ended with the
// engine's death. Opens a new connection, so an engine that was ending already is not met a second time.
RequestResult try_request_alone(MessageType type, const RequestPiece* pieces, int piece_count,
                                const RequestOptions& options = {});

// A request whose reply is received later, so that the engine works meanwhile. Other requests may come between; the
// reply may be lost by then.
struct RequestAhead {
    uint64 id;  // 0: none
    uint64 epoch;
};
// Sends on the open connection. Returns false if there is no connection or it has ended.
bool send_ahead(MessageType type, const RequestPiece* pieces, int piece_count, RequestAhead* ahead);
// Waits for the reply; `unsent` when the reply is lost.
RequestResult receive_ahead(RequestAhead* ahead);

// Sends a request that has no reply, without waiting. For transaction callbacks: raises no error.
void post_request(MessageType type, const void* bytes, uint32 length);

}  // namespace pgwarp
