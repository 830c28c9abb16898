// The proposing stage over bytes: ranks lists and rows by small exact integers, many rows an instruction.
#pragma once

#include <span>
#include <vector>

#include "methods/ivfadc/inverted_lists.h"
#include "methods/ivfadc/row_store.h"
#include "methods/ivfadc/stored_bytes.h"
#include "methods/rows/byte_lists.h"
#include "numeric/top_k.h"

namespace pgwarp
{

class Proposer
{
public:
    // Takes the rows' bytes from the index where it stores them, otherwise derives them from what the store keeps;
    // false, and nothing is done, when it keeps no vectors either.
    bool build(Metric metric, std::size_t dimensions, std::span<const float> centroids, const InvertedLists& lists,
               const RowStore& store, StoredBytes* stored, ThreadPool& pool);

    // The `probes` nearest lists, nearest first as bytes tell; which these are, centroids decide as they are, because
    // calibration counts on it: bytes are coarse where clusters lie far apart. Fewer when the query is out of float's
    // range.
    // Appends a list of them for each number of probes.
    void nearest_lists(const float* query, std::span<const std::size_t> probes, ThreadPool& pool,
                       std::vector<std::vector<Candidate>>& nearest) const;

    // Scores a list's rows, in whole blocks. Rows whose score is not below what it returns are farther than `reach` for
    // certain: it is the operator's distance, squared for l2.
    float score(const float* query, std::uint32_t list, double reach, float* out) const;

    // Before a list is scored while another is.
    void prefetch(std::uint32_t list) const { rows_.prefetch(list); }

    const ByteLists& rows() const { return rows_; }
    std::uint64_t memory_bytes() const
    {
        return centres_.memory_bytes() + rows_.memory_bytes() + centroid_weight_.size() * sizeof(float);
    }

private:
    void settle_last(const float* query, const ByteQuery& bytes, const std::vector<float>& scores,
                     std::vector<Candidate>& nearest) const;
    float farthest_score(const ByteQuery& bytes, float squared_norm, double reach) const;
    void weigh_rows(const InvertedLists& lists, const RowStore& store, ThreadPool& pool);
    void derive_rows(const InvertedLists& lists, const RowStore& store, ThreadPool& pool);

    Metric metric_ = Metric::l2;
    std::size_t dimensions_ = 0;
    std::span<const float> centroids_;
    std::vector<float> origin_;           // mean of the centroids: their bytes are relative to it
    ByteLists centres_;                   // one list of all centroids
    double centre_norm_ = 0;              // of the longest
    double centre_scale_ = 0;             // the largest
    ByteLists rows_;                      // residuals to the centroids
    std::vector<float> centroid_weight_;  // 1 / |c|^2 of each, 0 for one of no length; not for l2
    double row_error_ = 0;                // how far a residual may lie from what its bytes say
    double row_norm_ = 0;                 // of any residual, as its bytes say
};

}  // namespace pgwarp
