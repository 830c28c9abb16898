// Reads the vectors that an index keeps of its rows.
#pragma once

#include "postgres/merge/merge_run.h"

namespace pgwarp
{

// Whether the index keeps its rows as vectors: in the array "vectors", or "half" with its mean and scale.
bool keeps_vectors(const Directory& directory);

// The largest distance of a stored vector from the row's own vector; 0 for float vectors.
float stored_vector_error(Relation index, const Directory& directory);

// Whether the half vectors of an index, if it keeps any, can represent the new rows of a merge: their range is limited.
bool halves_hold_new_rows(MergeRun* merge);

// Visits the live rows of the arrays, with their attributes.
void visit_stored_rows(MergeRun* merge, RowVisit visit, void* state);

// Reads the rows [first, first + count) as float vectors.
void read_stored_vectors(Relation index, const Directory& directory, uint32 dimensions, uint64 first, uint64 count,
                         float* out);

}  // namespace pgwarp
