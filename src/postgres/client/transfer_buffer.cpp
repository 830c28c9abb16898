// Leased transfer buffers: mapped here; returned by the caller, or at the end of a transaction that failed.
#include "postgres/client/transfer_buffer.h"

#include "postgres/client/connection.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include "access/xact.h"
}

namespace pgwarp
{

namespace
{

constexpr int max_leases = 16;
constexpr uint32 lease_wait_ms = 1000;

struct Lease {
    TransferBuffer buffer;  // map == nullptr: free
    uint64 epoch;
    SubTransactionId transaction;
};

Lease leases[max_leases];

Lease* find_lease(const char* map)
{
    for (Lease& lease : leases) {
        if (lease.buffer.map == map) return &lease;
    }
    return nullptr;
}

void unmap(Lease* lease)
{
    munmap(lease->buffer.map, lease->buffer.bytes);
    lease->buffer.map = nullptr;
}

// Return the buffer of a failed transaction. Called at abort: raises no error and does not wait for a reply.
void drop_lease(Lease* lease)
{
    unmap(lease);
    if (lease->epoch != engine_connection_epoch()) return;
    const ReturnBufferRequest request = {lease->buffer.id, 0};
    post_request(MessageType::return_buffer, &request, sizeof(request));
}

void end_transaction(XactEvent event, void*)
{
    const bool failed = event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT;
    const bool ended = failed || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PARALLEL_COMMIT;
    if (!ended) return;
    for (Lease& lease : leases) {
        if (lease.buffer.map != nullptr) drop_lease(&lease);
    }
}

void end_subtransaction(SubXactEvent event, SubTransactionId id, SubTransactionId parent, void*)
{
    for (Lease& lease : leases) {
        if (lease.buffer.map == nullptr || lease.transaction != id) continue;
        if (event == SUBXACT_EVENT_ABORT_SUB) drop_lease(&lease);
        if (event == SUBXACT_EVENT_COMMIT_SUB) lease.transaction = parent;
    }
}

void register_callbacks()
{
    static bool registered = false;
    if (registered) return;
    RegisterXactCallback(end_transaction, nullptr);
    RegisterSubXactCallback(end_subtransaction, nullptr);
    registered = true;
}

// Map the engine's file; its size must be the announced one.
char* map_buffer(int descriptor, uint64 bytes)
{
    struct stat status;
    void* map = MAP_FAILED;
    if (bytes > 0 && fstat(descriptor, &status) == 0 && static_cast<uint64>(status.st_size) == bytes) {
        map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    close(descriptor);
    return map == MAP_FAILED ? nullptr : static_cast<char*>(map);
}

}  // namespace

TransferBuffer lease_transfer_buffer(BufferPurpose purpose)
{
    const TransferBuffer none = {no_buffer, nullptr, 0};
    Lease* lease = find_lease(nullptr);
    if (lease == nullptr) return none;
    register_callbacks();
    open_engine();
    const LeaseBufferRequest request = {purpose, lease_wait_ms};
    const RequestPiece piece = {&request, sizeof(request)};
    const RequestResult result = try_request(MessageType::lease_buffer, &piece, 1, {.take_descriptor = true});
    // The request that the buffer was for meets a lost engine again, and reports it.
    if (result.outcome == RequestOutcome::refused) raise_refusal(result);
    if (result.outcome != RequestOutcome::replied) return none;
    LeaseBufferReply reply = {no_buffer, 0, 0};
    if (result.reply.payload_bytes >= sizeof(reply)) memcpy(&reply, result.reply.payload, sizeof(reply));
    if (result.reply.file_descriptor < 0) return none;
    char* const map = map_buffer(result.reply.file_descriptor, reply.bytes);
    if (map == nullptr) {
        const ReturnBufferRequest back = {reply.buffer, 0};
        post_request(MessageType::return_buffer, &back, sizeof(back));
        return none;
    }
    *lease = {{reply.buffer, map, reply.bytes}, engine_connection_epoch(), GetCurrentSubTransactionId()};
    return lease->buffer;
}

void return_transfer_buffer(TransferBuffer* buffer)
{
    if (buffer->map == nullptr) return;
    if (Lease* lease = find_lease(buffer->map)) drop_lease(lease);
    buffer->map = nullptr;
}

}  // namespace pgwarp
