// Scores of blocks of sixteen rows as bytes, with run-time SIMD dispatch (Highway), and the encoding of rows.
#include "methods/rows/byte_lists.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/rows/byte_lists.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBlock = ByteLists::block;

using Terms = ByteTerms;

HWY_INLINE std::int32_t load_group(const std::int8_t* query)
{
    std::int32_t group;
    std::memcpy(&group, query, sizeof(group));
    return group;
}

// Turns sixteen sums of products into scores.
HWY_INLINE void finish_block(const std::int32_t* sums, const float* scale, const float* bias, const Terms& terms,
                             float* out)
{
    const hn::CappedTag<float, kBlock> floats;
    const hn::RebindToSigned<decltype(floats)> integers;
    const auto factor = hn::Set(floats, terms.factor);
    const auto base = hn::Set(floats, terms.base);
    const auto bias_weight = hn::Set(floats, terms.bias_weight);
    const auto offset = hn::Set(integers, terms.offset);
    for (std::size_t i = 0; i < kBlock; i += hn::Lanes(floats)) {
        const auto dot = hn::ConvertTo(floats, hn::Sub(hn::LoadU(integers, sums + i), offset));
        const auto weight = hn::Mul(factor, hn::LoadU(floats, scale + i));
        const auto rest = hn::MulAdd(bias_weight, hn::LoadU(floats, bias + i), base);
        hn::StoreU(hn::MulAdd(weight, dot, rest), floats, out + i);
    }
}

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3_ZEN4

// `Blocks` blocks at once: independent sums hide the latency of the dot-product instruction.
template <std::size_t Blocks>
HWY_INLINE void score_blocks(const std::uint8_t* codes, std::size_t groups, const Terms& terms, const float* scale,
                             const float* bias, float* out)
{
    __m512i sums[Blocks];
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    const std::size_t stride = groups * 64;
    for (std::size_t g = 0; g < groups; ++g) {
        const __m512i query = _mm512_set1_epi32(load_group(terms.query + g * 4));
        for (std::size_t b = 0; b < Blocks; ++b) {
            const __m512i code = _mm512_load_si512(codes + b * stride + g * 64);
            // Every processor of this target has VNNI, but the compiler isn't told so: hence no intrinsic.
            asm("vpdpbusd %2, %1, %0" : "+v"(sums[b]) : "v"(code), "v"(query));
        }
    }
    for (std::size_t b = 0; b < Blocks; ++b) {
        alignas(64) std::int32_t stored[kBlock];
        _mm512_store_si512(stored, sums[b]);
        finish_block(stored, scale + b * kBlock, bias + b * kBlock, terms, out + b * kBlock);
    }
}

#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

// Even and odd bytes widened to 16 bits, multiplied and added pairwise: exact, where saturating byte products aren't.
template <std::size_t Blocks>
HWY_INLINE void score_blocks(const std::uint8_t* codes, std::size_t groups, const Terms& terms, const float* scale,
                             const float* bias, float* out)
{
    const __m256i low_bytes = _mm256_set1_epi16(0x00ff);
    const std::size_t stride = groups * 64;
    __m256i sums[Blocks][2];
    for (auto& sum : sums) sum[0] = sum[1] = _mm256_setzero_si256();
    for (std::size_t g = 0; g < groups; ++g) {
        const __m256i query = _mm256_set1_epi32(load_group(terms.query + g * 4));
        const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(query, 8), 8);
        const __m256i odd = _mm256_srai_epi16(query, 8);
        for (std::size_t b = 0; b < Blocks; ++b) {
            for (std::size_t half = 0; half < 2; ++half) {
                const __m256i code =
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + b * stride + g * 64 + half * 32));
                const __m256i low = _mm256_madd_epi16(_mm256_and_si256(code, low_bytes), even);
                const __m256i high = _mm256_madd_epi16(_mm256_srli_epi16(code, 8), odd);
                sums[b][half] = _mm256_add_epi32(sums[b][half], _mm256_add_epi32(low, high));
            }
        }
    }
    for (std::size_t b = 0; b < Blocks; ++b) {
        alignas(32) std::int32_t stored[kBlock];
        _mm256_store_si256(reinterpret_cast<__m256i*>(stored), sums[b][0]);
        _mm256_store_si256(reinterpret_cast<__m256i*>(stored + 8), sums[b][1]);
        finish_block(stored, scale + b * kBlock, bias + b * kBlock, terms, out + b * kBlock);
    }
}

#else

template <std::size_t Blocks>
HWY_INLINE void score_blocks(const std::uint8_t* codes, std::size_t groups, const Terms& terms, const float* scale,
                             const float* bias, float* out)
{
    const std::size_t stride = groups * 64;
    for (std::size_t b = 0; b < Blocks; ++b) {
        std::int32_t sums[kBlock] = {};
        for (std::size_t g = 0; g < groups; ++g) {
            const std::uint8_t* code = codes + b * stride + g * 64;
            for (std::size_t i = 0; i < kBlock; ++i) {
                for (std::size_t d = 0; d < 4; ++d) sums[i] += code[i * 4 + d] * terms.query[g * 4 + d];
            }
        }
        finish_block(sums, scale + b * kBlock, bias + b * kBlock, terms, out + b * kBlock);
    }
}

