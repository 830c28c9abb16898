// Selection of the k smallest with a buffer that is cut back to k when it is full.
#include "numeric/top_k.h"

#include <algorithm>
#include <cstring>

// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/top_k.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef PGWARP_NUMERIC_TOP_K_ONCE
#define PGWARP_NUMERIC_TOP_K_ONCE
namespace pgwarp::selection
{

// Progress of a scan for scores below a threshold.
struct Progress {
    std::size_t scanned;
    std::size_t found;
};

constexpr std::size_t batch = 256;  // candidates a scan finds before it returns

}  // namespace pgwarp::selection
#endif

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
constexpr std::size_t lane_count = hn::MaxLanes(Floats());

// Append the candidates of one vector of scores to `found`; return their number.
HWY_INLINE std::size_t append_below(hn::Vec<Floats> scores, hn::Mask<Floats> below, std::uint32_t row, Candidate* found)
{
    HWY_ALIGN float values[lane_count];
    HWY_ALIGN std::uint32_t rows[lane_count];
    const std::size_t count = hn::CompressStore(scores, below, Floats(), values);
    hn::CompressStore(hn::Iota(Words(), row), hn::RebindMask(Words(), below), Words(), rows);
    for (std::size_t i = 0; i < count; ++i) found[i] = {values[i], rows[i]};
    return count;
}

// Collect scores below the threshold until the end of the scores or until a batch is nearly full.
selection::Progress scan_below(const float* scores, std::size_t count, float threshold, std::uint32_t first_row,
                               Candidate* found)
{
    constexpr std::size_t step = 4 * lane_count;
    const Floats floats;
    const auto limit = hn::Set(floats, threshold);
    std::size_t total = 0;
    std::size_t i = 0;
    for (; i + step <= count && total + step <= selection::batch; i += step) {
        const auto part0 = hn::LoadU(floats, scores + i);
        const auto part1 = hn::LoadU(floats, scores + i + lane_count);
        const auto part2 = hn::LoadU(floats, scores + i + 2 * lane_count);
        const auto part3 = hn::LoadU(floats, scores + i + 3 * lane_count);
        const auto below0 = hn::Lt(part0, limit);
        const auto below1 = hn::Lt(part1, limit);
        const auto below2 = hn::Lt(part2, limit);
        const auto below3 = hn::Lt(part3, limit);
        const auto any = hn::Or(hn::Or(below0, below1), hn::Or(below2, below3));
        if (HWY_LIKELY(hn::AllFalse(floats, any))) continue;
        const std::uint32_t row = first_row + static_cast<std::uint32_t>(i);
        constexpr std::uint32_t lanes = lane_count;
        total += append_below(part0, below0, row, found + total);
        total += append_below(part1, below1, row + lanes, found + total);
        total += append_below(part2, below2, row + 2 * lanes, found + total);
        total += append_below(part3, below3, row + 3 * lanes, found + total);
    }
    if (i + step <= count) return {i, total};
    for (; i < count && total < selection::batch; ++i) {
        if (scores[i] < threshold) found[total++] = {scores[i], first_row + static_cast<std::uint32_t>(i)};
    }
    return {i, total};
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(scan_below);

TopK::TopK(std::size_t k) : k_(k)
{
    constexpr std::size_t most_reserved = 4096;
    buffer_.reserve(std::min<std::size_t>(2 * std::min(k, most_reserved) + 64, most_reserved));
    if (k == 0) threshold_ = -std::numeric_limits<float>::infinity();
}

// Cut as soon as there are k candidates, to get a threshold early, and then each time the buffer is full.
void TopK::insert(std::uint64_t key)
{
    buffer_.push_back(key);
    const bool first_threshold = buffer_.size() == k_ && threshold_ == std::numeric_limits<float>::infinity();
    if (first_threshold || buffer_.size() >= 2 * k_ + 64) cut();
}

// Keep the k smallest and lower the threshold to the largest of them.
void TopK::cut()
{
    if (k_ == 0) return buffer_.clear();
    if (buffer_.size() < k_) return;
    select_smallest(buffer_, k_);
    buffer_.resize(k_);
    threshold_ = candidate_of(buffer_.back()).score;
}

void TopK::push_block(const float* scores, std::size_t count, std::uint32_t first_row)
{
    Candidate found[selection::batch];
    while (count > 0) {
        const selection::Progress progress =
            HWY_DYNAMIC_DISPATCH(scan_below)(scores, count, threshold_, first_row, found);
        for (std::size_t i = 0; i < progress.found; ++i) push(found[i].score, found[i].row);
        scores += progress.scanned;
        count -= progress.scanned;
        first_row += static_cast<std::uint32_t>(progress.scanned);
    }
}

// Candidates with a score equal to the threshold are kept and compete by row, so the result does not depend on the
// order of merges.
void TopK::merge(const TopK& other)
{
    for (const std::uint64_t key : other.buffer_) {
        if (candidate_of(key).score <= threshold_) insert(key);
    }
}

std::vector<Candidate> TopK::take_sorted()
{
    cut();
    std::ranges::sort(buffer_);
    std::vector<Candidate> sorted(buffer_.size());
    std::ranges::transform(buffer_, sorted.begin(), candidate_of);
    return sorted;
}

}  // namespace pgwarp
#endif
