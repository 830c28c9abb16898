// Writing the included tuples of an index's rows: one after the other, in row order. A build feeds it with sorted
// tuples; whoever writes the arrays anew feeds it with read_included_row() and delta_included(): a tuple goes with its
// row's heap address, so it is copied as it is.
#pragma once

#include "postgres/storage/array_stream.h"
#include "postgres/storage/included_tuple.h"

namespace pgwarp
{

// What must be known of all tuples before the first is written: whether their lengths are equal.
struct IncludedTotals {
    uint64 rows;
    uint64 bytes;
    uint32 shortest;
    uint32 longest;
};
void add_totals(IncludedTotals* to, const IncludedTotals& totals);
void count_included(IncludedTotals* to, uint32 bytes);

// Where the tuples go: the arrays of `directory`, which are replaced at the end.
struct IncludedTarget {
    PageSource* pages;
    uint64 segment_id;
    Directory* directory;
};

// Lives in the current memory context, and holds no more than a temporary file. The arrays that the directory has are
// left out of account.
struct IncludedWriter;
IncludedWriter* begin_included(const IncludedTarget& target, const IncludedTotals& totals);
// Whether tuples of these lengths can follow those that the directory has, and the writer that does it; the totals are
// those of the tuples to come.
bool can_append_included(const Directory& directory, const IncludedTotals& totals);
IncludedWriter* begin_append_included(const IncludedTarget& target, const IncludedTotals& totals);
void write_included(IncludedWriter* writer, const void* tuple, uint32 bytes);
// Checks that as many came as were announced. The writer is freed.
void end_included(IncludedWriter* writer);

}  // namespace pgwarp