#endif

void score_list(const std::uint8_t* codes, std::size_t blocks, std::size_t groups, const Terms& terms,
                const float* scale, const float* bias, float* out)
{
    std::size_t b = 0;
    for (; b + 4 <= blocks; b += 4) {
        score_blocks<4>(codes + b * groups * 64, groups, terms, scale + b * kBlock, bias + b * kBlock,
                        out + b * kBlock);
    }
    for (; b < blocks; ++b) {
        score_blocks<1>(codes + b * groups * 64, groups, terms, scale + b * kBlock, bias + b * kBlock,
                        out + b * kBlock);
    }
}

// values = a - factor * b; squared norm and largest magnitude on the way. The factor 1 rounds as a difference does.
void subtract(const float* a, const float* b, float factor, std::size_t dimensions, float* values, float* norm,
              float* largest)
{
    const hn::ScalableTag<float> floats;
    const std::size_t lanes = hn::Lanes(floats);
    const auto times = hn::Set(floats, factor);
    auto sum = hn::Zero(floats);
    auto most = hn::Zero(floats);
    std::size_t d = 0;
    for (; d + lanes <= dimensions; d += lanes) {
        auto value = hn::LoadU(floats, a + d);
        if (b != nullptr) value = hn::NegMulAdd(times, hn::LoadU(floats, b + d), value);
        hn::StoreU(value, floats, values + d);
        sum = hn::MulAdd(value, value, sum);
        most = hn::Max(most, hn::Abs(value));
    }
    *norm = hn::GetLane(hn::SumOfLanes(floats, sum));
    *largest = hn::GetLane(hn::MaxOfLanes(floats, most));
    for (; d < dimensions; ++d) {
        values[d] = b != nullptr ? a[d] - factor * b[d] : a[d];
        *norm += values[d] * values[d];
        *largest = std::max(*largest, std::fabs(values[d]));
    }
}

// Rounds to signed bytes; returns their sum.
std::int32_t to_bytes(const float* values, std::size_t dimensions, float inverse_step, std::int8_t* out)
{
    const hn::ScalableTag<float> floats;
    const hn::RebindToSigned<decltype(floats)> integers;
    const hn::Rebind<std::int8_t, decltype(floats)> bytes;
    const std::size_t lanes = hn::Lanes(floats);
    const auto inverse = hn::Set(floats, inverse_step);
    auto sums = hn::Zero(integers);
    std::size_t d = 0;
    for (; d + lanes <= dimensions; d += lanes) {
        const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(floats, values + d), inverse));
        sums = hn::Add(sums, rounded);
        hn::StoreU(hn::DemoteTo(bytes, rounded), bytes, out + d);
    }
    std::int32_t sum = hn::GetLane(hn::SumOfLanes(integers, sums));
    for (; d < dimensions; ++d) {
        out[d] = static_cast<std::int8_t>(std::lrintf(std::clamp(values[d] * inverse_step, -128.0F, 127.0F)));
        sum += out[d];
    }
    return sum;
}

std::size_t indices_below(const float* scores, std::size_t count, float threshold, std::uint32_t* out)
{
    const hn::CappedTag<float, 16> floats;
    const hn::RebindToUnsigned<decltype(floats)> integers;
    const std::size_t lanes = hn::Lanes(floats);
    const auto limit = hn::Set(floats, threshold);
    std::size_t found = 0;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto below = hn::Lt(hn::LoadU(floats, scores + i), limit);
        if (hn::AllFalse(floats, below)) continue;
        const auto index = hn::Iota(integers, static_cast<std::uint32_t>(i));
        found += hn::CompressStore(index, hn::RebindMask(integers, below), integers, out + found);
    }
    for (; i < count; ++i) {
        if (scores[i] < threshold) out[found++] = static_cast<std::uint32_t>(i);
    }
    return found;
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(score_list);
HWY_EXPORT(subtract);
HWY_EXPORT(to_bytes);
HWY_EXPORT(indices_below);

namespace
{

// Returns the step that maps the largest magnitude to 127. It is tiny for a vector of zeros, so that its inverse stays
// finite, and limited where differences overflow, so that no byte decodes to infinity.
float step_for(float largest)
{
    return std::min(std::max(largest, 1e-30F) / 127, std::numeric_limits<float>::max() / 128);
}

}  // namespace

void ByteQuery::assign(const float* a, const float* b, std::size_t dimensions, float weight)
{
    thread_local std::vector<float> difference;
    difference.resize(dimensions);
    values.resize((dimensions + 3) / 4 * 4);
    float largest = 0;
    HWY_DYNAMIC_DISPATCH(subtract)(a, b, weight, dimensions, difference.data(), &squared_norm, &largest);
    bias_weight = weight;
    step = step_for(largest);
    offset = 128 * HWY_DYNAMIC_DISPATCH(to_bytes)(difference.data(), dimensions, 1 / step, values.data());
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(dimensions), values.end(), std::int8_t{0});
}

