#include "rows/list_layout.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace pgwarp::cuda::rows
{

ListLayout::ListLayout(std::span<const RowList> lists, std::uint32_t piece_rows)
{
    add_stretches(lists);
    first_pieces_.reserve(lists.size() + 1);
    for (std::uint32_t query = 0; query < lists.size(); ++query) {
        first_pieces_.push_back(static_cast<std::uint32_t>(pieces_.size()));
        const auto rows = static_cast<std::uint32_t>(lists[query].size());
        if (rows == 0) continue;
        const std::uint32_t place = place_of(lists[query].data());
        for (std::uint32_t first = 0; first < rows; first += piece_rows)
            pieces_.push_back({query, place + first, std::min(piece_rows, rows - first)});
    }
    first_pieces_.push_back(static_cast<std::uint32_t>(pieces_.size()));
}

void ListLayout::add_stretches(std::span<const RowList> lists)
{
    // Lists may lie in different allocations, which only std::less puts in order.
    const std::less<const std::uint32_t*> before;
    std::vector<RowList> ordered;
    for (const RowList& list : lists)
        if (!list.empty()) ordered.push_back(list);
    std::sort(ordered.begin(), ordered.end(),
              [&](const RowList& a, const RowList& b) { return before(a.data(), b.data()); });
    for (const RowList& list : ordered) {
        if (stretches_.empty() || before(stretches_.back().data() + stretches_.back().size(), list.data())) {
            stretches_.push_back(list);
            continue;
        }
        RowList& last = stretches_.back();
        const std::uint32_t* const end = list.data() + list.size();
        if (before(last.data() + last.size(), end)) last = {last.data(), end};
    }
    for (const RowList& stretch : stretches_) {
        places_.push_back(static_cast<std::uint32_t>(sent_rows_));
        sent_rows_ += stretch.size();
    }
}

std::uint32_t ListLayout::place_of(const std::uint32_t* row) const
{
    const auto above = std::upper_bound(stretches_.begin(), stretches_.end(), row,
                                        [](const std::uint32_t* wanted, const RowList& stretch) {
                                            return std::less<const std::uint32_t*>()(wanted, stretch.data());
                                        });
    const auto number = static_cast<std::size_t>(above - stretches_.begin()) - 1;
    return places_[number] + static_cast<std::uint32_t>(row - stretches_[number].data());
}

void ListLayout::copy_rows(std::uint32_t* to, ThreadPool& pool) const
{
    constexpr std::size_t grain = std::size_t{1} << 16;
    pool.parallel_for(sent_rows_, grain, [&](std::size_t begin, std::size_t end) {
        auto number =
            static_cast<std::size_t>(std::upper_bound(places_.begin(), places_.end(), begin) - places_.begin() - 1);
        for (std::size_t at = begin; at < end; ++number) {
            const RowList stretch = stretches_[number];
            const std::size_t skipped = at - places_[number];
            const std::size_t some = std::min(stretch.size() - skipped, end - at);
            std::memcpy(to + at, stretch.data() + skipped, some * sizeof(std::uint32_t));
            at += some;
        }
    });
}

}  // namespace pgwarp::cuda::rows
