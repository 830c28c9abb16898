// Selection with a buffer that is cut back when it is full, as TopK does.
#include "methods/recall/nearest_by_tid.h"

#include <algorithm>
#include <utility>

namespace pgwarp
{

namespace
{

constexpr std::size_t block = 64;  // scores that are compared with the last entry before any is looked at

bool is_before(const NearestByTid::Entry& a, const NearestByTid::Entry& b)
{
    return a.score != b.score ? a.score < b.score : a.tid < b.tid;
}

bool any_within(const float* scores, std::size_t count, float limit)
{
    bool any = false;
    for (std::size_t i = 0; i < count; ++i) any |= scores[i] <= limit;
    return any;
}

}  // namespace

NearestByTid::NearestByTid(std::size_t wanted) : wanted_(wanted), next_cut_(wanted) {}

void NearestByTid::push(const float* scores, const std::uint64_t* tids, std::size_t count, std::uint32_t first)
{
    for (std::size_t from = 0; from < count; from += block) {
        const std::size_t end = std::min(from + block, count);
        if (!any_within(scores + from, end - from, last_.score)) continue;
        for (std::size_t i = from; i < end; ++i) {
            const Entry entry{scores[i], first + static_cast<std::uint32_t>(i), tids[i]};
            if (!is_before(entry, last_)) continue;
            entries_.push_back(entry);
            if (entries_.size() == next_cut_) cut();
        }
    }
}

void NearestByTid::cut()
{
    const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(wanted_) - 1;
    std::nth_element(entries_.begin(), last, entries_.end(), is_before);
    last_ = *last;
    entries_.resize(wanted_);
    next_cut_ = wanted_ + wanted_ / 2 + block;
    entries_.reserve(next_cut_);
}

std::vector<NearestByTid::Entry> NearestByTid::take()
{
    std::ranges::sort(entries_, is_before);
    if (entries_.size() > wanted_) entries_.resize(wanted_);
    return std::move(entries_);
}

}  // namespace pgwarp
