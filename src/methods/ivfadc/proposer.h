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
    // Takes the rows' bytes from the index where it stores them, otherwise derives them from the store's vectors.
    // Returns false, and does nothing, when the store has no vectors either.
    bool build(Metric metric, std::size_t dimensions, std::span<const float> centroids, const InvertedLists& lists,
               const RowStore& store, StoredBytes* stored, ThreadPool& pool);

    // Appends, for each number of probes, that many nearest lists, ordered by bytes. Which lists these are is decided
    // by float centroids, as the calibration assumes, because bytes are coarse where clusters lie far apart. Fewer when
    // the query is out of float's range.
    void nearest_lists(const float* query, std::span<const std::size_t> probes, ThreadPool& pool,
                       std::vector<std::vector<Candidate>>& nearest) const;

    // Scores a list's rows, in whole blocks. Returns a limit: rows whose score is not below it are certainly farther
    // than `reach`, the operator's distance, squared for l2.
    float score(const float* query, std::uint32_t list, double reach, float* out) const;

    // Prefetches a list while another is scored.
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
    double centre_norm_ = 0;              // largest norm of a centroid around origin_
    double centre_scale_ = 0;             // largest scale of a centroid
    ByteLists rows_;                      // residuals to the centroids
    std::vector<float> centroid_weight_;  // 1 / |c|^2 of each, 0 for one of no length; not for l2
    double row_error_ = 0;                // largest distance between a residual and its decoded bytes
    double row_norm_ = 0;                 // largest norm of a decoded residual
};

}  // namespace pgwarp
