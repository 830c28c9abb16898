// A fused product and selection over blocks of packed centroids, with run-time SIMD dispatch (Highway).
#include "numeric/nearest.h"

#include <algorithm>
#include <limits>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/nearest.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Indices = hn::RebindToUnsigned<Floats>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());
constexpr std::size_t kStep = 2 * kLanes;            // centroids at a time
constexpr std::size_t kRows = kLanes == 16 ? 8 : 6;  // rows at a time: all sums stay in registers
static_assert(PackedCentroids::block % kStep == 0);

struct Best {
    hn::Vec<Floats> score[kRows];
    hn::Vec<Indices> index[kRows];
};

// Keep the centroids of one vector whose score is strictly smaller.
HWY_INLINE void take_better(hn::Vec<Floats> score, hn::Vec<Indices> index, hn::Vec<Floats>& best,
                            hn::Vec<Indices>& best_index)
{
    const auto better = hn::Lt(score, best);
    best = hn::IfThenElse(better, score, best);
    best_index = hn::IfThenElse(hn::RebindMask(Indices(), better), index, best_index);
}

// Score kStep centroids of one block, from `values` on, against kRows rows.
HWY_INLINE void score_step(const float* values, const float* half_norms, std::size_t dimensions,
                           const float* const* rows, std::uint32_t first, Best& best)
{
    const Floats floats;
    hn::Vec<Floats> low[kRows];
    hn::Vec<Floats> high[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
        low[r] = hn::LoadU(floats, half_norms);
        high[r] = hn::LoadU(floats, half_norms + kLanes);
    }
    for (std::size_t d = 0; d < dimensions; ++d) {
        const auto left = hn::LoadU(floats, values + d * PackedCentroids::block);
        const auto right = hn::LoadU(floats, values + d * PackedCentroids::block + kLanes);
        for (std::size_t r = 0; r < kRows; ++r) {
            const auto value = hn::Set(floats, rows[r][d]);
            low[r] = hn::NegMulAdd(value, left, low[r]);
            high[r] = hn::NegMulAdd(value, right, high[r]);
        }
    }
    const auto low_index = hn::Iota(Indices(), first);
    const auto high_index = hn::Iota(Indices(), first + static_cast<std::uint32_t>(kLanes));
    for (std::size_t r = 0; r < kRows; ++r) {
        take_better(low[r], low_index, best.score[r], best.index[r]);
        take_better(high[r], high_index, best.score[r], best.index[r]);
    }
}

// Reduce the lanes of one row and merge the best into its result.
HWY_INLINE void reduce_row(hn::Vec<Floats> score, hn::Vec<Indices> index, std::uint32_t& result, float& result_score)
{
    HWY_ALIGN float lane_score[kLanes];
    HWY_ALIGN std::uint32_t lane_index[kLanes];
    hn::Store(score, Floats(), lane_score);
    hn::Store(index, Indices(), lane_index);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const bool better =
            lane_score[lane] < result_score || (lane_score[lane] == result_score && lane_index[lane] < result);
        if (!better) continue;
        result_score = lane_score[lane];
        result = lane_index[lane];
    }
}

void nearest(const PackedCentroids& centroids, const float* rows, std::size_t count, std::size_t stride,
             std::uint32_t* index, float* scores)
{
    const std::size_t dimensions = centroids.dimensions();
    // The number of blocks that the second-level cache holds together with the rows.
    const std::size_t chunk = std::max<std::size_t>(1, (std::size_t{256} << 10) / (dimensions * 128));
    std::fill_n(index, count, 0U);
    std::fill_n(scores, count, std::numeric_limits<float>::infinity());
    for (std::size_t first = 0; first < centroids.blocks(); first += chunk) {
        const std::size_t last = std::min(first + chunk, centroids.blocks());
        for (std::size_t i = 0; i < count; i += kRows) {
            const float* group[kRows];
            for (std::size_t r = 0; r < kRows; ++r) group[r] = rows + std::min(i + r, count - 1) * stride;
            Best best;
            for (std::size_t r = 0; r < kRows; ++r) {
                best.score[r] = hn::Set(Floats(), std::numeric_limits<float>::infinity());
                best.index[r] = hn::Zero(Indices());
            }
            for (std::size_t b = first; b < last; ++b) {
                for (std::size_t column = 0; column < PackedCentroids::block; column += kStep) {
                    score_step(centroids.values(b) + column, centroids.half_norms(b) + column, dimensions, group,
                               static_cast<std::uint32_t>(b * PackedCentroids::block + column), best);
                }
            }
            for (std::size_t r = 0; r < kRows && i + r < count; ++r)
                reduce_row(best.score[r], best.index[r], index[i + r], scores[i + r]);
        }
    }
}

void fill_table(const float* values, std::size_t dimensions, const float* row, float* table)
{
    constexpr std::size_t words = 256;
    const hn::ScalableTag<float> floats;
    for (std::size_t c = 0; c < words; c += hn::Lanes(floats)) {
        auto sum = hn::Zero(floats);
        for (std::size_t d = 0; d < dimensions; ++d)
            sum = hn::NegMulAdd(hn::Set(floats, row[d]), hn::LoadU(floats, values + d * words + c), sum);
        hn::StoreU(sum, floats, table + c);
    }
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(nearest);
HWY_EXPORT(fill_table);

PackedCentroids::PackedCentroids(std::span<const float> centroids, std::size_t dimensions)
    : count_(centroids.size() / dimensions), dimensions_(dimensions)
{
    const std::size_t blocks = (count_ + block - 1) / block;
    values_.assign(blocks * block * dimensions, 0.0F);
    half_norms_.assign(blocks * block, std::numeric_limits<float>::infinity());
    for (std::size_t c = 0; c < count_; ++c) {
        float* out = values_.data() + (c / block) * block * dimensions + c % block;
        double norm = 0;
        for (std::size_t d = 0; d < dimensions; ++d) {
            const float value = centroids[c * dimensions + d];
            out[d * block] = value;
            norm += static_cast<double>(value) * value;
        }
        half_norms_[c] = static_cast<float>(norm / 2);
    }
}

void find_nearest(const PackedCentroids& centroids, const float* rows, std::size_t count, std::size_t stride,
                  std::uint32_t* index)
{
    thread_local std::vector<float> scores;
    scores.resize(count);
    if (count > 0) HWY_DYNAMIC_DISPATCH(nearest)(centroids, rows, count, stride, index, scores.data());
}

void codeword_table(const float* values, std::size_t dimensions, const float* row, float* table)
{
    HWY_DYNAMIC_DISPATCH(fill_table)(values, dimensions, row, table);
}

}  // namespace pgwarp
#endif
