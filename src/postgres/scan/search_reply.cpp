// Parses replies.
#include "postgres/scan/search_reply.h"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pgwarp
{

namespace
{

[[noreturn]] void refuse_reply()
{
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a malformed reply to a search")));
}

}  // namespace

SearchResults read_search_reply(const EngineReply& reply)
{
    constexpr uint64 count_at = sizeof(SearchReply);
    constexpr uint64 results_at = MAXALIGN(count_at) + MAXALIGN(sizeof(uint32));
    static_assert(sizeof(SearchReply) % 8 == 0);
    if (reply.payload_bytes < results_at) refuse_reply();
    // The reply is copied because code that uses it may send a request of its own on this connection.
    auto* copy = static_cast<char*>(palloc(reply.payload_bytes));
    memcpy(copy, reply.payload, reply.payload_bytes);
    SearchResults out = {};
    out.header = reinterpret_cast<const SearchReply*>(copy);
    memcpy(&out.count, copy + count_at, sizeof(uint32));
    const uint64 places_at = results_at + sizeof(Result) * uint64{out.count};
    const uint64 end = out.header->has_places != 0 ? places_at + sizeof(uint64) * uint64{out.count} : places_at;
    if (out.header->query_count != 1 || reply.payload_bytes < end) refuse_reply();
    out.results = reinterpret_cast<const Result*>(copy + results_at);
    if (out.header->has_places != 0) out.places = reinterpret_cast<const uint64*>(copy + places_at);
    return out;
}

void free_search_reply(const SearchResults& results)
{
    pfree(const_cast<SearchReply*>(results.header));
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

}  // namespace pgwarp
