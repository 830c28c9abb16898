// Writes a whole index at build: metapage, arrays, tombstones, logs, directory.
#pragma once

#include "postgres/storage/included_writer.h"
#include "postgres/storage/placed_pages.h"
#include "postgres/storage/unplaced.h"

namespace pgwarp
{

// An index being written. begin_index reserves the metapage's block; finish_index writes the directory and the
// metapage, then logs the pages of the fork that are not logged yet, if the relation needs WAL (or the fork is
// INIT_FORKNUM). After a failed build the aborted transaction drops all pages with the relation.
struct IndexWriter;
IndexWriter* begin_index(Relation index, ForkNumber fork, const IndexShape& shape);
// Adds an array, in load order. Each is begun, written and ended before the next.
void add_index_array(IndexWriter* writer, const ArrayShape& shape);
// Appends bytes to the array that was added last.
void write_index_array(IndexWriter* writer, const void* bytes, uint64 length);

// For arrays whose pages other processes write: reserves room for all their pages, once and before any other array, and
// returns the first block. finish_index does not log these pages; their writers do.
BlockNumber place_index_pages(IndexWriter* writer, uint64 pages);
uint64 index_segment_id(const IndexWriter* writer);
// Adds an array that is in pages already, in load order with the others.
void add_written_array(IndexWriter* writer, const StoredArray& array);

// Sets the norms of the rows, for the metapage.
void keep_index_norms(IndexWriter* writer, NormRange norms);
// The target for the included tuples, which are written after the arrays.
IncludedTarget included_target(IndexWriter* writer);
// Sorts and writes the unplaced rows, and writes an empty tombstone bitmap for `rows`, empty delta logs and a new
// random generation.
void finish_index(IndexWriter* writer, uint64 rows, const ParameterList& options, const Calibration& calibration,
                  UnplacedSort* unplaced);

}  // namespace pgwarp
