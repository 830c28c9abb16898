// The vectors that an index keeps of its rows, read from its pages.
#pragma once

#include "postgres/merge/merge_run.h"

namespace pgwarp
{

// Whether rows can be had as vectors: array "vectors", or "half" with its mean and scale.
bool keeps_vectors(const Directory& directory);

// How far a stored vector lies from the row's own, at most; 0 for float vectors.
float stored_vector_error(Relation index, const Directory& directory);

// Whether the halves of an index, if it keeps any, can hold the new rows of a merge: they have a range.
bool halves_hold_new_rows(MergeRun* merge);

using VectorVisit = void (*)(void* state, Tid tid, const float* vector);
// Visits the live rows of a merge's index.
void visit_stored_vectors(MergeRun* merge, VectorVisit visit, void* state);

// Reads the rows [first, first + count) as float vectors.
void read_stored_vectors(Relation index, const Directory& directory, uint32 dimensions, uint64 first, uint64 count,
                         float* out);

}  // namespace pgwarp
