// One search along a graph (SONG, section 4): it expands the nearest row that is not expanded yet, by comparing its
// neighbours, until the best `ef` rows seen are all expanded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/method.h"

namespace pgwarp
{

// The rows that a search has seen. Only words with a set bit are cleared, so that a search costs no more than it sees.
class VisitedRows
{
public:
    // Forgets all rows, and makes room for rows below `rows`.
    void begin(std::size_t rows);
    // Marks a row; returns false if it was marked before.
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

// The best rows of a search in order of (score, row): at most `limit` live ones, or more among many dead rows. Dead
// rows are kept for expansion and are not counted.
class BestRows
{
public:
    static constexpr std::size_t most_widened = 4;  // largest factor of the limit, among dead rows

    struct Entry {
        float score;
        std::uint32_t row;
        bool expanded;
        bool dead;
    };

    // expected_dead: number of dead rows if these were spread evenly. With more of them, the live rows behind them may
    // lie in other directions, so each further dead row raises the limit by one, up to most_widened times the limit.
    void begin(std::size_t limit, std::size_t expected_dead)
    {
        limit_ = limit;
        expected_dead_ = expected_dead;
        counted_ = 0;
        next_ = 0;
        most_ = 0;
        entries_.clear();
    }
    // The same for rows that pass a filter as live ones, the `wanted` nearest of which are wanted. The limit is
    // filtered_limit() by the share of the rows kept now, those near the query.
    void begin_filtered(std::size_t limit, std::size_t wanted)
    {
        begin(limit, std::numeric_limits<std::size_t>::max());
        most_ = limit;
        wanted_ = std::min(wanted, limit);
    }
    // Whether a live row would be kept now.
    bool takes(float score, std::uint32_t row) const
    {
        return counted_ < limit() || comes_before(score, row, entries_.back());
    }
    // The same with the limit `within`, where no row is dead.
    bool takes_within(std::size_t within, float score, std::uint32_t row) const
    {
        return entries_.size() < within || comes_before(score, row, entries_[within - 1]);
    }
    void insert(float score, std::uint32_t row, bool dead);
    // Marks the nearest entry that is not expanded yet as expanded, and returns it; null when there is none among the
    // first `within`. Valid until the next insertion.
    const Entry* expand_next(std::size_t within);
    const std::vector<Entry>& entries() const { return entries_; }
    // Whether the share of live rows is far below `rate`.
    bool lacks_live(double rate) const;
    // The number of dead rows beyond expected_dead.
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
    void adapt_limit();
    std::size_t limit() const { return limit_ + std::min(excess_dead(), (most_widened - 1) * limit_); }
    std::size_t limit_ = 0;
    std::size_t expected_dead_ = 0;
    std::size_t counted_ = 0;
    std::size_t next_ = 0;    // all before are expanded
    std::size_t most_ = 0;    // with a filter: the limit where all rows pass; else 0
    std::size_t wanted_ = 0;  // with a filter
    std::vector<Entry> entries_;
};

// The number of rows that a search keeps of a share of all rows, to find the nearest `wanted` of these, where `ef`
// suffice without a filter. They are spread among wanted / share rows, over more clusters the smaller the share. A
// search for so many needs less room for each than one for few, sqrt(share) of it, but some to reach other clusters.
inline double filtered_limit(double ef, double wanted, double share)
{
    return wanted + (ef - wanted) * std::sqrt(share) + 3 * wanted * (1 - share) * (1 - share);
}

// The scores that a search compares.
class Scorer
{
public:
    virtual ~Scorer() = default;
    // out[i] = score of rows[i]; NaN counts as infinite.
    virtual void scores(std::span<const std::uint32_t> rows, float* out) const = 0;
    // The same for the seeds, in their order. `out` has room for whole blocks of 16.
    virtual void seed_scores(std::span<const std::uint32_t> seeds, float* out) const { scores(seeds, out); }
};

struct DeadRows {
    RowBitmap bitmap;
    std::size_t count = 0;  // dead rows that edges lead to
    std::size_t alive = 0;  // live rows
};

// A filter, whose failing rows are as dead ones.
struct FilteredRows {
    const RowFilter* filter = nullptr;  // null: none
    std::size_t wanted = 0;             // nearest rows that pass
    // A search that compares more rows ends unfinished, and so does one that finds far fewer rows that pass than this
    // share: then those lie far from the query, in directions that no near row has an edge to.
    std::size_t most_compared = 0;
    double rate = 0;
};

struct TraversalScratch {
    VisitedRows visited;
    BestRows best;
    std::vector<std::uint32_t> rows;
    std::vector<float> scores;
    std::size_t compared = 0;  // rows
    bool finished = true;      // false: a filtered search ended early
};

// Finds the `ef` best live rows, or all, into scratch.best, beginning at the best seeds.
void traverse(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, DeadRows dead, const Scorer& scorer,
              const CancelToken* cancel, TraversalScratch& scratch);

// The same among the rows that pass a filter. It begins at some of these, too: the nearest may lie far from the query.
void traverse_filtered(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, DeadRows dead,
                       const FilteredRows& filtered, const Scorer& scorer, const CancelToken* cancel,
                       TraversalScratch& scratch);

// The same for several ascending efs in one traversal, where no row is dead. A search for ef rows expands the nearest
// row that it has seen until the first ef are expanded, and a row once pushed out of these never returns: so a search
// that keeps more rows passes through the final state of the search for fewer. Calls found(i) when the first efs[i]
// entries of scratch.best are the result of a search for efs[i] rows.
void traverse_rungs(EdgeView edges, std::span<const std::uint32_t> seeds, std::span<const std::size_t> efs,
                    const Scorer& scorer, const CancelToken* cancel, TraversalScratch& scratch,
                    const std::function<void(std::size_t)>& found);

}  // namespace pgwarp
