// Requests for those to whom the engine's death is an error.
#pragma once

#include "postgres/client/connection.h"

namespace pgwarp
{

// Opens a connection if need be, sends one request and waits for its reply. The engine's own errors are raised. When
// the engine dies meanwhile: if `retry` the request is sent once more, alone, after its restart (at most
// pgwarp.engine_timeout); if it dies again a clear error is raised.
EngineReply engine_request(MessageType type, const RequestPiece* pieces, int piece_count, bool retry,
                           const RequestOptions& options = {});

}  // namespace pgwarp
