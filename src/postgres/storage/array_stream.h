// Writing and reading the arrays of an index as streams of whole pages.
#pragma once

#include "postgres/storage/directory.h"

namespace pgwarp
{

// Writes one array at build: pages are filled in shared buffers and marked dirty, not WAL-logged one by one; the build
// logs the whole fork at its end (log_newpage_range). Lives in the current memory context.
struct ArrayWriter;
ArrayWriter* begin_array(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, const ArrayShape& shape);
void write_array(ArrayWriter* writer, const void* bytes, uint64 length);
// Checks that exactly shape.bytes() came, and returns the stored form. The writer is freed.
StoredArray end_array(ArrayWriter* writer);

// Block of the array's page with this ordinal; InvalidBlockNumber past the end.
BlockNumber array_page_block(const StoredArray& array, uint64 ordinal);

enum class ReadResult { done, recycled };

// Reads bytes [offset, offset + length) and checks crc32c of every whole chunk that the range covers (callers read
// whole chunks where they can). recycled: a page is no longer part of this segment (an index rebuilt or merged
// meanwhile). Altered pages raise ERRCODE_INDEX_CORRUPTED.
ReadResult read_array(Relation index, const Directory& directory, const StoredArray& array, uint64 offset,
                      uint64 length, void* out);

// The same for few bytes at any place, without the checksums of chunks: what they hold is the caller's to check.
ReadResult read_array_bytes(Relation index, const Directory& directory, const StoredArray& array, uint64 offset,
                            uint64 length, void* out);

}  // namespace pgwarp
