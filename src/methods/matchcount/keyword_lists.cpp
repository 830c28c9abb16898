// The construction of the inverted index, and its lookups.
#include <algorithm>

#include "methods/matchcount/match_count.h"

namespace pgwarp::matchcount
{

KeywordLists::KeywordLists(const KeywordRows& rows, ThreadPool&)
{
    if (rows.offsets.empty()) {
        positions_ = {0};
        return;
    }
    rows_ = static_cast<std::uint32_t>(rows.offsets.size() - 1);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> postings;
    for (std::uint32_t row = 0; row < rows_; ++row) {
        longest_row_ = std::max<std::uint32_t>(longest_row_,
                                               static_cast<std::uint32_t>(rows.offsets[row + 1] - rows.offsets[row]));
        for (std::uint64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
            postings.emplace_back(rows.keywords[i], row);
    }
    std::sort(postings.begin(), postings.end());
    std::uint32_t repeats = 0;
    for (std::size_t i = 0; i < postings.size(); ++i) {
        repeats = i > 0 && postings[i] == postings[i - 1] ? repeats + 1 : 1;
        most_repeats_ = std::max(most_repeats_, repeats);
        if (i == 0 || postings[i].first != postings[i - 1].first) {
            keywords_.push_back(postings[i].first);
            positions_.push_back(i);
        }
        list_array_.push_back(postings[i].second);
    }
    positions_.push_back(postings.size());
}

std::uint64_t KeywordLists::memory_bytes() const
{
    return keywords_.size() * sizeof(std::uint32_t) + positions_.size() * sizeof(std::uint64_t) +
           list_array_.size() * sizeof(std::uint32_t);
}

std::span<const std::uint32_t> KeywordLists::list(std::uint32_t keyword) const
{
    return lists({keyword, keyword});
}

std::span<const std::uint32_t> KeywordLists::lists(const Item& item) const
{
    if (item.last < item.first) return {};
    const auto first = std::lower_bound(keywords_.begin(), keywords_.end(), item.first) - keywords_.begin();
    const auto last = std::upper_bound(keywords_.begin(), keywords_.end(), item.last) - keywords_.begin();
    return std::span(list_array_).subspan(positions_[first], positions_[last] - positions_[first]);
}

}  // namespace pgwarp::matchcount
