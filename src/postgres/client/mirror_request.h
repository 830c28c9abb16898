// Requests about a mirror, and the outcome of each for its loader.
#pragma once

#include "postgres/client/connection.h"
#include "postgres/client/index_state.h"

namespace pgwarp
{

// The outcome of a request about a mirror. The engine's other errors are raised.
enum class LoadOutcome {
    done,
    again,          // the index or its mirror changed meanwhile: read the state again
    still_loading,  // by another session, for longer than pgwarp.load_wait
    unsent,         // the engine was gone before it received the request
    lost,           // the engine ended during a request
};

// Asks for a role in loading the mirror of `key`. On `done`, *grant tells the engine's decision.
LoadOutcome begin_load(const DirectoryState& state, const MirrorKey& key, LoadRole role, uint32 wait_ms,
                       LoadGrant* grant);

// Sends one piece of a load. `again` when the mirror was dropped.
LoadOutcome send_load_piece(MessageType type, const RequestPiece* pieces, int piece_count);

// While a mirror is loaded ahead of its use, a refusal is not an error: the outcome is `again`.
void allow_refusals(bool allowed);

}  // namespace pgwarp
