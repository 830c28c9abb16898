// Requests as the loader and the connection make them: with the engine's death as an outcome, not an error.
#pragma once

#include "postgres/client/connection.h"

namespace pgwarp
{

enum class RequestOutcome {
    replied,
    refused,  // the reply's payload is an ErrorReply, checked
    unsent,   // the connection had ended before the engine saw the request, or the engine was shutting down
    lost,     // the connection ended while the engine had the request
};

struct RequestResult {
    RequestOutcome outcome;
    EngineReply reply;
};

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

// One request on the open connection. On unsent and lost, and when an error is raised, the connection is closed.
// take_descriptor: a file descriptor may come with the reply.
RequestResult try_request(MessageType type, const RequestPiece* pieces, int piece_count, bool take_descriptor = false,
                          ProgressCallback progress = nullptr, void* progress_state = nullptr);

// The same once no other session repeats a request: for one whose first try ended with the engine.
RequestResult try_request_alone(MessageType type, const RequestPiece* pieces, int piece_count,
                                ProgressCallback progress = nullptr, void* progress_state = nullptr);

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

// Sends a request whose reply nobody wants and doesn't wait. For transaction callbacks: raises no error.
void post_request(MessageType type, const void* bytes, uint32 length);

const ErrorReply* refusal(const RequestResult& result);
[[noreturn]] void raise_refusal(const RequestResult& result);
[[noreturn]] void raise_engine_lost();

}  // namespace pgwarp
