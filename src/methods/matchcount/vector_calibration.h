// Recall by the number of candidates (candidate_recall.h) of an index of vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/matchcount/candidate_recall.h"
#include "methods/matchcount/vector_hashes.h"

namespace pgwarp::matchcount
{

class VectorRecall
{
public:
    // queries [own.size()][dimensions]: the rows of the index with the numbers `own`. `hashes` outlives this.
    VectorRecall(const VectorHashes& hashes, std::vector<std::uint32_t> own, std::vector<float> queries);

    // Compares rows [count][dimensions], the first of which has the number `first`, and their signatures with all
    // queries. Rows of `dead` don't count.
    void add(const float* rows, const std::uint8_t* signatures, std::size_t count, std::size_t first, RowBitmap dead,
             ThreadPool& pool);
    // The curve of an index of the rows that were added.
    Calibration curve() const { return recall_.curve(rows_); }

private:
    const VectorHashes& hashes_;
    CandidateRecall recall_;
    std::vector<float> vectors_;
    std::vector<std::uint8_t> signatures_;  // of the queries
    std::size_t rows_ = 0;                  // live ones
};

}  // namespace pgwarp::matchcount
