#include "postgres/client/mirror_load.h"

#include "postgres/client/delta_progress.h"
#include "postgres/client/delta_push.h"
#include "postgres/client/loader_worker.h"
#include "postgres/client/remembered_indexes.h"
#include "postgres/client/shared_slot.h"
#include "postgres/client/transfer_buffer.h"
#include "postgres/settings.h"
#include "postgres/storage/array_stream.h"
#include "postgres/storage/delta_log.h"

extern "C" {
#include "miscadmin.h"
#include "utils/timestamp.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 inline_limit = 256 * 1024;  // arrays that together are smaller need no transfer buffer

constexpr long watch_ms = 200;  // between checks of the worker
// Least wait of the second attempt: the engine has to revoke the first load, or another session has taken it over.
constexpr uint32 patience_ms = 5000;

// The memory that pieces are sent in: a transfer buffer, or palloc'ed memory whose bytes follow in the request itself.
struct Carrier {
    TransferBuffer buffer;
    char* memory;
    uint64 bytes;  // of the largest piece
};

Carrier open_carrier(uint64 total)
{
    Carrier carrier = {{no_buffer, nullptr, 0}, nullptr, chunk_bytes};
    if (total > inline_limit) carrier.buffer = lease_transfer_buffer(BufferPurpose::bulk);
    if (carrier.buffer.map != nullptr && carrier.buffer.bytes >= chunk_bytes) {
        carrier.bytes = carrier.buffer.bytes / chunk_bytes * chunk_bytes;
        return carrier;
    }
    return_transfer_buffer(&carrier.buffer);
    carrier.memory = static_cast<char*>(palloc(Min(total, chunk_bytes)));
    return carrier;
}

void close_carrier(Carrier* carrier)
{
    return_transfer_buffer(&carrier->buffer);
    if (carrier->memory != nullptr) pfree(carrier->memory);
}

// Read a piece of an array, which consists of whole checksum chunks, and send it.
LoadOutcome send_piece(Relation index, const DirectoryState& state, const MirrorKey& key, const LoadPiece& piece,
                       const Carrier& carrier)
{
    const bool in_buffer = carrier.buffer.map != nullptr;
    char* const to = in_buffer ? carrier.buffer.map : carrier.memory;
    const StoredArray& array = state.directory->arrays[piece.array];
    if (read_array(index, *state.directory, array, piece.offset, piece.length, to) == ReadResult::recycled) {
        return LoadOutcome::again;
    }
    LoadChunkRequest request;
    memset(static_cast<void*>(&request), 0, sizeof(request));
    request.key = key;
    request.array = piece.array;
    request.buffer = in_buffer ? carrier.buffer.id : no_buffer;
    request.offset = piece.offset;
    request.length = piece.length;
    const RequestPiece pieces[2] = {{&request, sizeof(request)}, {to, static_cast<uint32>(piece.length)}};
    return send_load_piece(MessageType::load_chunk, pieces, in_buffer ? 1 : 2);
}

// The state of one load.
struct LoadRun {
    Relation index;
    const DirectoryState* state;
    MirrorKey key;
    LoadTeam* team;  // null: no helpers
    bool team_failed;
};

LoadOutcome send_array(LoadRun* run, uint32 number, const Carrier& carrier)
{
    const uint64 total = run->state->directory->arrays[number].shape.bytes();
    for (uint64 offset = 0; offset < total; offset += carrier.bytes) {
        const LoadPiece piece = {number, offset, Min(carrier.bytes, total - offset)};
        const LoadOutcome outcome = send_piece(run->index, *run->state, run->key, piece, carrier);
        if (outcome != LoadOutcome::done) return outcome;
    }
    return LoadOutcome::done;
}

LoadOutcome send_array_with_team(LoadRun* run, uint32 number, const Carrier& carrier)
{
    open_array(run->team, number, run->state->directory->arrays[number].shape.bytes());
    LoadPiece piece;
    while (take_piece(run->team, carrier.bytes, &piece)) {
        const LoadOutcome outcome = send_piece(run->index, *run->state, run->key, piece, carrier);
        if (outcome != LoadOutcome::done) return outcome;
        finish_piece(run->team, piece);
    }
    run->team_failed = !wait_for_pieces(run->team);
    return run->team_failed ? LoadOutcome::again : LoadOutcome::done;
}

LoadOutcome send_arrays(LoadRun* run)
{
    const Directory& directory = *run->state->directory;
    uint64 total = 0;
    for (uint32 i = 0; i < directory.array_count; ++i) total += directory.arrays[i].shape.bytes();
    if (total == 0) return LoadOutcome::done;
    Carrier carrier = open_carrier(total);
    LoadOutcome outcome = LoadOutcome::done;
    for (uint32 i = 0; i < directory.array_count && outcome == LoadOutcome::done; ++i) {
        const bool shared = run->team != nullptr && team_may_load(directory.arrays[i]);
        outcome = shared ? send_array_with_team(run, i, carrier) : send_array(run, i, carrier);
    }
    close_carrier(&carrier);
    return outcome;
}

// Send the whole index as its granted loader.
LoadOutcome send_index(LoadRun* run)
{
    const DirectoryState& state = *run->state;
    const uint64 nothing[delta_log_count] = {};
    LoadOutcome outcome = send_arrays(run);
    leave_load_team();
    if (outcome == LoadOutcome::done) outcome = send_delta(run->index, state, nothing);
    if (outcome == LoadOutcome::done && state.meta.tombstone_version > 0) outcome = send_tombstones(run->index, state);
    if (outcome != LoadOutcome::done) return outcome;
    const MirrorRequest end = {run->key};
    const RequestPiece piece = {&end, sizeof(end)};
    return send_load_piece(MessageType::load_end, &piece, 1);
}

// Become the loader of the mirror, or wait for the present loader.
LoadOutcome run_load(LoadRun* run, uint32 wait_ms, bool with_team)
{
    LoadGrant grant = LoadGrant::still_loading;
    LoadOutcome outcome = begin_load(*run->state, run->key, LoadRole::load, wait_ms, &grant);
    if (outcome != LoadOutcome::done) return outcome;
    if (grant == LoadGrant::already_loaded) return LoadOutcome::done;
    if (grant == LoadGrant::still_loading) return LoadOutcome::still_loading;
    // A loader that fails must not keep others waiting: when the connection closes, the engine revokes its load.
    PG_TRY();
    {
        if (with_team) run->team = gather_load_team(run->index, *run->state->directory);
        outcome = send_index(run);
    }
    PG_CATCH();
    {
        leave_load_team();
        close_engine();
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (outcome == LoadOutcome::again) close_engine();
    return outcome;
}

}  // namespace

LoadOutcome load_mirror_here(Relation index, const DirectoryState& state, uint32 wait_ms)
{
    const bool large = worker_may_load(index, *state.directory);
    LoadRun run = {index, &state, mirror_key(index, state.meta), nullptr, false};
    LoadOutcome outcome = run_load(&run, wait_ms, large);
    if (run.team_failed) {
        // A load without helpers meets the helper's error again, and reports it.
        run = {index, &state, run.key, nullptr, false};
        open_engine();
        outcome = run_load(&run, Max(wait_ms, patience_ms), false);
    }
    if (outcome == LoadOutcome::done && large) remember_index(index);
    return outcome;
}

void help_to_load(Relation index, const DirectoryState& state, LoadTeam* team)
{
    const MirrorKey key = mirror_key(index, state.meta);
    Carrier carrier = open_carrier(transfer_buffer_bytes);
    LoadPiece piece;
    for (bool joined = false; wait_for_piece(team, carrier.bytes, &piece); finish_piece(team, piece)) {
        LoadGrant grant = LoadGrant::granted;
        // The load has begun before the first piece is available, so that a helper can join it.
        if (!joined && begin_load(state, key, LoadRole::join, 0, &grant) != LoadOutcome::done) break;
        if (grant != LoadGrant::granted) break;
        joined = true;
        if (send_piece(index, state, key, piece, carrier) != LoadOutcome::done) break;
    }
    close_carrier(&carrier);
}

// Wait until the worker, or another session that took over its load, has loaded the mirror. `again`: the worker gave
// up.
static LoadOutcome watch_load(const DirectoryState& state, const MirrorKey& key, BackgroundWorkerHandle* worker,
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

LoadOutcome load_whole_mirror(Relation index, const DirectoryState& state)
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
    // There is no worker, or it failed: loading in this session reports the reason.
    return load_mirror_here(index, state, wait_ms);
}

// Whether the engine has the present generation resident and as much free memory as it takes. False without an engine.
static bool has_room_for_another(const MirrorKey& present)
{
    char* why = nullptr;
    if (!launcher_is_running() || !try_open_engine(&why)) return false;
    const RequestResult result = try_request(MessageType::status, nullptr, 0);
    if (result.outcome != RequestOutcome::replied || result.reply.payload_bytes < sizeof(StatusReply)) return false;
    StatusReply status;
    memcpy(static_cast<void*>(&status), result.reply.payload, sizeof(status));
    for (uint32 i = 0; i < status.mirror_count; ++i) {
        MirrorStatus mirror;
        const Size at = sizeof(status) + i * sizeof(mirror);
        if (result.reply.payload_bytes < at + sizeof(mirror)) return false;
        memcpy(static_cast<void*>(&mirror), result.reply.payload + at, sizeof(mirror));
        if (!(mirror.key == present) || mirror.loading) continue;
        const uint64 host_bytes = mirror.bytes - mirror.device_bytes;
        const uint64 gpu_bytes = mirror.device_bytes;
        const bool host = status.host_memory_allowed == 0 ||
                          status.host_memory_used + host_bytes * 5 / 4 < status.host_memory_allowed;
        const bool gpu = gpu_bytes == 0 || status.memory_allowed == 0 ||
                         status.memory_used + gpu_bytes * 5 / 4 < status.memory_allowed;
        return host && gpu;
    }
    return false;
}

static bool load_ahead(Relation index, DirectoryState* next)
{
    LoadRun run = {index, next, mirror_key(index, next->meta), nullptr, false};
    LoadGrant grant = LoadGrant::still_loading;
    const LoadOutcome begun = begin_load(*next, run.key, LoadRole::ahead, 0, &grant);
    if (begun != LoadOutcome::done || grant != LoadGrant::granted) return false;
    const MirrorRequest prepare = {run.key};
    const RequestPiece piece = {&prepare, sizeof(prepare)};
    const uint64 nothing[delta_log_count] = {};
    if (send_arrays(&run) == LoadOutcome::done &&
        send_load_piece(MessageType::load_prepare, &piece, 1) == LoadOutcome::done) {
        // Send the rows that were inserted meanwhile.
        read_delta_ends(index, next->meta, next->delta_end);
        if (send_delta(index, *next, nothing) == LoadOutcome::done &&
            send_load_piece(MessageType::load_prepare, &piece, 1) == LoadOutcome::done) {
            return true;
        }
    }
    // The engine drops the load with the connection.
    close_engine();
    return false;
}

bool begin_next_mirror(Relation index, const DirectoryState& present, DirectoryState* next)
{
    volatile bool begun = false;
    PG_TRY();
    {
        allow_refusals(true);
        if (has_room_for_another(mirror_key(index, present.meta))) begun = load_ahead(index, next);
    }
    PG_CATCH();
    {
        allow_refusals(false);
        PG_RE_THROW();
    }
    PG_END_TRY();
    allow_refusals(false);
    return begun;
}

void end_next_mirror(Relation index, const DirectoryState& next)
{
    PG_TRY();
    {
        allow_refusals(true);
        LoadOutcome outcome = LoadOutcome::done;
        if (next.meta.tombstone_version > 0) outcome = send_tombstones(index, next);
        const MirrorRequest end = {mirror_key(index, next.meta)};
        const RequestPiece piece = {&end, sizeof(end)};
        if (outcome == LoadOutcome::done) outcome = send_load_piece(MessageType::load_end, &piece, 1);
        if (outcome == LoadOutcome::done) {
            note_delta_progress(end.key, next.delta_end);
        } else {
            close_engine();
        }
    }
    PG_CATCH();
    {
        allow_refusals(false);
        PG_RE_THROW();
    }
    PG_END_TRY();
    allow_refusals(false);
}

}  // namespace pgwarp
