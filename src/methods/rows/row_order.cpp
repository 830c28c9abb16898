// Sorting by merging the ascending runs of a parallel scan, and permuting rows in place.
#include "methods/rows/row_order.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pgwarp
{

namespace
{

struct Place {
    std::uint64_t tid;
    std::uint32_t source;
};

// Returns the beginnings of the ascending runs, and the end. A parallel scan leaves one run for each of its batches.
std::vector<std::size_t> ascending_runs(const std::vector<Place>& places)
{
    std::vector<std::size_t> begins = {0};
    for (std::size_t i = 1; i < places.size(); ++i) {
        if (places[i].tid < places[i - 1].tid) begins.push_back(i);
    }
    begins.push_back(places.size());
    return begins;
}

}  // namespace

// Runs are merged in pairs.
std::vector<std::uint32_t> order_of(std::span<const Tid> tids, ThreadPool& pool)
{
    std::vector<Place> places(tids.size());
    for (std::size_t i = 0; i < tids.size(); ++i) {
        places[i] = {std::uint64_t{tids[i].block} << 16 | tids[i].offset, static_cast<std::uint32_t>(i)};
    }
    std::vector<Place> merged(tids.size());
    for (std::vector<std::size_t> begins = ascending_runs(places); begins.size() > 2;) {
        const std::size_t runs = begins.size() - 1;
        pool.parallel_for((runs + 1) / 2, 1, [&](std::size_t first, std::size_t last) {
            for (std::size_t pair = first; pair < last; ++pair) {
                const auto at = [&](std::size_t run) {
                    return static_cast<std::ptrdiff_t>(begins[std::min(run, runs)]);
                };
                const auto from = places.begin();
                std::merge(from + at(2 * pair), from + at(2 * pair + 1), from + at(2 * pair + 1),
                           from + at(2 * pair + 2), merged.begin() + at(2 * pair),
                           [](const Place& a, const Place& b) { return a.tid < b.tid; });
            }
        });
        places.swap(merged);
        std::vector<std::size_t> next;
        for (std::size_t run = 0; run < runs; run += 2) next.push_back(begins[run]);
        next.push_back(begins[runs]);
        begins = std::move(next);
    }
    std::vector<std::uint32_t> order(tids.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = places[i].source;
    return order;
}

namespace
{

// Rows to be put in order by following the cycles of the permutation.
class Permutation
{
public:
    Permutation(std::byte* rows, std::size_t row_bytes, std::vector<std::uint32_t> source)
        : rows_(rows), row_bytes_(row_bytes), source_(std::move(source))
    {
    }

    // Cuts the cycles at every `step`-th place, whose row is kept aside, so that each piece between two cuts can be
    // followed by a thread of its own. Then follows the cycles without a cut, one after the other.
    void apply(ThreadPool& pool)
    {
        cuts_ = (source_.size() + step - 1) / step;
        kept_.resize(cuts_ * row_bytes_);
        for (std::size_t cut = 0; cut < cuts_; ++cut) keep(cut, cut * step);
        pool.parallel_for(cuts_, 1, [&](std::size_t first, std::size_t last) {
            for (std::size_t cut = first; cut < last; ++cut) follow(cut * step);
        });
        kept_.resize(row_bytes_);
        for (std::size_t start = 0; start < source_.size(); ++start) {
            if (source_[start] == start) continue;
            keep(0, start);
            start_ = start;
            follow(start);
        }
    }

private:
    static constexpr std::size_t step = 1024;
    static constexpr std::size_t none = ~std::size_t{0};

    std::byte* row(std::size_t at) const { return rows_ + at * row_bytes_; }
    void keep(std::size_t slot, std::size_t at) { std::memcpy(kept_.data() + slot * row_bytes_, row(at), row_bytes_); }
    // The slot that keeps the row of this place; none when it lies there still.
    std::size_t slot_of(std::size_t place) const
    {
        if (start_ != none) return place == start_ ? 0 : none;
        return place % step == 0 ? place / step : none;
    }
    void follow(std::size_t at)
    {
        if (source_[at] == at) return;
        while (true) {
            const std::size_t from = source_[at];
            source_[at] = static_cast<std::uint32_t>(at);
            const std::size_t slot = slot_of(from);
            std::memcpy(row(at), slot != none ? kept_.data() + slot * row_bytes_ : row(from), row_bytes_);
            if (slot != none) return;
            at = from;
        }
    }

    std::byte* rows_;
    std::size_t row_bytes_;
    std::vector<std::uint32_t> source_;  // of each place; the place itself once its row lies there
    std::size_t cuts_ = 0;
    std::size_t start_ = none;  // of the cycle without cuts that is followed
    std::vector<std::byte> kept_;
};

}  // namespace

void permute_rows(std::byte* rows, std::size_t row_bytes, std::vector<std::uint32_t> order, ThreadPool& pool)
{
    Permutation(rows, row_bytes, std::move(order)).apply(pool);
}

}  // namespace pgwarp
