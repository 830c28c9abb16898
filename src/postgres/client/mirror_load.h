// Loading mirrors, over the open connection.
#pragma once

#include "postgres/client/load_team.h"
#include "postgres/client/mirror_request.h"

namespace pgwarp
{

// Has the whole index loaded, by a background worker if it is large; or waits for the session that loads it.
LoadOutcome load_whole_mirror(Relation index, const IndexState& state);

// Becomes the loader of the mirror, or waits for the one that is, and sends the whole index, with helpers if it is
// large.
LoadOutcome load_mirror_here(Relation index, const IndexState& state, uint32 wait_ms);

// Sends pieces for the team's leader until there are no more, or something goes wrong.
void help_to_load(Relation index, const IndexState& state, LoadTeam* team);

// For a merge, before it switches the index to `next`: loads what that will hold into the engine, if the engine has the
// present generation and room for both, so that searches go on at once afterwards. With what was inserted during the
// merge: next->delta_end becomes the ends of the logs so far. True when the load was begun and is held; a failure is
// nothing to the merge.
bool begin_next_mirror(Relation index, const IndexState& present, IndexState* next);
// After the switch: the rest. Without it the load ends with the connection.
void end_next_mirror(Relation index, const IndexState& next);

}  // namespace pgwarp
