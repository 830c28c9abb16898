// Recall by the number of candidates (candidate_recall.h) of an index of sets by their Jaccard distance.
//
// The distances of all rows to the sample are exact: the elements of the sample have an inverted index, in which a row
// looks its elements up and counts those that each query shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/candidate_recall.h"
#include "methods/matchcount/set_hashes.h"

namespace pgwarp::matchcount
{

// The queries that have an element: an inverted index of a few sets.
class ElementIndex
{
public:
    // sets: valid, at most 65,536.
    explicit ElementIndex(const RowView& sets);

    // Returns the numbers of the sets that have the element, ascending.
    std::span<const std::uint16_t> find(std::uint64_t element) const;

private:
    struct Slot {
        std::uint64_t element = 0;
        std::uint32_t first = 0;
        std::uint32_t count = 0;  // 0: the slot is free
    };
    std::size_t home_of(std::uint64_t element) const;

    std::vector<Slot> slots_;  // a hash table by linear probing, at most half full
    std::vector<std::uint16_t> sets_;
};

class SetRecall
{
public:
    // queries: the rows of the index with the numbers `own`, which are copied. `hashes` outlives this.
    SetRecall(const SetHashes& hashes, std::vector<std::uint32_t> own, const RowView& queries);

    // Compares rows, the first of which has the number `first`, and their signatures with all queries. Rows of `dead`
    // don't count.
    void add(const RowView& rows, const std::uint8_t* signatures, std::size_t first, RowBitmap dead, ThreadPool& pool);
    // The curve of an index of the rows that were added.
    Calibration curve() const { return recall_.curve(rows_); }

private:
    const SetHashes& hashes_;
    CandidateRecall recall_;
    ElementIndex elements_;
    std::vector<std::size_t> sizes_;        // elements of each query
    std::vector<std::uint8_t> signatures_;  // of the queries
    std::size_t rows_ = 0;                  // live ones
};

}  // namespace pgwarp::matchcount
