// Recall by the number of candidates (candidate_recall.h) of an index of sets by their Jaccard distance, over the rows
// that stand out (protocol/standing_out.h).
//
// Where few sampled rows have others that stand out, such a row is made up: at half of the distance within which rows
// do. Its match count follows the binomial law.
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

// The curve, and what it was measured on: options of protocol/standing_out.h.
struct SetCalibration {
    Calibration curve;
    std::uint32_t standing_out;     // sampled rows that had others
    std::uint32_t standing_within;  // millionths; the median
};
void add_measured_options(const SetCalibration& calibration, ParameterList& options);

// Words of a sample at most: its index is made without a look at cancellation.
inline constexpr std::size_t most_sampled_words = std::size_t{1} << 22;
// Returns the number of sampled rows, of `wanted`, that have no more words.
std::size_t sample_within_words(std::size_t wanted, double words_a_row);

class SetRecall
{
public:
    // queries: the rows of the index with the numbers `own`, which are copied, and signatures [own.size()] of them.
    // `hashes` outlives this.
    SetRecall(const SetHashes& hashes, std::vector<std::uint32_t> own, const RowView& queries,
              std::vector<std::uint8_t> signatures);

    // Compares rows, the first of which has the number `first`, and their signatures with all queries. Rows of `dead`
    // don't count.
    void add(const RowView& rows, const std::uint8_t* signatures, std::size_t first, RowBitmap dead, ThreadPool& pool);
    // Of an index of the rows that were added.
    SetCalibration measured() const;

private:
    // The numbers of rows by similarity to a query, in steps of 1 / similarity_steps.
    static constexpr std::size_t similarity_steps = 1000;
    using Similarities = std::vector<std::uint32_t>;
    double standing_out_similarity_of(std::size_t query) const;

    const SetHashes& hashes_;
    std::vector<std::uint32_t> own_;
    CandidateRecall recall_;
    ElementIndex elements_;
    std::vector<std::size_t> sizes_;          // elements of each query
    std::vector<std::uint8_t> signatures_;    // of the queries
    std::vector<Similarities> similarities_;  // of each query
    std::size_t rows_ = 0;                    // live ones
};

}  // namespace pgwarp::matchcount
