#include "postgres/engine/mirror_load.h"

#include "postgres/engine/loader_worker.h"
#include "postgres/settings.h"
#include "postgres/storage/array_stream.h"

extern "C" {
#include "miscadmin.h"
#include "utils/timestamp.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 inline_limit = 256 * 1024;  // arrays that together are smaller need no transfer buffer

constexpr long watch_ms = 200;  // between looks at the worker

// Ask for a role in loading the mirror.
LoadOutcome begin_load(const IndexState& state, const MirrorKey& key, LoadRole role, uint32 wait_ms, LoadGrant* grant)
{
    const Directory& directory = *state.directory;
    LoadBeginRequest request;
    memset(static_cast<void*>(&request), 0, sizeof(request));
    request.key = key;
    request.shape = state.meta.shape;
    request.options = directory.options;
    request.rows = directory.rows;
    request.tombstone_version = state.meta.tombstone_version;
    request.array_count = directory.array_count;
    request.wait_ms = wait_ms;
    request.role = role;
    ArrayShape* shapes = static_cast<ArrayShape*>(palloc0(Max(directory.array_count, 1U) * sizeof(ArrayShape)));
    for (uint32 i = 0; i < directory.array_count; ++i) shapes[i] = directory.arrays[i].shape;
    const RequestPiece pieces[2] = {{&request, sizeof(request)},
                                    {shapes, static_cast<uint32>(directory.array_count * sizeof(ArrayShape))}};
    const RequestResult result = try_request(MessageType::load_begin, pieces, 2);
    pfree(shapes);
    if (result.outcome == RequestOutcome::lost) return LoadOutcome::lost;
    if (result.outcome == RequestOutcome::unsent) return LoadOutcome::unsent;
    if (result.outcome == RequestOutcome::refused) {
        if (refusal(result)->code == ErrorCode::cancelled) return LoadOutcome::again;
        raise_refusal(result);
    }
    if (result.reply.payload_bytes < sizeof(LoadBeginReply)) raise_engine_lost();
    LoadBeginReply reply;
    memcpy(&reply, result.reply.payload, sizeof(reply));
    *grant = reply.grant;
    return LoadOutcome::done;
}

// Send one array in pieces of whole checksum chunks, through the buffer or inline out of `memory`.
LoadOutcome send_array(Relation index, const IndexState& state, const MirrorKey& key, uint32 number,
                       const TransferBuffer* buffer, char* memory)
{
    const StoredArray& array = state.directory->arrays[number];
    const uint64 total = array.shape.bytes();
    const bool in_buffer = buffer->map != nullptr;
    const uint64 step = in_buffer ? buffer->bytes / chunk_bytes * chunk_bytes : chunk_bytes;
    char* const to = in_buffer ? buffer->map : memory;
    for (uint64 offset = 0; offset < total; offset += step) {
        const uint64 length = Min(step, total - offset);
        if (read_array(index, *state.directory, array, offset, length, to) == ReadResult::recycled) {
            return LoadOutcome::again;
        }
        LoadChunkRequest request;
        memset(static_cast<void*>(&request), 0, sizeof(request));
        request.key = key;
        request.array = number;
        request.buffer = in_buffer ? buffer->id : no_buffer;
        request.offset = offset;
        request.length = length;
        const RequestPiece pieces[2] = {{&request, sizeof(request)}, {to, static_cast<uint32>(length)}};
        const LoadOutcome outcome = send_load_piece(MessageType::load_chunk, pieces, in_buffer ? 1 : 2);
        if (outcome != LoadOutcome::done) return outcome;
    }
    return LoadOutcome::done;
}

LoadOutcome send_arrays(Relation index, const IndexState& state, const MirrorKey& key)
{
    uint64 total = 0;
    for (uint32 i = 0; i < state.directory->array_count; ++i) total += state.directory->arrays[i].shape.bytes();
    if (total == 0) return LoadOutcome::done;
    TransferBuffer buffer = {no_buffer, nullptr, 0};
    if (total > inline_limit) buffer = lease_transfer_buffer(BufferPurpose::bulk);
    char* memory = nullptr;
    if (buffer.map == nullptr || buffer.bytes < chunk_bytes) {
        return_transfer_buffer(&buffer);
        memory = static_cast<char*>(palloc(Min(total, static_cast<uint64>(chunk_bytes))));
    }
    LoadOutcome outcome = LoadOutcome::done;
    for (uint32 i = 0; i < state.directory->array_count && outcome == LoadOutcome::done; ++i) {
        outcome = send_array(index, state, key, i, &buffer, memory);
    }
    return_transfer_buffer(&buffer);
    if (memory != nullptr) pfree(memory);
    return outcome;
}

// What the granted loader does.
LoadOutcome send_index(Relation index, const IndexState& state, const MirrorKey& key)
{
    uint64 starts[delta_log_count];
    for (uint32 i = 0; i < delta_log_count; ++i) starts[i] = state.meta.logs[i].start;
    LoadOutcome outcome = send_arrays(index, state, key);
    if (outcome == LoadOutcome::done) outcome = send_delta(index, state, starts);
    if (outcome == LoadOutcome::done && state.meta.tombstone_version > 0) outcome = send_tombstones(index, state);
    if (outcome != LoadOutcome::done) return outcome;
    const MirrorRequest end = {key};
    const RequestPiece piece = {&end, sizeof(end)};
    return send_load_piece(MessageType::load_end, &piece, 1);
}

}  // namespace

