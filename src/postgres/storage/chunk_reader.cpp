#include "postgres/storage/chunk_reader.h"

namespace pgwarp
{

ChunkReader open_chunks(Relation index, const Directory* directory, const StoredArray* array)
{
    return {index, directory, array, static_cast<char*>(palloc(chunk_bytes)), 0, 0};
}

bool has_chunk(const ChunkReader& reader, uint64 offset)
{
    return offset < reader.first + reader.length;
}

const char* read_chunk(ChunkReader* reader, uint64 offset, uint64* left)
{
    if (!has_chunk(*reader, offset)) {
        reader->first = offset / chunk_bytes * chunk_bytes;
        reader->length = Min(uint64{chunk_bytes}, reader->array->shape.bytes() - reader->first);
        if (read_array(reader->index, *reader->directory, *reader->array, reader->first, reader->length,
                       reader->chunk) == ReadResult::recycled) {
            return nullptr;
        }
    }
    *left = reader->first + reader->length - offset;
    return reader->chunk + (offset - reader->first);
}

void close_chunks(const ChunkReader& reader)
{
    pfree(reader.chunk);
}

}  // namespace pgwarp
