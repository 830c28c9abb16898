#include "postgres/client/mirror_request.h"

namespace pgwarp
{

static bool refusals_are_errors = true;

void allow_refusals(bool allowed)
{
    refusals_are_errors = !allowed;
}

LoadOutcome begin_load(const DirectoryState& state, const MirrorKey& key, LoadRole role, uint32 wait_ms,
                       LoadGrant* grant)
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
        if (refusal(result)->code == ErrorCode::cancelled || !refusals_are_errors) return LoadOutcome::again;
        raise_refusal(result);
    }
    if (result.reply.payload_bytes < sizeof(LoadBeginReply)) raise_engine_lost();
    LoadBeginReply reply;
    memcpy(&reply, result.reply.payload, sizeof(reply));
    *grant = reply.grant;
    return LoadOutcome::done;
}

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
    if (refusal(result)->code == ErrorCode::unknown_mirror || !refusals_are_errors) return LoadOutcome::again;
    raise_refusal(result);
}

}  // namespace pgwarp
