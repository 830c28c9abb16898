// Visits bins in runs, counts their rows by score, and sorts only those near the cut.
#include "methods/pqtree/bin_choice.h"

#include <algorithm>
#include <cmath>

#include "numeric/key_ranks.h"
#include "numeric/top_k.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t fewest_bins = 32;
constexpr std::size_t fewest_ranks = 128;     // leaves of a part that are sorted at first
constexpr std::size_t most_counted = 256;     // a part of at most these leaves is sorted whole
constexpr float spare_bins = 1.1F;            // times the bins that the last search needed
constexpr std::size_t most_bins_per_row = 2;  // with more, comparing all rows takes less time
constexpr std::size_t most_bins = std::size_t{1} << 40;
constexpr std::size_t buckets = 256;  // of scores, where bins are cut

// Writes the numbers [begin, end), and up to three more. Most bins hold few rows.
std::uint32_t* write_range(std::uint32_t begin, std::uint32_t end, std::uint32_t* out)
{
    for (std::uint32_t at = begin; at < end; at += 4)
        for (std::uint32_t i = 0; i < 4; ++i) out[at - begin + i] = at + i;
    return out + (end - begin);
}

}  // namespace

bool BinChoice::run(const BinLists& lists, std::size_t leaves_of_part, LeafKeys& leaves, std::size_t candidates,
                    RowBitmap dead, const CancelToken* cancel, BinStatistics& statistics,
                    std::vector<std::uint32_t>& positions)
{
    std::size_t all = 1;
    for (const auto& part : leaves) all = std::min(all * part.size(), most_bins);
    const std::size_t most = std::min(all, std::max(fewest_bins, most_bins_per_row * lists.rows()));
    // The number of bins that hold the candidates is not known: the first guess is that of the last search, for each
    // candidate, and later ones are larger. The rows that are listed do not depend on the guess.
    const float guess =
        spare_bins * statistics.bins_per_row.load(std::memory_order_relaxed) * static_cast<float>(candidates);
    std::size_t wanted = std::max(fewest_bins, static_cast<std::size_t>(guess));
    ranks_ = fewest_ranks;
    sort_leaves(leaves);
    for (;;) {
        order_bins(leaves_of_part, leaves, std::min(wanted, most), most);
        statistics.bins_visited.fetch_add(nearest_.count, std::memory_order_relaxed);
        const std::size_t live = visit_bins(lists, dead, cancel);
        if (live >= candidates && dead.empty()) {
            const float per_row = static_cast<float>(nearest_.count) / static_cast<float>(live + 1);
            statistics.bins_per_row.store(per_row, std::memory_order_relaxed);
        }
        if (live >= candidates || nearest_.count >= most) {
            list_nearest(lists, candidates, dead, positions);
            return live >= candidates || most == all;
        }
        const double missing = static_cast<double>(candidates) / static_cast<double>(live + 1);
        wanted = static_cast<std::size_t>(static_cast<double>(nearest_.count) * std::clamp(1.2 * missing, 1.5, 4.0));
    }
}

// Sorts the `ranks_` nearest leaves of each part.
void BinChoice::sort_leaves(LeafKeys& leaves)
{
    ranked_.resize(leaves.size());
    for (std::size_t part = 0; part < leaves.size(); ++part) {
        std::vector<std::uint64_t>& keys = leaves[part];
        const std::size_t count = keys.size() <= most_counted ? keys.size() : std::min(ranks_, keys.size());
        if (count < keys.size()) select_smallest(keys, count);
        rank_of_.resize(count);
        rank_keys(keys.data(), count, rank_of_.data());
        ranked_[part].resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Candidate leaf = candidate_of(keys[i]);
            ranked_[part][rank_of_[i]] = {leaf.score, leaf.row};
        }
    }
}

// Finds at least the `wanted` and at most the `most` nearest bins. Few leaves are sorted at first; that is enough where
// no bin with another leaf could be as near as the farthest bin found.
void BinChoice::order_bins(std::size_t leaves_of_part, LeafKeys& leaves, std::size_t wanted, std::size_t most)
{
    for (;;) {
        nearest_bins(ranked_, leaves_of_part, wanted, std::min(wanted + wanted / 4, most), nearest_);
        float nearest = 0;
        for (const auto& part : ranked_) nearest += part.front().score;
        bool enough = nearest_.count >= wanted;
        for (const auto& part : ranked_)
            enough = enough && nearest - part.front().score + part.back().score > nearest_.farthest;
        if (enough || ranked_.front().size() == leaves.front().size()) return;
        ranks_ *= 4;
        sort_leaves(leaves);
    }
}

