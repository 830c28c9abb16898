// Writes and reads the arrays of an index as streams of whole pages.
#pragma once

#include "postgres/storage/directory.h"

namespace pgwarp
{

// Writes one array, from its first row or from the end of an existing array. Allocated in the current memory context.
struct ArrayWriter;
// Begins an array of this shape. Its pages get this kind and segment_id.
ArrayWriter* begin_array(PageSource* source, PageKind kind, uint64 segment_id, const ArrayShape& shape);
// Goes on at the end of `old`, for more_rows more rows. Fills the last page of `old` in place, as one WAL record:
// readers of `old` see no change.
ArrayWriter* begin_append(PageSource* source, PageKind kind, uint64 segment_id, const StoredArray& old,
                          uint64 more_rows);
// Appends bytes to the array.
void write_array(ArrayWriter* writer, const void* bytes, uint64 length);
// Ends the array and returns its stored form. Raises an error unless exactly shape.bytes() were written. Frees the
// writer.
StoredArray end_array(ArrayWriter* writer);

// Block of the array's page with this ordinal; InvalidBlockNumber past the end.
BlockNumber array_page_block(const StoredArray& array, uint64 ordinal);

// Reads bytes [offset, offset + length) and checks the crc32c of every chunk that the range covers wholly (callers read
// whole chunks where they can). Altered pages raise ERRCODE_INDEX_CORRUPTED.
ReadResult read_array(Relation index, const Segment& segment, const StoredArray& array, uint64 offset, uint64 length,
                      void* out);

// Reads a few bytes at any offset, without checking chunks: the caller must check the bytes.
ReadResult read_array_bytes(Relation index, const Segment& segment, const StoredArray& array, uint64 offset,
                            uint64 length, void* out);

}  // namespace pgwarp
