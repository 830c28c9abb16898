// Reads an array of an index in ascending order, by whole chunks, whose checksums are checked.
#pragma once

#include "postgres/storage/array_stream.h"

namespace pgwarp
{

struct ChunkReader {
    Relation index;
    const Directory* directory;
    const StoredArray* array;
    char* chunk;    // palloc'ed
    uint64 first;   // byte of the array at which the chunk begins
    uint64 length;  // 0: none is read yet
};

// Opens the array; the directory and the array must live as long as the reader.
ChunkReader open_chunks(Relation index, const Directory* directory, const StoredArray* array);
// Whether read_chunk() at this byte of the array reads no page. Bytes ascend.
bool has_chunk(const ChunkReader& reader, uint64 offset);
// Returns the array's bytes from `offset` on, `*left` of them; null when the index was changed meanwhile.
const char* read_chunk(ChunkReader* reader, uint64 offset, uint64* left);
void close_chunks(const ChunkReader& reader);

}  // namespace pgwarp
