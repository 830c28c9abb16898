// The numbers of a LIMIT in the present execution.
#include "postgres/scan/limit_hint.h"

#include <cmath>

#include "postgres/scan/search_limits.h"

namespace pgwarp
{

static bool has_number(const LimitState* limit)
{
    return limit != nullptr && !limit->noCount && limit->lstate != LIMIT_INITIAL;
}

int64 limit_page_rows(const LimitHint& hint)
{
    if (has_number(hint.limit)) return hint.limit->count;
    const bool unlimited = hint.limit != nullptr && hint.limit->lstate != LIMIT_INITIAL;
    return unlimited && hint.unlimited_all ? PG_INT64_MAX : 0;
}

int64 limit_hint_rows(const LimitHint& hint)
{
    if (!has_number(hint.limit)) return 0;
    // WITH TIES reads one more row, the first that is no tie.
    const int64 one_more = hint.limit->limitOption == LIMIT_OPTION_WITH_TIES ? 1 : 0;
    const int64 rows = hint.limit->count + hint.limit->offset + one_more;
    return rows > 0 ? rows : 0;
}

int64 rows_for_limit(const LimitHint& hint)
{
    const auto rows = static_cast<double>(limit_hint_rows(hint));
    if (rows <= 0) return 0;
    return static_cast<int64>(
        Min(std::ceil(rows / Max(hint.pass_rate, lowest_rate)), static_cast<double>(PG_INT64_MAX / 2)));
}

int64 tuples_needed(const TupleBound& bound)
{
    const LimitState* limit = bound.limit;
    if (limit == nullptr || limit->noCount || limit->lstate == LIMIT_INITIAL) return -1;
    if (limit->limitOption == LIMIT_OPTION_WITH_TIES) return -1;
    return limit->count + limit->offset;  // negative when it overflows: no bound either
}

}  // namespace pgwarp
