// The outcome of a request to pgwarp-engine. The engine's death is an outcome, not an error. This file also declares
// the errors that callers raise from outcomes.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// Part of a request's payload, sent in place.
struct RequestPiece {
    const void* bytes;
    uint32 length;
};
inline constexpr int most_request_pieces = 12;

// A reply, read in place; valid until the next request on the connection.
struct EngineReply {
    MessageType type;  // reply, acknowledge
    const char* payload;
    uint32 payload_bytes;
    int file_descriptor;  // -1 or one received
};

enum class RequestOutcome {
    replied,
    refused,  // the reply's payload is an ErrorReply, checked
    unsent,   // the connection had ended before the engine saw the request, or the engine was shutting down
    lost,     // the connection ended while the engine had the request
};

// `reply` is set on `replied` and `refused`.
struct RequestResult {
    RequestOutcome outcome;
    EngineReply reply;
};

// Returns the error of a result that is `refused`.
const ErrorReply* refusal(const RequestResult& result);
// Raises the engine's own error with a fitting SQLSTATE and hint.
[[noreturn]] void raise_refusal(const RequestResult& result);
// Raises the error that the connection to the engine was lost.
[[noreturn]] void raise_engine_lost();

}  // namespace pgwarp
