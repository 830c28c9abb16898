// The traversal of a graph with a sorted array of the best rows and a bitmap of visited ones.
#include "methods/graph/traversal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "methods/graph/graph.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t entered_seeds = 16;    // the best of the seeds, from which a search begins
constexpr std::size_t entered_passing = 8;   // of the rows that pass a filter
constexpr std::size_t check_interval = 256;  // rows expanded between checks for cancellation
constexpr std::size_t line_rows = 16;        // in a cache line

}  // namespace

void VisitedRows::begin(std::size_t rows)
{
    for (const std::uint32_t word : touched_) words_[word] = 0;
    touched_.clear();
    if (words_.size() < (rows + 63) / 64) words_.resize((rows + 63) / 64, 0);
}

void BestRows::insert(float score, std::uint32_t row, bool dead)
{
    if (std::isnan(score)) score = std::numeric_limits<float>::infinity();
    const Entry entry{score, row, false, dead};
    const auto place = std::upper_bound(entries_.begin(), entries_.end(), entry, [](const Entry& a, const Entry& b) {
        return a.score != b.score ? a.score < b.score : a.row < b.row;
    });
    next_ = std::min(next_, static_cast<std::size_t>(place - entries_.begin()));
    entries_.insert(place, entry);
    counted_ += dead ? 0 : 1;
    if (most_ > 0) adapt_limit();
    // Once the limit is reached, the last entry is a live row.
    while (counted_ > limit() || (counted_ == limit() && entries_.back().dead)) {
        counted_ -= entries_.back().dead ? 0 : 1;
        entries_.pop_back();
    }
    next_ = std::min(next_, entries_.size());
}

void BestRows::adapt_limit()
{
    const double share = static_cast<double>(counted_) / static_cast<double>(entries_.size());
    const double limit = filtered_limit(static_cast<double>(most_), static_cast<double>(wanted_), share);
    limit_ = std::max<std::size_t>(static_cast<std::size_t>(std::ceil(limit)), 1);
}

bool BestRows::lacks_live(double rate) const
{
    const double expected = rate * static_cast<double>(entries_.size());
    return expected >= 16 && 3 * static_cast<double>(counted_) < expected;
}

const BestRows::Entry* BestRows::expand_next(std::size_t within)
{
    while (next_ < entries_.size() && entries_[next_].expanded) ++next_;
    if (next_ >= std::min(within, entries_.size())) return nullptr;
    entries_[next_].expanded = true;
    return &entries_[next_];
}

namespace
{

class Traversal
{
public:
    Traversal(EdgeView edges, std::span<const std::uint32_t> seeds, DeadRows dead, const FilteredRows& filtered,
              const Scorer& scorer, const CancelToken* cancel, TraversalScratch& scratch)
        : edges_(edges),
          seeds_(seeds),
          dead_(dead),
          filtered_(filtered),
          scorer_(scorer),
          cancel_(cancel),
          scratch_(scratch)
    {
    }

    // Compares the seeds and enters the first.
    void begin(std::size_t ef)
    {
        scratch_.visited.begin(edges_.count());
        // Twice the number of dead rows of an even spread.
        scratch_.finished = true;
        if (filtered_.filter != nullptr) {
            scratch_.best.begin_filtered(ef, filtered_.wanted);
        } else {
            scratch_.best.begin(ef, dead_.alive == 0 ? 0 : 2 * ef * dead_.count / dead_.alive);
        }
        scratch_.scores.resize(std::max((seeds_.size() + 15) / 16 * 16, edges_.degree));
        scorer_.seed_scores(seeds_, scratch_.scores.data());
        TopK entered(most_entered(ef));
        entered.push_block(scratch_.scores.data(), seeds_.size(), 0);
        // All rows are reachable from the first seed, so that a search finds as many as there are.
        scratch_.visited.visit(seeds_[0]);
        insert(scratch_.scores[0], seeds_[0]);
        scratch_.compared = seeds_.size();
        entries_ = entered.take_sorted();
        if (filtered_.filter != nullptr) enter_passing();
    }

