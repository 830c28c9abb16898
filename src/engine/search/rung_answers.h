// The answer to a search of several rungs, from the rows that were found for each.
#pragma once

#include <span>
#include <vector>

#include "engine/search/delta_search.h"
#include "engine/search/search.h"

namespace pgwarp
{

// The rungs of a search; k and effort of the search are the last.
struct RungList {
    std::uint32_t count = 0;
    SearchRung rungs[max_rungs] = {};
    std::span<const SearchRung> all() const { return {rungs, count}; }
};
RungList list_rungs(const SearchSettings& settings);

// The searches that fill the rungs. Some rows that a deeper rung finds belong before rows of the earlier rungs, which
// are fixed by then. They are at most half as many as those, unless the earlier rung has missed most of its rows.
RungList list_searches(const RungList& rungs);

void clear_answer(SearchAnswer& answer);

// Appends the k nearest of the results in the index and in its delta for each query. compare: their values compare.
void append_found(const Mirror& mirror, const std::vector<std::vector<RowResult>>& rows,
                  const std::vector<std::vector<Found>>& delta, const SearchBatch& batch, bool compare,
                  SearchAnswer& answer);

// Joins the rungs of each query: the rows of the first, then those of the next behind them, up to the k of that rung in
// all. Without an order of values, only rows that are known already are left out.
void join_rungs(std::span<const SearchAnswer> of_rung, std::span<const SearchRung> rungs, std::size_t count,
                bool in_order, SearchAnswer& answer);

}  // namespace pgwarp
