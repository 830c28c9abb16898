#include "postgres/client/request.h"

namespace pgwarp
{

// Number of ended connections that a request is sent on before it is given up.
static constexpr int most_unsent_requests = 5;

EngineReply engine_request(MessageType type, const RequestPiece* pieces, int piece_count, bool retry,
                           const RequestOptions& options)
{
    bool died = false;
    for (int unsent = 0;;) {
        const bool had_connection = engine_is_open();
        open_engine();
        const RequestResult result = (died ? try_request_alone : try_request)(type, pieces, piece_count, options);
        switch (result.outcome) {
            case RequestOutcome::replied:
                return result.reply;
            case RequestOutcome::refused:
                raise_refusal(result);
            case RequestOutcome::unsent:
                // Without `retry` the request refers to state of the old connection.
                if ((!retry && had_connection) || ++unsent == most_unsent_requests) raise_engine_lost();
                break;
            case RequestOutcome::lost:
                if (!retry || died) raise_engine_lost();
                died = true;
                break;
        }
    }
}

}  // namespace pgwarp
