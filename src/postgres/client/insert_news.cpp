#include "postgres/client/insert_news.h"

#include "postgres/client/delta_progress.h"
#include "postgres/client/loader.h"
#include "postgres/client/request.h"
#include "postgres/storage/stored_value.h"

extern "C" {
#include "access/xact.h"
}

namespace pgwarp
{

namespace
{

constexpr int most_rows = 32;  // of a transaction: many go in larger messages, with the search that needs them

// Whether the transaction has inserted few rows so far, this one included.
bool among_the_first_rows()
{
    static TransactionId transaction = InvalidTransactionId;
    static int rows = 0;
    const TransactionId present = GetTopTransactionIdIfAny();
    if (present != transaction) rows = 0;
    transaction = present;
    return ++rows <= most_rows;
}

}  // namespace

void send_inserted_row(Relation index, const MetaPage& meta, const DeltaPlace& place, ItemPointer tid,
                       const char* stored)
{
    if (RelationUsesLocalBuffers(index) || !among_the_first_rows()) return;
    const MirrorKey key = mirror_key(index, meta);
    if (!claim_inserted_row(key, place.log, place.ordinal) || !join_engine()) return;
    const Size vector_bytes = sizeof(float) * meta.shape.dimensions;
    const Size bytes = sizeof(LoadDeltaRequest) + sizeof(Tid) + vector_bytes;
    char* message = static_cast<char*>(palloc0(bytes));
    auto* request = reinterpret_cast<LoadDeltaRequest*>(message);
    request->key = key;
    request->first = place.ordinal;
    request->log = place.log;
    request->count = 1;
    const Tid row = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    memcpy(message + sizeof(LoadDeltaRequest), &row, sizeof(row));
    decode_stored_value(meta.shape, stored, reinterpret_cast<float*>(message + sizeof(LoadDeltaRequest) + sizeof(Tid)));
    post_request(MessageType::load_delta, message, static_cast<uint32>(bytes));
    pfree(message);
}

}  // namespace pgwarp