    // Expands rows until the first `within` are expanded. takes(score, row): whether a seed is among these.
    template <class Takes>
    void expand(std::size_t ef, std::size_t within, const Takes& takes)
    {
        const std::size_t end = std::min(most_entered(ef), entries_.size());
        const auto enters = [&] { return next_ < end && takes(entries_[next_].score, seeds_[entries_[next_].row]); };
        do {
            for (; enters(); ++next_) {
                const std::uint32_t row = seeds_[entries_[next_].row];
                if (scratch_.visited.visit(row)) insert(entries_[next_].score, row);
            }
            while (const BestRows::Entry* entry = scratch_.best.expand_next(within)) {
                if (is_vain()) return;
                expand_row(entry->row);
            }
        } while (enters());
    }

private:
    // Whether comparing the rows that pass promises more than going on.
    bool is_vain()
    {
        if (filtered_.filter == nullptr) return false;
        const bool vain = scratch_.compared > filtered_.most_compared || scratch_.best.lacks_live(filtered_.rate);
        if (vain) scratch_.finished = false;
        return vain;
    }

    // Enters the nearest of some rows that pass.
    void enter_passing()
    {
        const std::span<const std::uint32_t> some = filtered_.filter->some;
        if (some.empty()) return;
        scratch_.scores.resize(std::max(scratch_.scores.size(), some.size()));
        scorer_.scores(some, scratch_.scores.data());
        scratch_.compared += some.size();
        TopK nearest(entered_passing);
        nearest.push_block(scratch_.scores.data(), some.size(), 0);
        for (const Candidate& one : nearest.take_sorted())
            if (scratch_.visited.visit(some[one.row])) insert(one.score, some[one.row]);
    }

    bool leaves_out(std::uint32_t row) const
    {
        return bit_is_set(dead_.bitmap, row) || (filtered_.filter != nullptr && !filtered_.filter->passes(row));
    }

    // The number of seeds that may enter. Among dead rows the limit may rise.
    std::size_t most_entered(std::size_t ef) const
    {
        return (dead_.count > 0 ? BestRows::most_widened : 1) * std::max(ef, entered_seeds);
    }

    void insert(float score, std::uint32_t row)
    {
        scratch_.best.insert(score, row, leaves_out(row));
        // Its edges are read soon, if it stays.
        const std::span<const std::uint32_t> next = edges_.of(row);
        for (std::size_t i = 0; i < next.size(); i += line_rows) __builtin_prefetch(next.data() + i);
    }

    void expand_row(std::uint32_t expanded)
    {
        if (cancel_ != nullptr && ++expanded_ % check_interval == 0) cancel_->check();
        scratch_.rows.clear();
        for (const std::uint32_t row : edges_.of(expanded)) {
            if (row == no_neighbour) break;
            if (!scratch_.visited.visit(row)) continue;
            scratch_.rows.push_back(row);
            if (filtered_.filter != nullptr) filtered_.filter->prefetch(row);
        }
        scorer_.scores(scratch_.rows, scratch_.scores.data());
        scratch_.compared += scratch_.rows.size();
        for (std::size_t i = 0; i < scratch_.rows.size(); ++i) {
            if (scratch_.best.takes(scratch_.scores[i], scratch_.rows[i])) insert(scratch_.scores[i], scratch_.rows[i]);
        }
    }

    EdgeView edges_;
    std::span<const std::uint32_t> seeds_;
    DeadRows dead_;
    FilteredRows filtered_;
    const Scorer& scorer_;
    const CancelToken* cancel_;
    TraversalScratch& scratch_;
    std::vector<Candidate> entries_;  // the best seeds
    std::size_t next_ = 0;            // the first of them not yet entered
    std::size_t expanded_ = 0;
};

}  // namespace

void traverse(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, DeadRows dead, const Scorer& scorer,
              const CancelToken* cancel, TraversalScratch& scratch)
{
    traverse_filtered(edges, seeds, ef, dead, {}, scorer, cancel, scratch);
}

void traverse_filtered(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, DeadRows dead,
                       const FilteredRows& filtered, const Scorer& scorer, const CancelToken* cancel,
                       TraversalScratch& scratch)
{
    Traversal traversal(edges, seeds, dead, filtered, scorer, cancel, scratch);
    traversal.begin(ef);
    traversal.expand(ef, std::numeric_limits<std::size_t>::max(),
                     [&](float score, std::uint32_t row) { return scratch.best.takes(score, row); });
}

void traverse_rungs(EdgeView edges, std::span<const std::uint32_t> seeds, std::span<const std::size_t> efs,
                    const Scorer& scorer, const CancelToken* cancel, TraversalScratch& scratch,
                    const std::function<void(std::size_t)>& found)
{
    Traversal traversal(edges, seeds, {}, {}, scorer, cancel, scratch);
    traversal.begin(efs.back());
    for (std::size_t i = 0; i < efs.size(); ++i) {
        traversal.expand(efs[i], efs[i],
                         [&](float score, std::uint32_t row) { return scratch.best.takes_within(efs[i], score, row); });
        found(i);
    }
}

}  // namespace pgwarp