LoadOutcome send_load_piece(MessageType type, const RequestPiece* pieces, int piece_count)
{
    const RequestResult result = try_request(type, pieces, piece_count);
    switch (result.outcome) {
        case RequestOutcome::replied:
            return LoadOutcome::done;
        case RequestOutcome::unsent:
            return LoadOutcome::unsent;
        case RequestOutcome::lost:
            return LoadOutcome::lost;
        case RequestOutcome::refused:
            break;
    }
    if (refusal(result)->code == ErrorCode::unknown_mirror) return LoadOutcome::again;
    raise_refusal(result);
}

LoadOutcome load_mirror_here(Relation index, const IndexState& state, uint32 wait_ms)
{
    const MirrorKey key = mirror_key(index, state.meta);
    LoadGrant grant = LoadGrant::still_loading;
    LoadOutcome outcome = begin_load(state, key, LoadRole::load, wait_ms, &grant);
    if (outcome != LoadOutcome::done) return outcome;
    if (grant == LoadGrant::already_loaded) return LoadOutcome::done;
    if (grant == LoadGrant::still_loading) return LoadOutcome::still_loading;
    // A loader that gives up must not keep others waiting: the engine takes the load away with the connection.
    PG_TRY();
    {
        outcome = send_index(index, state, key);
    }
    PG_CATCH();
    {
        close_engine();
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (outcome == LoadOutcome::again) close_engine();
    return outcome;
}

// Wait for the worker's load, or for whoever took it over. `again`: the worker gave up.
static LoadOutcome watch_load(const IndexState& state, const MirrorKey& key, BackgroundWorkerHandle* worker,
                              TimestampTz deadline)
{
    for (;;) {
        const bool ended = loader_worker_ended(worker);
        const long remaining_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
        const uint32 wait_ms = ended ? 0 : static_cast<uint32>(Min(remaining_ms, watch_ms));
        LoadGrant grant = LoadGrant::still_loading;
        const LoadOutcome outcome = begin_load(state, key, LoadRole::watch, wait_ms, &grant);
        if (outcome != LoadOutcome::done) return outcome;
        if (grant == LoadGrant::already_loaded) return LoadOutcome::done;
        if (grant == LoadGrant::absent || ended) return LoadOutcome::again;
        if (remaining_ms == 0) return LoadOutcome::still_loading;
        CHECK_FOR_INTERRUPTS();
    }
}

LoadOutcome load_whole_mirror(Relation index, const IndexState& state)
{
    const MirrorKey key = mirror_key(index, state.meta);
    const uint32 wait_ms = static_cast<uint32>(setting_load_wait_ms);
    if (!worker_may_load(index, *state.directory)) return load_mirror_here(index, state, wait_ms);
    const TimestampTz deadline = GetCurrentTimestamp() + setting_load_wait_ms * INT64CONST(1000);
    LoadGrant grant = LoadGrant::still_loading;
    const LoadOutcome claimed = begin_load(state, key, LoadRole::claim, wait_ms, &grant);
    if (claimed != LoadOutcome::done) return claimed;
    if (grant == LoadGrant::already_loaded) return LoadOutcome::done;
    if (grant == LoadGrant::still_loading) return LoadOutcome::still_loading;
    BackgroundWorkerHandle* worker = start_loader_worker(index, state.meta.generation);
    if (worker != nullptr) {
        const LoadOutcome outcome = watch_load(state, key, worker, deadline);
        if (outcome != LoadOutcome::again) return outcome;
    }
    // No worker, or one that failed: here the reason shows.
    return load_mirror_here(index, state, wait_ms);
}

}  // namespace pgwarp