// Collects the bins with rows; returns the number of these rows that live.
std::size_t BinChoice::visit_bins(const BinLists& lists, RowBitmap dead, const CancelToken* cancel)
{
    // Most bins are empty. A bit of each slot tells so, and caches hold these bits. Without branches the loads of one
    // bin do not wait for those of another.
    scores_.resize(std::max(scores_.size(), nearest_.count + 1));
    bins_.resize(scores_.size());
    std::size_t count = 0;
    const auto visit = [&](const auto& slot_of) {
        const RankedLeaf* last = ranked_.back().data();
        for (const BinRun& run : nearest_.runs) {
            if (cancel != nullptr) cancel->check();
            for (std::uint32_t j = 0; j < run.end; ++j) {
                const std::uint64_t bin = run.first + last[j].leaf;
                scores_[count] = run.score + last[j].score;
                bins_[count] = bin;
                count += lists.holds_rows(slot_of(bin)) ? 1 : 0;
            }
        }
    };
    const BinSlots slots = lists.slots();
    slots.hashed ? visit([&](std::uint64_t bin) { return slots.slot(bin); })
                 : visit([](std::uint64_t bin) { return bin; });
    filled_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const PositionRange rows = lists.rows_of(bins_[i]);
        filled_[i] = {scores_[i], rows.begin, rows.end, 0};
    }
    // A hashed slot may have rows of other bins alone.
    if (slots.hashed) std::erase_if(filled_, [](const FilledBin& bin) { return bin.begin == bin.end; });
    std::size_t live = 0;
    for (FilledBin& bin : filled_) {
        bin.live = bin.end - bin.begin;
        if (!dead.empty()) {
            for (std::uint32_t position = bin.begin; position < bin.end; ++position)
                bin.live -= bit_is_set(dead, lists.row_at(position)) ? 1 : 0;
        }
        live += bin.live;
    }
    return live;
}

// Lists the nearest bins that hold enough live rows. They are not sorted but counted by score; only those near the cut
// are sorted.
void BinChoice::list_nearest(const BinLists& lists, std::size_t candidates, RowBitmap dead,
                             std::vector<std::uint32_t>& positions)
{
    float nearest = nearest_.farthest;
    for (const FilledBin& bin : filled_) nearest = std::min(nearest, bin.score);
    const float per_score = nearest_.farthest > nearest ? buckets / (nearest_.farthest - nearest) : 0;
    const auto bucket_of = [&](const FilledBin& bin) {
        const float at = (bin.score - nearest) * per_score;
        return at < static_cast<float>(buckets - 1) ? static_cast<std::size_t>(at) : buckets - 1;
    };
    std::size_t rows[buckets] = {};
    std::size_t all = 0;
    for (const FilledBin& bin : filled_) {
        rows[bucket_of(bin)] += bin.live;
        all += bin.end - bin.begin;
    }
    std::size_t last = 0;
    std::size_t before = 0;
    while (last + 1 < buckets && before + rows[last] < candidates) before += rows[last++];

    positions.resize(all + 4);
    std::uint32_t* out = positions.data();
    const auto list = [&](const FilledBin& bin) {
        std::uint32_t* const end = write_range(bin.begin, bin.end, out);
        out = dead.empty() ? end : std::remove_if(out, end, [&](std::uint32_t position) {
            return bit_is_set(dead, lists.row_at(position));
        });
    };
    edge_.clear();
    for (const FilledBin& bin : filled_) {
        const std::size_t bucket = bucket_of(bin);
        if (bucket < last) list(bin);
        if (bucket == last) edge_.push_back(bin);
    }
    std::ranges::sort(edge_, [](const FilledBin& a, const FilledBin& b) {
        return a.score != b.score ? a.score < b.score : a.begin < b.begin;
    });
    for (const FilledBin& bin : edge_) {
        if (before >= candidates) break;
        before += bin.live;
        list(bin);
    }
    positions.resize(static_cast<std::size_t>(out - positions.data()));
}

}  // namespace pgwarp
