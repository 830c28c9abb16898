// One search along a graph (SONG, section 4): the nearest row that was not expanded yet has its neighbours compared,
// until the best `ef` rows seen have all been expanded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/graph/edges.h"
#include "index/index.h"

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

// The best rows of a search in order of (score, row). Those that count are at most `limit`; dead rows among them are
// kept to go on from, and don't count.
class BestRows
{
public:
    struct Entry {
        float score;
        std::uint32_t row;
        bool expanded;
        bool dead;
    };

    void begin(std::size_t limit)
    {
        limit_ = limit;
        counted_ = 0;
        next_ = 0;
        entries_.clear();
    }
    // What has no better score is not taken any more.
    bool takes(float score) const { return counted_ < limit_ || score < entries_.back().score; }
    void insert(float score, std::uint32_t row, bool dead);
    // The nearest entry not expanded yet, then marked as such; null when there is none. Valid until the next insertion.
    const Entry* expand_next();
    const std::vector<Entry>& entries() const { return entries_; }

private:
    std::size_t limit_ = 0;
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

struct TraversalScratch {
    VisitedRows visited;
    BestRows best;
    std::vector<std::uint32_t> rows;
    std::vector<float> scores;
};

// Finds the `ef` best rows that are not dead, or all that there are, into scratch.best, from the best of the seeds.
void traverse(EdgeView edges, std::span<const std::uint32_t> seeds, std::size_t ef, RowBitmap dead,
              const Scorer& scorer, const CancelToken* cancel, TraversalScratch& scratch);

}  // namespace pgwarp
