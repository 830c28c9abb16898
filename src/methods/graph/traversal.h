// One search along a graph (SONG, section 4): the nearest row that was not expanded yet has its neighbours compared,
// until the best `ef` rows seen have all been expanded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/method.h"

namespace pgwarp
{

// Rows a search has seen: cleared by going over what was set, so that a search costs no more than it sees.
class VisitedRows
{
public:
    // Makes room for so many rows and forgets all.
    void begin(std::size_t rows);
    // True the first time.
    bool visit(std::uint32_t row)
    {
        std::uint64_t& word = words_[row / 64];
        const std::uint64_t bit = std::uint64_t{1} << (row % 64);
        if ((word & bit) != 0) return false;
        if (word == 0) touched_.push_back(row / 64);
        word |= bit;
        return true;
    }

private:
    std::vector<std::uint64_t> words_;  // all 0 but for those in touched_
    std::vector<std::uint32_t> touched_;
};

// The best rows of a search in order of (score, row). Those that count are at most `limit`, more only among many dead
// rows; dead rows are kept to go on from, and don't count.
class BestRows
{
public:
    static constexpr std::size_t most_widened = 4;  // times as many are kept among dead rows, at most

    struct Entry {
        float score;
        std::uint32_t row;
        bool expanded;
        bool dead;
    };

    // expected_dead: dead rows among so many, were they anywhere. Where there are more of them, what lies behind them
    // may be in other directions: for each one row more is kept, up to four times as many.
    void begin(std::size_t limit, std::size_t expected_dead)
    {
        limit_ = limit;
        expected_dead_ = expected_dead;
        counted_ = 0;
        next_ = 0;
        entries_.clear();
    }
    // Rows that come no earlier than all that are kept are not taken any more.
    bool takes(float score, std::uint32_t row) const
    {
        return counted_ < limit() || comes_before(score, row, entries_.back());
    }
    // The same were only so many kept. Where no row is dead.
    bool takes_within(std::size_t within, float score, std::uint32_t row) const
    {
        return entries_.size() < within || comes_before(score, row, entries_[within - 1]);
    }
    void insert(float score, std::uint32_t row, bool dead);
    // The nearest entry not expanded yet, then marked as such; null when there is none among the first `within`. Valid
    // until the next insertion.
    const Entry* expand_next(std::size_t within);
    const std::vector<Entry>& entries() const { return entries_; }
    // How many more dead rows there are than expected.
    std::size_t excess_dead() const
    {
        const std::size_t dead = entries_.size() - counted_;
        return dead - std::min(dead, expected_dead_);
    }

private:
    static bool comes_before(float score, std::uint32_t row, const Entry& entry)
    {
        return score != entry.score ? score < entry.score : row < entry.row;
    }
    std::size_t limit() const { return limit_ + std::min(excess_dead(), (most_widened - 1) * limit_); }
    std::size_t limit_ = 0;
    std::size_t expected_dead_ = 0;
    std::size_t counted_ = 0;
    std::size_t next_ = 0;  // all before are expanded
    std::vector<Entry> entries_;
};

// What a search compares rows by.
class Scorer
{
public:
    virtual ~Scorer() = default;
    // out[i] = score of rows[i]; NaN counts as infinite.
    virtual void scores(std::span<const std::uint32_t> rows, float* out) const = 0;
    // The same of the seeds, in their order. `out` has room for whole blocks of 16.
    virtual void seed_scores(std::span<const std::uint32_t> seeds, float* out) const { scores(seeds, out); }
};

struct DeadRows {
    RowBitmap bitmap;
    std::size_t count = 0;  // of those that edges lead to
    std::size_t alive = 0;  // how many are not dead
};

struct TraversalScratch {
    VisitedRows visited;
    BestRows best;
    std::vector<std::uint32_t> rows;
    std::vector<float> scores;
    std::size_t compared = 0;  // rows
};

// Finds the `ef` best rows that are not dead, or all that there are, into scratch.best, from the best of the seeds.
void traverse(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, DeadRows dead, const Scorer& scorer,
              const CancelToken* cancel, TraversalScratch& scratch);

// The same for several numbers of rows in one traversal, where no row is dead. A search for ef rows expands the nearest
// row that it has seen until the first ef are expanded, and a row once pushed out of these never comes back among them:
// so a search that keeps more rows passes through the very state in which the one for fewer ends. efs ascend;
// found(i) is called when the first efs[i] entries of scratch.best are what a search for so many finds.
void traverse_rungs(EdgeView edges, std::span<const std::uint32_t> seeds, std::span<const std::size_t> efs,
                    const Scorer& scorer, const CancelToken* cancel, TraversalScratch& scratch,
                    const std::function<void(std::size_t)>& found);

}  // namespace pgwarp
