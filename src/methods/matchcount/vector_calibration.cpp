// Scores and match counts of the sample, in one pass over the rows.
#include "methods/matchcount/vector_calibration.h"

#include "numeric/distance.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t tile_queries = 16;  // queries that a tile of rows is compared with

}  // namespace

VectorRecall::VectorRecall(const VectorHashes& hashes, std::vector<std::uint32_t> own, std::vector<float> queries)
    : hashes_(hashes),
      recall_(hashes.form().functions, std::move(own)),
      vectors_(std::move(queries)),
      signatures_(recall_.queries() * hashes.signature_bytes())
{
    for (std::size_t q = 0; q < recall_.queries(); ++q)
        hashes.sign(vectors_.data() + q * hashes.dimensions(), signatures_.data() + q * hashes.signature_bytes());
}

void VectorRecall::add(const float* rows, const std::uint8_t* signatures, std::size_t count, std::size_t first,
                       RowBitmap dead, ThreadPool& pool)
{
    const std::size_t dimensions = hashes_.dimensions();
    std::vector<float> norms(count);
    squared_norms(rows, count, dimensions, norms.data());
    rows_ += live_rows(first, count, dead);
    pool.parallel_for(recall_.queries(), tile_queries, [&](std::size_t begin, std::size_t end) {
        std::vector<float> scores((end - begin) * count);
        std::vector<std::uint16_t> counts(count);
        score_tile(hashes_.form().metric, vectors_.data() + begin * dimensions, end - begin, rows, norms.data(), count,
                   dimensions, scores.data());
        for (std::size_t q = begin; q < end; ++q) {
            hashes_.count_matches(signatures_.data() + q * hashes_.signature_bytes(), signatures, count, counts.data());
            recall_.add(q, std::span(scores).subspan((q - begin) * count, count), counts, first, dead);
        }
    });
}

}  // namespace pgwarp::matchcount
