// Parses replies and widens bounds by rounding errors.
#include "postgres/scan/search_reply.h"

#include <cmath>

extern "C" {
#include "lib/stringinfo.h"
}

namespace pgwarp
{

static constexpr double rounding_slack = 1e-11;  // relative rounding error of bounds

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
    const uint64 places_at = results_at + sizeof(Result) * uint64{out.count};
    if (out.header.has_places != 0 && reply.payload_bytes < places_at + sizeof(uint64) * uint64{out.count}) {
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a malformed reply to a search")));
    }
    // The results are copied because code that uses them may send a request of its own on this connection.
    const uint64 end = out.header.has_places != 0 ? places_at + sizeof(uint64) * uint64{out.count} : places_at;
    auto* copy = static_cast<char*>(palloc(Max(sizeof(Result), end - results_at)));
    memcpy(copy, reply.payload + results_at, end - results_at);
    out.results = reinterpret_cast<const Result*>(copy);
    if (out.header.has_places != 0) out.places = reinterpret_cast<const uint64*>(copy + (places_at - results_at));
    return out;
}

const char* name_ways(uint8 ways)
{
    struct NamedWay {
        FilterWays way;
        const char* name;
    };
    constexpr NamedWay named[] = {
        {FilterWays::compared, "compared"}, {FilterWays::searched, "searched"}, {FilterWays::scanned, "scanned"}};
    StringInfoData text;
    initStringInfo(&text);
    for (const NamedWay& one : named) {
        if ((ways & static_cast<uint8>(one.way)) == 0) continue;
        appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", one.name);
    }
    return text.data;
}

DistanceBounds bound_distance(const Result& result, ResultKind kind, double bound_width)
{
    const bool is_bound = kind != ResultKind::exact && std::isfinite(result.distance);
    const double slack = is_bound ? rounding_slack * (std::fabs(result.distance) + bound_width) : 0;
    return {result.distance - slack, result.distance + bound_width + slack};
}

}  // namespace pgwarp
