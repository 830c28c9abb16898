// Divides large arrays into pieces of pages, which all processes read from the engine and write.
#include "postgres/build/build_arrays.h"

#include "postgres/build/build_phases.h"
#include "postgres/storage/checksum.h"
#include "postgres/storage/placed_pages.h"

extern "C" {
#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "tcop/tcopprot.h"

PGDLLEXPORT void pgwarp_write_worker(dsm_segment* segment, shm_toc* toc);
}

namespace pgwarp
{

namespace
{

constexpr uint64 shared_key = UINT64CONST(0x9A57000000000003);
constexpr uint32 piece_pages = 384;
constexpr uint64 piece_bytes = uint64{piece_pages} * page_capacity;
// A process reads a piece together with the rest of the last chunk that begins in it, since it computes the checksum of
// that chunk.
constexpr uint64 read_bytes = piece_bytes + chunk_bytes;
static_assert(read_bytes <= transfer_buffer_bytes);
constexpr uint64 small_bytes = chunk_bytes;  // smaller arrays go through the shared buffers
constexpr uint32 pieces_per_worker = 4;      // with fewer, starting a worker costs as much time as it saves
constexpr int most_workers = 8;              // PostgreSQL has eight locks for WAL insertion

// A large array: its pages, pieces and chunks within the work.
struct PlacedArray {
    ArrayShape shape;
    uint32 number;  // number among the build's arrays
    uint32 first_piece;
    uint64 first_chunk;  // number of its first checksum
    BlockNumber start;
};

// The work, in memory shared by all participants. The checksums of all chunks follow.
struct SharedWriting {
    Oid heap;
    Oid index;
    bool concurrent;
    bool logged;
    EngineBuild build;
    uint64 segment_id;
    uint32 array_count;
    uint32 piece_count;
    uint64 chunk_count;
    pg_atomic_uint32 next_piece;
    PlacedArray arrays[max_arrays];
};

uint32* checksums_of(SharedWriting* shared)
{
    return reinterpret_cast<uint32*>(reinterpret_cast<char*>(shared) + MAXALIGN(sizeof(SharedWriting)));
}

Size writing_bytes(uint64 chunks)
{
    return add_size(MAXALIGN(sizeof(SharedWriting)), mul_size(chunks, sizeof(uint32)));
}

uint64 chunks_of(const ArrayShape& shape)
{
    return (shape.bytes() + chunk_bytes - 1) / chunk_bytes;
}

// The buffers with which one process writes pieces.
struct PieceWriter {
    SharedWriting* shared;
    TransferBuffer buffer;
    char* memory;  // used when no transfer buffer is free
    PlacedPageWriter* pages;
};

PieceWriter open_piece_writer(Relation index, SharedWriting* shared)
{
    PieceWriter writer = {};
    writer.shared = shared;
    writer.buffer = lease_transfer_buffer(BufferPurpose::bulk);
    if (writer.buffer.map == nullptr || writer.buffer.bytes < read_bytes) {
        writer.memory = static_cast<char*>(palloc(read_bytes));
    }
    writer.pages = open_page_writer(index, MAIN_FORKNUM, PageKind::array, shared->segment_id, shared->logged);
    return writer;
}

void close_piece_writer(PieceWriter* writer)
{
    close_page_writer(writer->pages);
    if (writer->memory != nullptr) pfree(writer->memory);
    if (writer->buffer.map != nullptr) return_transfer_buffer(&writer->buffer);
}

// Read a part of an array from the engine. Returns its address.
const char* read_part(PieceWriter* writer, uint32 array, uint64 offset, uint64 length)
{
    const EngineBuild* build = &writer->shared->build;
    if (writer->memory == nullptr) return read_built_piece(build, &writer->buffer, array, offset, length);
    const TransferBuffer inline_reply = {no_buffer, nullptr, 0};
    for (uint64 done = 0; done < length;) {
        const uint64 part = Min(inline_read_bytes, length - done);
        memcpy(writer->memory + done, read_built_piece(build, &inline_reply, array, offset + done, part), part);
        done += part;
    }
    return writer->memory;
}

const PlacedArray& array_of_piece(const SharedWriting* shared, uint32 piece)
{
    uint32 number = shared->array_count - 1;
    while (shared->arrays[number].first_piece > piece) --number;
    return shared->arrays[number];
}

// Write one piece, and compute the checksums of the chunks that begin in it.
void write_piece(PieceWriter* writer, uint32 piece)
{
    SharedWriting* shared = writer->shared;
    const PlacedArray& array = array_of_piece(shared, piece);
    const uint64 total = array.shape.bytes();
    const uint32 first_page = (piece - array.first_piece) * piece_pages;
    const uint64 begin = uint64{first_page} * page_capacity;
    const uint64 end = Min(begin + piece_bytes, total);
    const uint64 first_chunk = (begin + chunk_bytes - 1) / chunk_bytes;
    const uint64 end_chunk = (end + chunk_bytes - 1) / chunk_bytes;
    const uint64 read_end = Min(Max(end, end_chunk * chunk_bytes), total);
    const char* const bytes = read_part(writer, array.number, begin, read_end - begin);
    uint32* const checksums = checksums_of(shared) + array.first_chunk;
    for (uint64 chunk = first_chunk; chunk < end_chunk; ++chunk) {
        const uint64 at = chunk * chunk_bytes;
        checksums[chunk] = bytes_crc(bytes + (at - begin), Min(chunk_bytes, total - at));
    }
    write_placed_pages(writer->pages, array.start + first_page, first_page, bytes, end - begin);
}

// Write pieces until none is left.
void write_share(Relation index, SharedWriting* shared, bool progress)
{
    PieceWriter writer = open_piece_writer(index, shared);
    for (;;) {
        const uint32 piece = pg_atomic_fetch_add_u32(&shared->next_piece, 1);
        if (piece >= shared->piece_count) break;
        write_piece(&writer, piece);
        if (progress) report_build_phase("writing pages", piece + 1, shared->piece_count);
    }
    close_piece_writer(&writer);
}

// Plan the pages of each large array, numbered from 0. Returns the number of pages.
uint64 plan_arrays(const BuildRunReply* result, SharedWriting* plan)
{
    const auto* shapes = reinterpret_cast<const ArrayShape*>(result + 1);
    uint64 pages = 0;
    for (uint32 i = 0; i < result->array_count; ++i) {
        if (shapes[i].bytes() < small_bytes) continue;
        if (plan->array_count == max_arrays) elog(ERROR, "an index cannot have more than %u arrays", max_arrays);
        const uint64 own_pages = pages_of_bytes(shapes[i].bytes());
        plan->arrays[plan->array_count++] = {shapes[i], i, plan->piece_count, plan->chunk_count,
                                             static_cast<BlockNumber>(pages)};
        plan->piece_count += static_cast<uint32>((own_pages + piece_pages - 1) / piece_pages);
        plan->chunk_count += chunks_of(shapes[i]);
        pages += own_pages;
    }
    return pages;
}

// Write the pieces together with workers. False when no worker could be started; then nothing was done.
bool write_in_parallel(Relation index, int workers, SharedWriting* plan)
{
    EnterParallelMode();
    ParallelContext* context = CreateParallelContext("$libdir/pgwarp", "pgwarp_write_worker", workers);
    const Size bytes = writing_bytes(plan->chunk_count);
    shm_toc_estimate_chunk(&context->estimator, bytes);
    shm_toc_estimate_keys(&context->estimator, 1);
    InitializeParallelDSM(context);
    const bool possible = context->seg != nullptr;
    if (possible) {
        auto* shared = static_cast<SharedWriting*>(shm_toc_allocate(context->toc, bytes));
        memcpy(static_cast<void*>(shared), plan, sizeof(*plan));
        pg_atomic_init_u32(&shared->next_piece, 0);
        shm_toc_insert(context->toc, shared_key, shared);
        LaunchParallelWorkers(context);
        ereport(DEBUG1, (errmsg("writing pages with %d parallel workers", context->nworkers_launched)));
        write_share(index, shared, true);
        WaitForParallelWorkersToFinish(context);
        memcpy(checksums_of(plan), checksums_of(shared), plan->chunk_count * sizeof(uint32));
    }
    DestroyParallelContext(context);
    ExitParallelMode();
    return possible;
}

// The arrays for the directory, by their numbers in the build. Small arrays have no extents yet.
StoredArray* stored_arrays(const BuildRunReply* result, SharedWriting* plan)
{
    auto* stored = static_cast<StoredArray*>(palloc0(sizeof(StoredArray) * Max(result->array_count, 1U)));
    for (uint32 i = 0; i < plan->array_count; ++i) {
        const PlacedArray& array = plan->arrays[i];
        auto* extent = static_cast<Extent*>(palloc(sizeof(Extent)));
        *extent = {array.start, static_cast<uint32>(pages_of_bytes(array.shape.bytes()))};
        stored[array.number] = {array.shape, 1, static_cast<uint32>(chunks_of(array.shape)), extent,
                                checksums_of(plan) + array.first_chunk};
    }
    return stored;
}

// The number of workers that this number of pieces is worth.
int useful_workers(int planned, const SharedWriting* plan)
{
    return Min(Min(planned, most_workers), static_cast<int>(plan->piece_count / pieces_per_worker));
}

uint64 count_chunks(const BuildRunReply* result)
{
    const auto* shapes = reinterpret_cast<const ArrayShape*>(result + 1);
    uint64 chunks = 0;
    for (uint32 i = 0; i < result->array_count; ++i) chunks += chunks_of(shapes[i]);
    return chunks;
}

}  // namespace

void write_built_arrays(Relation heap, Relation index, const IndexInfo* info, int workers, const EngineBuild* build,
                        const BuildRunReply* result, IndexWriter* writer)
{
    auto* plan = static_cast<SharedWriting*>(MemoryContextAllocExtended(
        CurrentMemoryContext, writing_bytes(count_chunks(result)), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    plan->heap = RelationGetRelid(heap);
    plan->index = RelationGetRelid(index);
    plan->concurrent = info->ii_Concurrent;
    plan->logged = RelationNeedsWAL(index);
    plan->build = *build;
    plan->segment_id = index_segment_id(writer);
    const uint64 pages = plan_arrays(result, plan);
    if (plan->array_count > 0) {
        const BlockNumber start = place_index_pages(writer, pages);
        for (uint32 i = 0; i < plan->array_count; ++i) plan->arrays[i].start += start;
        pg_atomic_init_u32(&plan->next_piece, 0);
        const int useful = useful_workers(workers, plan);
        if (useful == 0 || !write_in_parallel(index, useful, plan)) write_share(index, plan, true);
    }
    store_built_arrays(build, result, stored_arrays(result, plan), writer);
}

}  // namespace pgwarp

// Main function of each worker.
void pgwarp_write_worker(dsm_segment*, shm_toc* toc)
{
    using namespace pgwarp;
    auto* shared = static_cast<SharedWriting*>(shm_toc_lookup(toc, shared_key, false));
    const LOCKMODE heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
    const LOCKMODE index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
    pgstat_report_activity(STATE_RUNNING, debug_query_string);
    Relation heap = table_open(shared->heap, heap_lock);
    Relation index = index_open(shared->index, index_lock);
    write_share(index, shared, false);
    index_close(index, index_lock);
    table_close(heap, heap_lock);
}
