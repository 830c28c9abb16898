// The search by a count priority queue.
#include "methods/matchcount/match_count.h"

#include <algorithm>

namespace pgwarp::matchcount
{

struct CountWorkspace::Memory {
    std::size_t slice_bytes;
    std::vector<std::uint32_t> counters;
};

CountWorkspace::CountWorkspace(std::size_t slice_bytes) : memory(new Memory{slice_bytes, {}}) {}
CountWorkspace::~CountWorkspace() = default;
CountWorkspace::CountWorkspace(CountWorkspace&&) noexcept = default;
CountWorkspace& CountWorkspace::operator=(CountWorkspace&&) noexcept = default;

MatchCounts search_counts(const KeywordLists& lists, std::span<const Item> items, std::uint32_t k, RowBitmap dead,
                          CountWorkspace& workspace)
{
    std::vector<std::uint32_t>& counters = workspace.memory->counters;
    counters.assign(lists.rows(), 0);
    for (const Item& item : items)
        for (const std::uint32_t row : lists.lists(item)) ++counters[row];
    MatchCounts found;
    for (std::uint32_t row = 0; row < lists.rows(); ++row)
        if (!bit_is_set(dead, row)) found.rows.push_back({row, counters[row]});
    std::stable_sort(found.rows.begin(), found.rows.end(),
                     [](const CountedRow& a, const CountedRow& b) { return a.count > b.count; });
    if (found.rows.size() > k) found.rows.resize(k);
    if (k > 0 && found.rows.size() == k) found.audit_threshold = found.rows.back().count + 1;
    return found;
}

}  // namespace pgwarp::matchcount
