// Several processes load one index: the leader begins and ends the load and opens the arrays one after the other;
// helpers, background workers with connections of their own, take pieces of the open array as the leader does.
#pragma once

#include "postgres/storage/directory.h"

extern "C" {
#include "storage/dsm.h"
}

namespace pgwarp
{

// Lies in dynamic shared memory.
struct LoadTeam;

// A piece of the open array: whole checksum chunks, except at the array's end.
struct LoadPiece {
    uint32 array;
    uint64 offset;
    uint64 length;
};

// Starts helpers for an index that is large enough. Null: no helper was started, for lack of worker slots or by
// pgwarp.load_workers.
LoadTeam* gather_load_team(Relation index, const Directory& directory);
// Leaves the team that this process belongs to, if any; an error does the same. The leader's leaving disbands the team.
// A helper that leaves with an unfinished piece counts as failed.
void leave_load_team();

// Whether an array is large enough to be shared by the team.
bool team_may_load(const StoredArray& array);

// Opens an array to the team. The leader then takes pieces too, and at the end waits for the helpers' pieces.
void open_array(LoadTeam* team, uint32 array, uint64 bytes);
// Returns false if a helper failed with an unfinished piece: then the load has to begin again.
bool wait_for_pieces(LoadTeam* team);

// For helpers: joins the team; null when it has ended.
LoadTeam* join_load_team(dsm_handle handle);
// Waits until a piece of at most `most` bytes is available and takes it; false when the team is disbanded.
bool wait_for_piece(LoadTeam* team, uint64 most, LoadPiece* piece);

// For all members: takes the next piece of at most `most` bytes; false when the open array has none left. Call
// finish_piece() for each.
bool take_piece(LoadTeam* team, uint64 most, LoadPiece* piece);
// Counts a taken piece as loaded.
void finish_piece(LoadTeam* team, const LoadPiece& piece);

}  // namespace pgwarp
