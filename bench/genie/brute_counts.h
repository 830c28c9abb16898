// Match counts by definition 3.1, as an oracle: every keyword of every row is compared with the items of a query.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "counter.h"

namespace pgwarp::bench::genie
{

// The number of items that contain a keyword, as a function of steps.
class ItemSteps
{
public:
    explicit ItemSteps(const std::vector<Item>& items)
    {
        std::map<std::uint64_t, int> changes{{0, 0}};
        for (const Item& item : items) {
            if (item.last < item.first) continue;
            ++changes[item.first];
            --changes[std::uint64_t{item.last} + 1];
        }
        int height = 0;
        for (const auto& [start, change] : changes) {
            starts_.push_back(start);
            heights_.push_back(static_cast<std::uint32_t>(height += change));
        }
    }
    std::uint32_t containing(std::uint32_t keyword) const
    {
        const auto after = std::upper_bound(starts_.begin(), starts_.end(), keyword);
        return heights_[static_cast<std::size_t>(after - starts_.begin() - 1)];
    }

private:
    std::vector<std::uint64_t> starts_;
    std::vector<std::uint32_t> heights_;
};

inline Answer brute_counts(const pgwarp::matchcount::KeywordRows& rows, const std::vector<Item>& items, std::uint32_t k,
                           ThreadPool& pool)
{
    const ItemSteps steps(items);
    Answer all(rows.offsets.size() - 1);
    pool.parallel_for(all.size(), 8192, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            all[row] = {static_cast<std::uint32_t>(row), 0};
            for (std::uint64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
                all[row].count += steps.containing(rows.keywords[i]);
        }
    });
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(k, all.size()));
    std::partial_sort(all.begin(), last, all.end(), [](const auto& a, const auto& b) {
        return a.count != b.count ? a.count > b.count : a.row < b.row;
    });
    all.erase(last, all.end());
    return all;
}

// Whether an answer is the brute force's: counts, and rows where the answer has them.
inline bool equal_answers(const Answer& answer, const Answer& truth)
{
    return std::ranges::equal(answer, truth, [](const auto& a, const auto& b) {
        return a.count == b.count && (a.row == b.row || a.row == no_row);
    });
}

}  // namespace pgwarp::bench::genie