void ByteLists::layout(const std::vector<std::uint32_t>& sizes, std::size_t dimensions, bool squared)
{
    dimensions_ = dimensions;
    groups_ = (dimensions + 3) / 4;
    squared_ = squared;
    size_ = sizes;
    begin_.assign(1, 0);
    longest_ = 0;
    for (const std::uint32_t size : sizes) {
        const std::size_t room = (size + block - 1) / block * block;
        longest_ = std::max(longest_, room);
        begin_.push_back(begin_.back() + room);
    }
    codes_.resize(slots() * groups_ * 4);
    scale_.assign(slots(), 0.0F);
    bias_.assign(slots(), std::numeric_limits<float>::infinity());
    // Padding is read by whole blocks.
    for (std::size_t list = 0; list < sizes.size(); ++list) {
        if (size_[list] % block == 0) continue;
        const std::size_t last = begin_[list + 1] / block - 1;
        std::memset(codes_.data() + last * groups_ * 64, 128, groups_ * 64);
    }
}

float encode_bytes(const float* a, const float* b, std::size_t dimensions, std::uint8_t* out)
{
    thread_local std::vector<float> difference;
    thread_local std::vector<std::int8_t> bytes;
    difference.resize(dimensions);
    bytes.resize(dimensions);
    float norm = 0;
    float largest = 0;
    HWY_DYNAMIC_DISPATCH(subtract)(a, b, 1, dimensions, difference.data(), &norm, &largest);
    const float step = step_for(largest);
    HWY_DYNAMIC_DISPATCH(to_bytes)(difference.data(), dimensions, 1 / step, bytes.data());
    for (std::size_t d = 0; d < dimensions; ++d) out[d] = static_cast<std::uint8_t>(bytes[d] + 128);
    return step;
}

void ByteLists::set(std::size_t slot, const float* a, const float* b)
{
    thread_local std::vector<std::uint8_t> bytes;
    bytes.resize(dimensions_);
    const float step = encode_bytes(a, b, dimensions_, bytes.data());
    put(slot, 0, dimensions_, bytes.data());
    finish(slot, step);
}

void ByteLists::put(std::size_t slot, std::size_t first, std::size_t count, const std::uint8_t* bytes)
{
    std::uint8_t* out = row_of(slot);
    for (std::size_t i = 0; i < count; ++i) out[(first + i) / 4 * 64 + (first + i) % 4] = bytes[i];
}

void ByteLists::finish(std::size_t slot, float scale)
{
    std::uint8_t* row = row_of(slot);
    for (std::size_t d = dimensions_; d < groups_ * 4; ++d) row[d / 4 * 64 + d % 4] = 128;
    scale_[slot] = scale;
    bias_[slot] = 0;
    if (!squared_) return;
    std::int64_t squares = 0;
    for (std::size_t d = 0; d < dimensions_; ++d) {
        const int value = row[d / 4 * 64 + d % 4] - 128;
        squares += value * value;
    }
    bias_[slot] = static_cast<float>(static_cast<double>(squares) * scale * scale);
}

void ByteLists::decode(std::size_t slot, const float* b, float* out) const
{
    const std::uint8_t* row = codes_.data() + slot / block * groups_ * 64 + slot % block * 4;
    const float scale = scale_[slot];
    for (std::size_t d = 0; d < dimensions_; ++d) {
        out[d] = scale * static_cast<float>(row[d / 4 * 64 + d % 4] - 128) + b[d];
    }
}

void ByteLists::score(std::size_t list, std::size_t first, std::size_t count, const ByteQuery& query, float base,
                      float* out) const
{
    const std::size_t slot = begin_[list] + first;
    const ByteTerms terms{query.values.data(), query.offset, squared_ ? -2 * query.step : -query.step, base,
                          query.bias_weight};
    HWY_DYNAMIC_DISPATCH(score_list)
    (codes_.data() + slot / block * groups_ * 64, count / block, groups_, terms, scale_.data() + slot,
     bias_.data() + slot, out);
}

void ByteLists::prefetch(std::size_t list) const
{
    constexpr std::size_t line = 64;
    constexpr std::size_t most = 48 * line;  // the hardware prefetcher loads the rest
    if (size_[list] == 0) return;
    const std::size_t first = begin_[list];
    const std::uint8_t* codes = codes_.data() + first / block * groups_ * 64;
    const std::size_t bytes = std::min(most, padded(list) / block * groups_ * 64);
    __builtin_prefetch(scale_.data() + first);
    __builtin_prefetch(bias_.data() + first);
    for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(codes + at);
}

float ByteLists::largest_scale() const
{
    return scale_.empty() ? 0 : *std::max_element(scale_.begin(), scale_.end());
}

std::uint64_t ByteLists::memory_bytes() const
{
    return codes_.size() + (scale_.size() + bias_.size()) * sizeof(float) +
           begin_.size() * (sizeof(std::size_t) + sizeof(std::uint32_t));
}

std::size_t select_below(const float* scores, std::size_t count, float threshold, std::uint32_t* out)
{
    return HWY_DYNAMIC_DISPATCH(indices_below)(scores, count, threshold, out);
}

}  // namespace pgwarp
#endif
