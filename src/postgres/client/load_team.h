// One index loaded by several processes: its leader begins and ends the load and opens the arrays one after the other;
// helpers, background workers with connections of their own, take pieces of the open array as the leader does.
#pragma once

#include "postgres/storage/directory.h"

extern "C" {
#include "storage/dsm.h"
}

namespace pgwarp
{

// In dynamic shared memory.
struct LoadTeam;

// A piece of the open array; always whole checksum chunks, but for the array's end.
struct LoadPiece {
    uint32 array;
    uint64 offset;
    uint64 length;
};

// Starts helpers for an index that is large enough. Null: none are to be had, or allowed by pgwarp.load_workers.
LoadTeam* gather_load_team(Relation index, const Directory& directory);
// Leaves the team that this process belongs to, if any; an error does it too. With its leader goes the team. A helper
// that leaves with a piece in its hands has failed.
void leave_load_team();

// Whether an array is worth the team's while.
bool team_may_load(const StoredArray& array);

// Opens an array to the team; then the leader takes pieces too, and waits for those of the others at the end.
void open_array(LoadTeam* team, uint32 array, uint64 bytes);
// False: a helper has failed with a piece in its hands, so that the load has to begin again.
bool wait_for_pieces(LoadTeam* team);

// For helpers: joins the team; null when it is no more.
LoadTeam* join_load_team(dsm_handle handle);
// Waits until there is a piece, or returns false when the team has been disbanded.
bool wait_for_piece(LoadTeam* team, uint64 most, LoadPiece* piece);

// For all: the next piece of at most so many bytes; false when the open array has no more. Each is to be finished.
bool take_piece(LoadTeam* team, uint64 most, LoadPiece* piece);
void finish_piece(LoadTeam* team, const LoadPiece& piece);

}  // namespace pgwarp
