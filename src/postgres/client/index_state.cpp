#include "postgres/client/index_state.h"

#include "postgres/client/quarantine.h"
#include "postgres/storage/delta_log.h"

namespace pgwarp
{

namespace
{

Size array_tail_bytes(const StoredArray& array)
{
    return MAXALIGN(array.extent_count * sizeof(Extent)) + MAXALIGN(array.chunk_count * sizeof(uint32));
}

Size flat_bytes(const Directory& directory)
{
    Size bytes = MAXALIGN(sizeof(Directory)) + MAXALIGN(directory.array_count * sizeof(StoredArray));
    for (uint32 i = 0; i < directory.array_count; ++i) bytes += array_tail_bytes(directory.arrays[i]);
    return bytes + array_tail_bytes(directory.included) + array_tail_bytes(directory.included_at) +
           array_tail_bytes(directory.tombstones) + array_tail_bytes(directory.unplaced.keys) +
           array_tail_bytes(directory.unplaced.attributes) + array_tail_bytes(directory.unplaced.tombstones);
}

// Copy bytes to *to and advance it. Returns the address of the copy.
void* put(char** to, const void* from, Size bytes)
{
    void* const at = *to;
    if (bytes > 0) memcpy(at, from, bytes);
    *to += MAXALIGN(bytes);
    return at;
}

void put_array_tail(char** to, StoredArray* array)
{
    array->extents = static_cast<Extent*>(put(to, array->extents, array->extent_count * sizeof(Extent)));
    array->chunk_crc = static_cast<uint32*>(put(to, array->chunk_crc, array->chunk_count * sizeof(uint32)));
}

}  // namespace

Directory* copy_directory(const Directory& directory, MemoryContext context)
{
    char* to = static_cast<char*>(MemoryContextAllocHuge(context, flat_bytes(directory)));
    auto* copy = static_cast<Directory*>(put(&to, &directory, sizeof(directory)));
    copy->arrays = static_cast<StoredArray*>(put(&to, directory.arrays, directory.array_count * sizeof(StoredArray)));
    for (uint32 i = 0; i < copy->array_count; ++i) put_array_tail(&to, &copy->arrays[i]);
    put_array_tail(&to, &copy->included);
    put_array_tail(&to, &copy->included_at);
    put_array_tail(&to, &copy->tombstones);
    put_array_tail(&to, &copy->unplaced.keys);
    put_array_tail(&to, &copy->unplaced.attributes);
    put_array_tail(&to, &copy->unplaced.tombstones);
    return copy;
}

// Return the cached directory of this generation; if it is absent, read it. Null when the index has another generation
// by now.
static Directory* current_directory(Relation index, const MetaPage& meta)
{
    auto* cached = static_cast<Directory*>(index->rd_amcache);
    if (cached != nullptr && cached->generation == meta.generation) return cached;
    MemoryContext reading = AllocSetContextCreate(CurrentMemoryContext, "pgwarp directory", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(reading);
    const Directory* directory = read_directory(index, meta);
    MemoryContextSwitchTo(outer);
    if (directory == nullptr) {
        MemoryContextDelete(reading);
        return nullptr;
    }
    Directory* copy = copy_directory(*directory, index->rd_indexcxt);
    MemoryContextDelete(reading);
    if (index->rd_amcache != nullptr) pfree(index->rd_amcache);
    index->rd_amcache = copy;
    return copy;
}

IndexState read_index_state(Relation index)
{
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        IndexState state;
        state.meta = read_metapage(index);
        read_delta_ends(index, state.meta, state.delta_end);
        state.directory = current_directory(index, state.meta);
        if (state.directory != nullptr) return state;
    }
}

const Directory* directory_of_generation(Relation index, uint64 generation)
{
    const auto* cached = static_cast<const Directory*>(index->rd_amcache);
    if (cached != nullptr && placed_generation(cached->generation) == generation) return cached;
    const MetaPage meta = read_metapage(index);
    return placed_generation(meta.generation) == generation ? current_directory(index, meta) : nullptr;
}

bool index_is_empty(const IndexState& state)
{
    if (state.directory->rows > 0) return false;
    for (uint32 i = 0; i < delta_log_count; ++i) {
        if (state.delta_end[i] > state.meta.logs[i].start) return false;
    }
    return true;
}

MirrorKey mirror_key(Relation index, const MetaPage& meta)
{
    MirrorKey key;
    memset(static_cast<void*>(&key), 0, sizeof(key));
#if PG_VERSION_NUM >= 160000
    key.tablespace = index->rd_locator.spcOid;
    key.database = index->rd_locator.dbOid;
    key.relation = index->rd_locator.relNumber;
#else
    key.tablespace = index->rd_node.spcNode;
    key.database = index->rd_node.dbNode;
    key.relation = index->rd_node.relNode;
#endif
    key.temp_backend = index->rd_backend;
    key.generation = placed_generation(meta.generation);
    if (index_is_quarantined(key)) key.device = MirrorDevice::cpu;
    return key;
}

}  // namespace pgwarp
