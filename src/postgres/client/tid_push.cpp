#include "postgres/client/tid_push.h"

namespace pgwarp
{

namespace
{

constexpr uint64 words_per_message = 128 * 1024;  // 1 MiB

}  // namespace

LoadOutcome send_tids(const SearchTids& tids)
{
    LoadTidsRequest request = {tids.number, 0, 0, 0};
    LoadOutcome outcome = LoadOutcome::done;
    while (outcome == LoadOutcome::done && request.final == 0) {
        CHECK_FOR_INTERRUPTS();
        const uint64 left = tids.word_count - request.first;
        request.count = static_cast<uint32>(Min(left, words_per_message));
        request.final = request.count == left ? 1 : 0;
        const RequestPiece pieces[2] = {
            {&request, sizeof(request)},
            {tids.words + request.first, static_cast<uint32>(sizeof(uint64) * request.count)}};
        outcome = send_load_piece(MessageType::load_tids, pieces, 2);
        request.first += request.count;
    }
    return outcome;
}

}  // namespace pgwarp
