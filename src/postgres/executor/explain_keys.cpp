#include "postgres/executor/explain_keys.h"

#if PG_VERSION_NUM >= 180000
extern "C" {
#include "commands/explain_format.h"
#include "commands/explain_state.h"
}
#endif

namespace pgwarp
{

void explain_keys(const KeyedSearches& searches, bool by_bitmap, ExplainState* explanation)
{
    if (searches.ways == 0) return;
    const char* rows = by_bitmap ? "Rows of Bitmap in Index" : "Rows Passing Keys";
    ExplainPropertyUInteger(rows, nullptr, searches.passing_rows, explanation);
    ExplainPropertyText(by_bitmap ? "Bitmap Search" : "Key Search", name_ways(searches.ways), explanation);
}

}  // namespace pgwarp
