#include "postgres/scan/filtered_scan.h"

#include <cmath>

#include "protocol/messages.h"

namespace pgwarp
{

static constexpr double spare_deviations = 2;  // of the number of rows that pass, where a filter passes them by chance
static constexpr double lowest_rate = 1e-9;
static constexpr uint32 first_rows = 64;  // of a first search, without a LIMIT to know

uint32 rows_for_filter(const FilteredScan& filter, int64 wanted, uint64 seen)
{
    double rate = filter.pass_rate;
    if (seen > 0) rate = (static_cast<double>(filter.passed) + 1.0) / (static_cast<double>(seen) + 1.0);
    const auto rows = static_cast<double>(wanted);
    const double needed = (rows + spare_deviations * std::sqrt(rows)) / Max(rate, lowest_rate);
    return static_cast<uint32>(Min(std::ceil(needed), double{most_at_once}));
}

uint32 first_wanted(const LimitHint& hint)
{
    const int64 rows = rows_for_limit(hint);
    if (rows <= 0) return first_rows;
    if (hint.filter != nullptr)
        return static_cast<uint32>(Min(rows_for_filter(*hint.filter, rows, 0), most_approximate));
    if (hint.filtered)
        return static_cast<uint32>(Min(Max(Min(rows, int64{max_k}) * 2, int64{first_rows}), int64{max_k}));
    return static_cast<uint32>(Min(rows, int64{max_k}));
}

}  // namespace pgwarp
