// Writing and reading the arrays of an index as streams of whole pages.
#pragma once

#include "postgres/storage/directory.h"

namespace pgwarp
{

// Writes one array, from its first row or from the end of one that exists. Lives in the current memory context.
struct ArrayWriter;
ArrayWriter* begin_array(PageSource* source, PageKind kind, uint64 segment_id, const ArrayShape& shape);
// Goes on where `old` ends, for so many rows more. The last page of `old` is filled up in place, as one WAL record,
// which changes nothing for those who read `old`.
ArrayWriter* begin_append(PageSource* source, PageKind kind, uint64 segment_id, const StoredArray& old,
                          uint64 more_rows);
void write_array(ArrayWriter* writer, const void* bytes, uint64 length);
// Checks that exactly shape.bytes() came, and returns the stored form. The writer is freed.
StoredArray end_array(ArrayWriter* writer);

// Block of the array's page with this ordinal; InvalidBlockNumber past the end.
BlockNumber array_page_block(const StoredArray& array, uint64 ordinal);

// Reads bytes [offset, offset + length) and checks crc32c of every whole chunk that the range covers (callers read
// whole chunks where they can). Altered pages raise ERRCODE_INDEX_CORRUPTED.
ReadResult read_array(Relation index, const Segment& segment, const StoredArray& array, uint64 offset, uint64 length,
                      void* out);

// The same for few bytes at any place, without the checksums of chunks: what they hold is the caller's to check.
ReadResult read_array_bytes(Relation index, const Segment& segment, const StoredArray& array, uint64 offset,
                            uint64 length, void* out);

}  // namespace pgwarp
