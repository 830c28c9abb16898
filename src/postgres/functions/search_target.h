// An index opened for SQL functions: with the caller's rights, read under the active snapshot.
#pragma once

#include "postgres/functions/visible_rows.h"
#include "postgres/scan/heap_distance.h"

namespace pgwarp
{

struct SearchTarget {
    Relation heap;
    Relation index;
    Snapshot snapshot;  // registered
    Metric metric;
    uint32 dimensions;
    HeapReader* reader;
    VisibleRows* visible;
    uint32 spare;  // rows searched for beyond k, learnt from the number of invisible results
};

// Opens the index and its table. Raises an error unless the index is a valid pgwarp index of vectors, the caller may
// read the indexed columns, and no row security applies to the caller. expected_rows: number of later lookups, for
// sizing only.
SearchTarget* open_search_target(Oid index, uint64 expected_rows);
// The same for an index of vectors or of sets with signatures, whose searches may miss rows.
SearchTarget* open_approximate_target(Oid index, uint64 expected_rows);
// The same for an index of any rows: the caller checks their elements.
SearchTarget* open_target_of_any(Oid index, uint64 expected_rows);
// Frees the reader and the snapshot; the locks stay to the end of the transaction.
void close_search_target(SearchTarget* target);

// Raises an error unless a query has the dimensions of the index.
void check_query_dimensions(const SearchTarget* target, int dimensions);

// Returns the table of an index, which may be partitioned. Raises an error with the relation's name if it is no index.
Oid table_of_index(Oid index);
// The parts of open_search_target() for functions that read statistics of an index. Locks stay to the end of the
// transaction.
//
// Checks the caller's rights to the columns of an index, which may be partitioned.
void check_may_read_index(Oid index);
// Raises an error unless the index is valid, and may be read by this session and this transaction.
void check_usable_index(Relation index);

// The same checks of rights for a function that reads `columns` (offsets from the first system column) of a table.
void check_may_read(Relation heap, const Bitmapset* columns);

}  // namespace pgwarp
