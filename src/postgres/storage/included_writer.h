// Writes the included tuples of an index's rows, one after the other, in row order. A build passes sorted tuples. A
// merge passes the tuples of read_included_row() and delta_included() unchanged, since their checksums contain the
// row's heap address.
#pragma once

#include "postgres/storage/array_stream.h"
#include "postgres/storage/included_tuple.h"

namespace pgwarp
{

// Totals of all tuples. The writer must know them before the first tuple, to choose between equal and different
// lengths.
struct IncludedTotals {
    uint64 rows;
    uint64 bytes;
    uint32 shortest;
    uint32 longest;
};
void add_totals(IncludedTotals* to, const IncludedTotals& totals);
void count_included(IncludedTotals* to, uint32 bytes);

// The index to write to. The included arrays of `directory` are replaced at the end.
struct IncludedTarget {
    PageSource* pages;
    uint64 segment_id;
    Directory* directory;
};

// Allocated in the current memory context; beyond a small state it uses a temporary file. Ignores the arrays that the
// directory has.
struct IncludedWriter;
IncludedWriter* begin_included(const IncludedTarget& target, const IncludedTotals& totals);
// Whether tuples of these lengths can be appended to the directory's arrays, and the writer that appends them. The
// totals are those of the new tuples.
bool can_append_included(const Directory& directory, const IncludedTotals& totals);
IncludedWriter* begin_append_included(const IncludedTarget& target, const IncludedTotals& totals);
void write_included(IncludedWriter* writer, const void* tuple, uint32 bytes);
// Writes the arrays into the directory. Raises an error unless the announced number of tuples came. Frees the writer.
void end_included(IncludedWriter* writer);

}  // namespace pgwarp
