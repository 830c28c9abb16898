// Laying down a whole index at build: metapage, arrays, tombstones, logs, directory.
#pragma once

#include "postgres/storage/included_writer.h"
#include "postgres/storage/placed_pages.h"
#include "postgres/storage/unplaced.h"

namespace pgwarp
{

// An index being written. Begin puts the metapage's block and nothing else; finish writes the directory and the
// metapage, then logs the fork's pages that are not logged yet when the relation needs WAL (or the fork is
// INIT_FORKNUM). A failed build leaves only pages that the aborted transaction drops with the relation.
struct IndexWriter;
IndexWriter* begin_index(Relation index, ForkNumber fork, const IndexShape& shape);
// Arrays in load order, each begun, written and ended before the next.
void add_index_array(IndexWriter* writer, const ArrayShape& shape);
void write_index_array(IndexWriter* writer, const void* bytes, uint64 length);

// The same for arrays whose pages others write. Room for those pages is made once, before any other array, and returned
// as the first of them; finish_index leaves their WAL to the writers.
BlockNumber place_index_pages(IndexWriter* writer, uint64 pages);
uint64 index_segment_id(const IndexWriter* writer);
void add_written_array(IndexWriter* writer, const StoredArray& array);

// Where the included tuples are written, after the arrays.
IncludedTarget included_target(IndexWriter* writer);
// Writes the unplaced rows, which it sorts, an empty tombstone bitmap for `rows`, empty delta logs and a new random
// generation.
void finish_index(IndexWriter* writer, uint64 rows, const ParameterList& options, const Calibration& calibration,
                  UnplacedSort* unplaced);

}  // namespace pgwarp
