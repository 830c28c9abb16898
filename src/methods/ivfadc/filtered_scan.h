// How far a search with a filter scans.
#pragma once

#include <algorithm>
#include <vector>

#include "methods/ivfadc/inverted_lists.h"
#include "methods/row_filter.h"
#include "numeric/top_k.h"

namespace pgwarp
{

// The rows scanned for a query with a filter, and about those of them that pass.
class FilteredScan
{
public:
    FilteredScan(const RowFilter& filter, std::size_t rows)
        : filter_(filter), rate_(static_cast<double>(filter.passing) / static_cast<double>(rows))
    {
    }
    void count(const InvertedLists& lists, std::uint32_t list)
    {
        for (std::size_t at = lists.begin(list) + next_; at < lists.end(list); at += sampled)
            passed_ += filter_.passes(lists.row_at(at)) ? sampled : 0;
        const std::size_t rows = lists.end(list) - lists.begin(list);
        next_ = (next_ + sampled - rows % sampled) % sampled;
        scanned_ += rows;
    }
    // The lists so far are those of a search without a filter.
    void end_usual() { usual_ = scanned_; }
    std::size_t scanned() const { return scanned_; }
    std::size_t usual() const { return usual_; }
    // Whether as many rows that pass were scanned as a search without a filter scans in all: the fewer pass, the more,
    // up to twice as many, because the wanted ones lie in more lists.
    bool has_enough() const
    {
        const double rate = static_cast<double>(passed_) / std::max(static_cast<double>(scanned_), 1.0);
        return static_cast<double>(passed_) >= static_cast<double>(usual_) * (2 - std::min(rate, 1.0));
    }
    // Whether far fewer rows pass than of all. Then those lie far from the query, and which lists hold the nearest is
    // hard to tell.
    bool has_too_few() const
    {
        const double expected = rate_ * static_cast<double>(scanned_);
        return expected >= 16 * sampled && 3 * static_cast<double>(passed_) < expected;
    }

private:
    static constexpr std::size_t sampled = 8;  // one of so many rows is tested
    const RowFilter& filter_;
    double rate_;           // of all rows, that pass
    std::size_t next_ = 0;  // the next tested row in the next list
    std::size_t scanned_ = 0;
    std::size_t passed_ = 0;
    std::size_t usual_ = 0;
};

// Appends those of `all` lists that are not among the probes yet.
inline void append_others(const std::vector<Candidate>& all, std::vector<Candidate>& probes)
{
    std::vector<std::uint32_t> known;
    for (const Candidate& probe : probes) known.push_back(probe.row);
    std::sort(known.begin(), known.end());
    for (const Candidate& probe : all)
        if (!std::binary_search(known.begin(), known.end(), probe.row)) probes.push_back(probe);
}

}  // namespace pgwarp
