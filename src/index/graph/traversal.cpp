#include "index/graph/traversal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "index/graph/graph.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t entered_seeds = 16;    // the best of the seeds, from which a search begins
constexpr std::size_t check_interval = 256;  // rows expanded between looks for a cancellation
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
    // Nothing lies behind the last that counts, once they are as many as asked for.
    while (counted_ > limit() || (counted_ == limit() && entries_.back().dead)) {
        counted_ -= entries_.back().dead ? 0 : 1;
        entries_.pop_back();
    }
    next_ = std::min(next_, entries_.size());
}

const BestRows::Entry* BestRows::expand_next()
{
    while (next_ < entries_.size() && entries_[next_].expanded) ++next_;
    if (next_ == entries_.size()) return nullptr;
    entries_[next_].expanded = true;
    return &entries_[next_];
}

void traverse(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, DeadRows dead, const Scorer& scorer,
              const CancelToken* cancel, TraversalScratch& scratch)
{
    scratch.visited.begin(edges.count());
    // Twice as many as a share of the dead like that of all rows.
    scratch.best.begin(ef, dead.alive == 0 ? 0 : 2 * ef * dead.count / dead.alive);
    const auto insert = [&](float score, std::uint32_t row) {
        scratch.best.insert(score, row, bit_is_set(dead.bitmap, row));
        // It will be read soon, if it stays.
        const std::span<const std::uint32_t> next = edges.of(row);
        for (std::size_t i = 0; i < next.size(); i += line_rows) __builtin_prefetch(next.data() + i);
    };
    scratch.scores.resize(std::max((seeds.size() + 15) / 16 * 16, edges.degree));
    scorer.seed_scores(seeds, scratch.scores.data());
    // Among dead rows more are kept than at first.
    TopK entered((dead.count > 0 ? BestRows::most_widened : 1) * std::max(ef, entered_seeds));
    entered.push_block(scratch.scores.data(), seeds.size(), 0);
    // All rows can be reached from the first seed, so that as many are found as there are.
    scratch.visited.visit(seeds[0]);
    insert(scratch.scores[0], seeds[0]);
    std::size_t expanded = 0;
    scratch.compared = seeds.size();
    const std::vector<Candidate> entries = entered.take_sorted();
    auto next = entries.begin();
    do {
        for (; next != entries.end() && scratch.best.takes(next->score); ++next)
            if (scratch.visited.visit(seeds[next->row])) insert(next->score, seeds[next->row]);
        while (const BestRows::Entry* entry = scratch.best.expand_next()) {
            if (cancel != nullptr && ++expanded % check_interval == 0) cancel->check();
            scratch.rows.clear();
            for (const std::uint32_t row : edges.of(entry->row)) {
                if (row == no_neighbour) break;
                if (scratch.visited.visit(row)) scratch.rows.push_back(row);
            }
            scorer.scores(scratch.rows, scratch.scores.data());
            scratch.compared += scratch.rows.size();
            for (std::size_t i = 0; i < scratch.rows.size(); ++i)
                if (scratch.best.takes(scratch.scores[i])) insert(scratch.scores[i], scratch.rows[i]);
        }
    } while (next != entries.end() && scratch.best.takes(next->score));
}

}  // namespace pgwarp
