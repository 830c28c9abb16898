#include "postgres/executor/explain_keys.h"

extern "C" {
#include "lib/stringinfo.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

namespace
{

struct NamedWay {
    FilterWays way;
    const char* name;
};

constexpr NamedWay named_ways[] = {
    {FilterWays::compared, "compared"},
    {FilterWays::searched, "searched"},
    {FilterWays::scanned, "scanned"},
};

}  // namespace

void explain_keys(const KeyedSearches& searches, ExplainState* explanation)
{
    if (searches.ways == 0) return;
    StringInfoData text;
    initStringInfo(&text);
    for (const NamedWay& named : named_ways) {
        if ((searches.ways & static_cast<uint8>(named.way)) == 0) continue;
        appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", named.name);
    }
    ExplainPropertyUInteger("Rows With Keys", nullptr, searches.passing_rows, explanation);
    ExplainPropertyText("Key Search", text.data, explanation);
}

}  // namespace pgwarp
