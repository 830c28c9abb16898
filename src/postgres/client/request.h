// Requests for callers that treat the engine's death as an error.
#pragma once

#include "postgres/client/connection.h"

namespace pgwarp
{

// Opens a connection if need be, sends one request and waits for its reply. Raises the engine's own errors. When the
// engine dies meanwhile and `retry` is set, the request is sent once more, alone, after the engine's restart (at most
// pgwarp.engine_timeout); a second death raises an error.
EngineReply engine_request(MessageType type, const RequestPiece* pieces, int piece_count, bool retry,
                           const RequestOptions& options = {});

}  // namespace pgwarp
