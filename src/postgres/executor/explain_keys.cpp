#include "postgres/executor/explain_keys.h"

#if PG_VERSION_NUM >= 180000
extern "C" {
#include "commands/explain_format.h"
#include "commands/explain_state.h"
}
#endif

namespace pgwarp
{

void explain_keys(const KeyedSearches& searches, ExplainState* explanation)
{
    if (searches.ways == 0) return;
    ExplainPropertyUInteger("Rows Passing Keys", nullptr, searches.passing_rows, explanation);
    ExplainPropertyText("Key Search", name_ways(searches.ways), explanation);
}

}  // namespace pgwarp
