#include "postgres/access/scan.h"

namespace pgwarp
{

SearchResults read_search_reply(const EngineReply& reply)
{
    SearchResults out = {};
    const uint64 results_at = MAXALIGN(sizeof(SearchReply)) + MAXALIGN(sizeof(uint32));
    static_assert(sizeof(SearchReply) % 8 == 0);
    if (reply.payload_bytes >= results_at) {
        memcpy(&out.header, reply.payload, sizeof(SearchReply));
        memcpy(&out.count, reply.payload + sizeof(SearchReply), sizeof(uint32));
    }
    if (out.header.query_count != 1 || reply.payload_bytes < results_at + sizeof(Result) * uint64{out.count}) {
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a malformed reply to a search")));
    }
    // A copy: what is done with a result may run a query of its own on this connection.
    auto* results = static_cast<Result*>(palloc(sizeof(Result) * Max(uint64{1}, uint64{out.count})));
    memcpy(results, reply.payload + results_at, sizeof(Result) * uint64{out.count});
    out.results = results;
    return out;
}

}  // namespace pgwarp
