#include "postgres/client/index_state.h"

#include "postgres/client/quarantine.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/included_tuple.h"

namespace pgwarp
{

namespace
{

// Lies in rd_amcache, with the extents of the included columns behind it: the relation cache frees it as one chunk of
// memory.
struct CachedDirectory {
    DirectoryValues values;
    PlacedSegment placed;  // without tombstones and checksums of chunks
};

DirectoryValues values_of(const Directory& directory)
{
    return {directory.rows, directory.unplaced.rows, directory.options, directory.calibration};
}

// Copy the array's extents to `to`. Returns the end of the copy.
Extent* put_extents(StoredArray* array, Extent* to)
{
    if (array->extent_count > 0) memcpy(to, array->extents, array->extent_count * sizeof(Extent));
    array->extents = to;
    array->chunk_crc = nullptr;
    return to + array->extent_count;
}

CachedDirectory* make_cached(const Directory& directory, MemoryContext context)
{
    const Size extents = Size{directory.included.extent_count} + directory.included_at.extent_count;
    const Size bytes = sizeof(CachedDirectory) + extents * sizeof(Extent);
    auto* cached = static_cast<CachedDirectory*>(MemoryContextAllocHuge(context, bytes));
    cached->values = values_of(directory);
    cached->placed = directory;
    cached->placed.tombstones = {};
    auto* to = reinterpret_cast<Extent*>(cached + 1);
    to = put_extents(&cached->placed.included, to);
    put_extents(&cached->placed.included_at, to);
    return cached;
}

// Return the cached directory of this generation; if it is absent, read it. Null when the index has another generation
// by now. Valid until PostgreSQL may accept invalidations; reading pages of the index does not.
const CachedDirectory* cached_directory(Relation index, const MetaPage& meta)
{
    auto* cached = static_cast<CachedDirectory*>(index->rd_amcache);
    if (cached != nullptr && cached->placed.generation == meta.generation) return cached;
    MemoryContext reading = AllocSetContextCreate(CurrentMemoryContext, "pgwarp directory", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(reading);
    const Directory* directory = read_directory(index, meta);
    MemoryContextSwitchTo(outer);
    CachedDirectory* made = directory != nullptr ? make_cached(*directory, index->rd_indexcxt) : nullptr;
    MemoryContextDelete(reading);
    if (made == nullptr) return nullptr;
    if (index->rd_amcache != nullptr) pfree(index->rd_amcache);
    index->rd_amcache = made;
    return made;
}

}  // namespace

IndexState read_index_state(Relation index)
{
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        IndexState state;
        state.meta = read_metapage(index);
        read_delta_ends(index, state.meta, state.delta_end);
        const CachedDirectory* cached = cached_directory(index, state.meta);
        if (cached == nullptr) continue;
        static_cast<DirectoryValues&>(state) = cached->values;
        return state;
    }
}

DirectoryState make_directory_state(const MetaPage& meta, const uint64* delta_end, const Directory* directory)
{
    DirectoryState state;
    static_cast<DirectoryValues&>(state) = values_of(*directory);
    state.meta = meta;
    memcpy(state.delta_end, delta_end, sizeof(state.delta_end));
    state.directory = directory;
    return state;
}

DirectoryState read_directory_state(Relation index)
{
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        const MetaPage meta = read_metapage(index);
        uint64 delta_end[delta_log_count];
        read_delta_ends(index, meta, delta_end);
        const Directory* directory = read_directory(index, meta);
        if (directory != nullptr) return make_directory_state(meta, delta_end, directory);
    }
}

bool read_included_of(Relation index, uint64 generation, uint64 row, Tid tid, char* out)
{
    const auto* cached = static_cast<const CachedDirectory*>(index->rd_amcache);
    if (cached == nullptr || placed_generation(cached->placed.generation) != generation) {
        const MetaPage meta = read_metapage(index);
        cached = placed_generation(meta.generation) == generation ? cached_directory(index, meta) : nullptr;
    }
    return cached != nullptr && read_included_row(index, cached->placed, row, tid, out);
}

bool index_is_empty(const IndexState& state)
{
    if (state.rows > 0) return false;
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
