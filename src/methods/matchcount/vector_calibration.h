// Recall by the number of candidates: of sample rows as queries, the ranks of their true neighbours in the order of
// match counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/matchcount/vector_hashes.h"
#include "methods/method.h"

namespace pgwarp::matchcount
{

inline constexpr std::size_t most_sampled_queries = 200;

class CandidateRecall
{
public:
    // queries [own.size()][dimensions]: the rows of the index with the numbers `own`. `hashes` outlives this.
    CandidateRecall(const VectorHashes& hashes, std::vector<std::uint32_t> own, std::vector<float> queries);

    // Compares rows [count][dimensions], the first of which has the number `first`, and their signatures with all
    // queries. Rows of `dead` don't count.
    void add(const float* rows, const std::uint8_t* signatures, std::size_t count, std::size_t first, RowBitmap dead,
             ThreadPool& pool);
    // The curve of an index of the rows that were added. A search with an effort compares so many rows, and returns the
    // nearest of them.
    Calibration curve() const;

private:
    struct Near {
        float score;
        std::uint32_t row;
        std::uint32_t count;
        friend bool operator<(const Near& a, const Near& b)
        {
            return a.score != b.score ? a.score < b.score : a.row < b.row;
        }
    };
    struct Query {
        std::vector<std::uint8_t> signature;
        std::vector<Near> nearest;                 // a heap
        std::vector<std::uint32_t> rows_of_count;  // [functions + 1]
        void add(const Near& row);
    };
    std::vector<double> ranks_of(const Query& query) const;

    const VectorHashes& hashes_;
    std::vector<std::uint32_t> own_;
    std::vector<float> vectors_;
    std::vector<Query> queries_;
    std::size_t rows_ = 0;  // live ones
};

}  // namespace pgwarp::matchcount
