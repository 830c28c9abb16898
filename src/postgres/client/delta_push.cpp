#include "postgres/client/delta_push.h"

#include "postgres/client/delta_progress.h"
#include "postgres/client/row_batch.h"
#include "postgres/client/row_pieces.h"
#include "postgres/storage/stored_value.h"
#include "postgres/storage/tombstones.h"

extern "C" {
#include "access/xact.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 message_bytes = 1U << 20;
constexpr uint32 values_per_message = 64 * 1024;  // bitmap words or ordinals
// Entries sent without waiting for an acknowledgement: the engine adds them before it reads the next request.
constexpr uint32 unawaited_bytes = 32 * 1024;
constexpr uint32 usual_list_words = 64;
constexpr int most_pushed_rows = 32;  // of a transaction; further rows go in larger messages, before a search

// Entries of one log, collected for one message.
struct DeltaBatch {
    LoadDeltaRequest request;
    RowBatch* rows;
};

LoadOutcome send_batch(DeltaBatch* batch)
{
    const RowView& rows = batch->rows->rows;
    batch->request.count = static_cast<uint32>(rows.count);
    batch->request.form = block_of(rows).form;
    RequestPiece pieces[2 + most_row_pieces] = {{&batch->request, sizeof(batch->request)},
                                                {batch->rows->tids, static_cast<uint32>(sizeof(Tid) * rows.count)}};
    const int count = 2 + row_pieces(rows, pieces + 2);
    const bool few = pieces[1].length + block_of(rows).bytes() <= unawaited_bytes;
    RequestAhead receipt;
    const LoadOutcome outcome = !few ? send_load_piece(MessageType::load_delta, pieces, count)
                                : send_ahead(MessageType::load_delta, pieces, count, &receipt) ? LoadOutcome::done
                                                                                               : LoadOutcome::unsent;
    batch->request.first += rows.count;
    clear_row_batch(batch->rows);
    return outcome;
}

LoadOutcome send_log(Relation index, const IndexState& state, DeltaBatch* batch, uint32 log, uint64 first)
{
    batch->request.log = log;
    batch->request.first = first;
    clear_row_batch(batch->rows);
    // A log that was merged away up to its end still needs its first ordinal in the mirror: an empty batch carries it.
    if (first >= state.delta_end[log]) return first > 0 ? send_batch(batch) : LoadOutcome::done;
    DeltaReader* reader = begin_delta_read(index, state.meta, log, first, state.delta_end[log]);
    LoadOutcome outcome = LoadOutcome::done;
    DeltaEntry entry;
    RowView row;
    while (outcome == LoadOutcome::done && next_delta_row(reader, &entry, &row)) {
        if (!has_room(batch->rows, row)) outcome = send_batch(batch);
        add_row(batch->rows, {entry.block, entry.offset, 0}, row);
    }
    if (end_delta_read(reader) == ReadResult::recycled) return LoadOutcome::again;
    if (outcome == LoadOutcome::done && batch->rows->rows.count > 0) outcome = send_batch(batch);
    return outcome;
}

// Send tombstones of one source.
LoadOutcome send_values(const LoadTombstonesRequest& request, const uint64* values)
{
    const RequestPiece pieces[2] = {{&request, sizeof(request)},
                                    {values, static_cast<uint32>(sizeof(uint64) * request.count)}};
    return send_load_piece(MessageType::load_tombstones, pieces, 2);
}

bool any_set(const uint64* words, uint64 count)
{
    for (uint64 i = 0; i < count; ++i) {
        if (words[i] != 0) return true;
    }
    return false;
}

LoadOutcome send_dead_rows(Relation index, const DirectoryState& state, LoadTombstonesRequest request)
{
    const uint64* bitmap = read_row_tombstones(index, *state.directory);
    if (bitmap == nullptr) return LoadOutcome::again;
    const uint64 words = (state.directory->rows + 63) / 64;
    LoadOutcome outcome = LoadOutcome::done;
    request.source = 0;
    for (uint64 first = 0; first < words && outcome == LoadOutcome::done; first += values_per_message) {
        request.first = first;
        request.count = static_cast<uint32>(Min(words - first, static_cast<uint64>(values_per_message)));
        if (any_set(bitmap + first, request.count)) outcome = send_values(request, bitmap + first);
    }
    return outcome;
}

LoadOutcome send_dead_entries(Relation index, const IndexState& state, LoadTombstonesRequest request, uint32 log,
                              uint64* ordinals)
{
    request.source = 1 + log;
    request.count = 0;
    uint64 ordinal = state.meta.logs[log].start;
    DeltaReader* reader = begin_delta_read(index, state.meta, log, ordinal, PG_UINT64_MAX);
    LoadOutcome outcome = LoadOutcome::done;
    DeltaEntry entry;
    for (; outcome == LoadOutcome::done && next_delta(reader, &entry); ++ordinal) {
        if ((entry.flags & delta_dead) == 0) continue;
        ordinals[request.count++] = ordinal;
        if (request.count < values_per_message) continue;
        outcome = send_values(request, ordinals);
        request.count = 0;
    }
    if (end_delta_read(reader) == ReadResult::recycled) return LoadOutcome::again;
    if (outcome == LoadOutcome::done && request.count > 0) outcome = send_values(request, ordinals);
    return outcome;
}

// Count this row; return whether the transaction has inserted few rows so far.
bool among_the_first_rows()
{
    static TransactionId transaction = InvalidTransactionId;
    static int rows = 0;
    const TransactionId present = GetTopTransactionIdIfAny();
    if (present != transaction) rows = 0;
    transaction = present;
    return ++rows <= most_pushed_rows;
}

}  // namespace

