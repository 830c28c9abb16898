// Loads mirrors over the open connection.
#pragma once

#include "postgres/client/load_team.h"
#include "postgres/client/mirror_request.h"

namespace pgwarp
{

// Loads the whole index, in a background worker if it is large; or waits for the session that loads it. Raises errors
// of the engine.
LoadOutcome load_whole_mirror(Relation index, const DirectoryState& state);

// Becomes the loader of the mirror and sends the whole index, with helpers if it is large; or waits at most wait_ms for
// the present loader.
LoadOutcome load_mirror_here(Relation index, const DirectoryState& state, uint32 wait_ms);

// Sends pieces for the team's leader until none is left or an error occurs.
void help_to_load(Relation index, const DirectoryState& state, LoadTeam* team);

// For a merge, before it switches the index to `next`: loads the generation to come into the engine, if the engine has
// the present generation and room for both, so that searches go on at once after the switch. The load includes the rows
// inserted during the merge: next->delta_end becomes the ends of the logs so far. Returns true when the load was begun
// and is kept open; a failure does not affect the merge.
bool begin_next_mirror(Relation index, const DirectoryState& present, DirectoryState* next);
// After the switch: sends the remaining rows and ends the load. Without this call the load ends with the connection.
void end_next_mirror(Relation index, const DirectoryState& next);

}  // namespace pgwarp
