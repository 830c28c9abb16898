// Sending a mirror what it lacks, over the open connection.
#pragma once

#include "postgres/client/load_team.h"
#include "postgres/client/loader.h"
#include "postgres/client/request.h"

namespace pgwarp
{

enum class LoadOutcome {
    done,
    again,          // the index or its mirror changed meanwhile: look again
    still_loading,  // by another session, for longer than pgwarp.load_wait
    unsent,         // the engine was gone before
    lost,           // the engine ended during a request
};

// Has the whole index loaded, by a background worker if it is large; or waits for who loads it.
LoadOutcome load_whole_mirror(Relation index, const IndexState& state);

// Becomes the loader of the mirror, or waits for the one that is, and sends the whole index, with helpers if it is
// large.
LoadOutcome load_mirror_here(Relation index, const IndexState& state, uint32 wait_ms);

// Sends pieces for the team's leader until there are no more, or something goes wrong.
void help_to_load(Relation index, const IndexState& state, LoadTeam* team);

// Sends the entries of each log from `have`, the mirror's ends, to the state's. The receipt of few is not waited for:
// the search that follows tells whether they have arrived.
LoadOutcome send_delta(Relation index, const IndexState& state, const uint64 have[delta_log_count]);

// Sends the few entries that the mirror lacks, as far as sessions know, if nobody else does.
void send_news(Relation index, const IndexState& state);

// Sends all tombstones as of the state's version, which was read before them.
LoadOutcome send_tombstones(Relation index, const IndexState& state);

// For a merge, before it switches the index to `next`: loads what that will hold into the engine, if the engine has the
// present generation and room for both, so that searches go on at once afterwards. With what was inserted during the
// merge: next->delta_end becomes the ends of the logs so far. True when the load was begun and is held; a failure is
// nothing to the merge.
bool begin_next_mirror(Relation index, const IndexState& present, IndexState* next);
// After the switch: the rest. Without it the load ends with the connection.
void end_next_mirror(Relation index, const IndexState& next);

// Sends one piece of a load. `again` when the mirror is gone.
LoadOutcome send_load_piece(MessageType type, const RequestPiece* pieces, int piece_count);

}  // namespace pgwarp