LoadOutcome send_delta(Relation index, const IndexState& state, const uint64 have[delta_log_count])
{
    DeltaBatch batch;
    memset(static_cast<void*>(&batch), 0, sizeof(batch));
    batch.request.key = mirror_key(index, state.meta);
    // The mirror's end may lie before the log's start: then it has no entry of this log.
    uint64 first[delta_log_count];
    uint64 missing = 0;
    for (uint32 log = 0; log < delta_log_count; ++log) {
        first[log] = Max(have[log], state.meta.logs[log].start);
        if (first[log] < state.delta_end[log]) missing += state.delta_end[log] - first[log];
    }
    batch.rows =
        make_row_batch(state.meta.shape, static_cast<uint32>(Min(missing, uint64{PG_UINT32_MAX})), message_bytes);
    LoadOutcome outcome = LoadOutcome::done;
    for (uint32 log = 0; log < delta_log_count && outcome == LoadOutcome::done; ++log) {
        const bool knows_all = have[log] > 0 && have[log] >= state.delta_end[log];
        if (!knows_all) outcome = send_log(index, state, &batch, log, first[log]);
    }
    free_row_batch(batch.rows);
    return outcome;
}

void push_delta(Relation index, const IndexState& state)
{
    // For lists this is a guess: entries that do not fit one message go in several.
    const IndexShape& shape = state.meta.shape;
    const uint64 values = is_list(shape.element) ? usual_list_words : shape.dimensions;
    const uint64 row_bytes = sizeof(Tid) + sizeof(float) * values;
    uint64 have[delta_log_count];
    if (!claim_delta(mirror_key(index, state.meta), state.delta_end, unawaited_bytes / row_bytes, have)) return;
    MemoryContext sending = AllocSetContextCreate(CurrentMemoryContext, "pgwarp delta", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(sending);
    (void)send_delta(index, state, have);
    MemoryContextSwitchTo(outer);
    MemoryContextDelete(sending);
}

LoadOutcome send_tombstones(Relation index, const DirectoryState& state)
{
    LoadTombstonesRequest request;
    memset(static_cast<void*>(&request), 0, sizeof(request));
    request.key = mirror_key(index, state.meta);
    request.version = state.meta.tombstone_version;
    uint64* ordinals = static_cast<uint64*>(palloc(sizeof(uint64) * values_per_message));
    LoadOutcome outcome = send_dead_rows(index, state, request);
    for (uint32 log = 0; log < delta_log_count && outcome == LoadOutcome::done; ++log) {
        outcome = send_dead_entries(index, state, request, log, ordinals);
    }
    if (outcome == LoadOutcome::done) {
        request.final = 1;
        outcome = send_values(request, ordinals);
    }
    pfree(ordinals);
    return outcome;
}

void push_inserted_row(Relation index, const MetaPage& meta, const DeltaPlace& place, ItemPointer tid,
                       const DeltaValue& value)
{
    if (RelationUsesLocalBuffers(index) || !among_the_first_rows()) return;
    const MirrorKey key = mirror_key(index, meta);
    if (!claim_inserted_row(key, place.log, place.ordinal) || !join_engine()) return;
    StoredRowSpace space = make_row_space(meta.shape);
    const RowView row = view_stored_row(meta.shape, value.value, value.row_bytes, &space);
    const Size bytes = sizeof(LoadDeltaRequest) + sizeof(Tid) + block_of(row).bytes();
    char* message = static_cast<char*>(palloc0(bytes));
    auto* request = reinterpret_cast<LoadDeltaRequest*>(message);
    request->key = key;
    request->first = place.ordinal;
    request->log = place.log;
    request->count = 1;
    request->form = block_of(row).form;
    const Tid address = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    memcpy(message + sizeof(LoadDeltaRequest), &address, sizeof(address));
    write_rows(row, reinterpret_cast<std::byte*>(message + sizeof(LoadDeltaRequest) + sizeof(Tid)));
    post_request(MessageType::load_delta, message, static_cast<uint32>(bytes));
    pfree(message);
    free_row_space(&space);
}

}  // namespace pgwarp
