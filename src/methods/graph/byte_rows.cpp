// Scores of rows as bytes, four rows at a time, with run-time SIMD dispatch (Highway).
#include "methods/graph/byte_rows.h"

#include <algorithm>
#include <cstring>

#include "methods/graph/graph.h"

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/graph/byte_rows.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{

constexpr std::size_t kLine = 64;
constexpr std::size_t kTogether = 4;  // rows whose sums run side by side, to hide the latency of an addition

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3_ZEN4

HWY_INLINE void dot_four(const std::uint8_t* const (&rows)[kTogether], const std::int8_t* query, std::size_t stride,
                         std::int32_t* out)
{
    __m512i sums[kTogether];
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    for (std::size_t d = 0; d < stride; d += kLine) {
        const __m512i values = _mm512_loadu_si512(query + d);
        for (std::size_t r = 0; r < kTogether; ++r) {
            const __m512i code = _mm512_load_si512(rows[r] + d);
            // Every processor of this target has VNNI, but the compiler isn't told so: hence no intrinsic.
            asm("vpdpbusd %2, %1, %0" : "+v"(sums[r]) : "v"(code), "v"(values));
        }
    }
    // Transposed and added: four sums in each quarter, then the quarters.
    const __m512i low =
        _mm512_add_epi32(_mm512_unpacklo_epi32(sums[0], sums[1]), _mm512_unpackhi_epi32(sums[0], sums[1]));
    const __m512i high =
        _mm512_add_epi32(_mm512_unpacklo_epi32(sums[2], sums[3]), _mm512_unpackhi_epi32(sums[2], sums[3]));
    const __m512i quarters = _mm512_add_epi32(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    const __m256i halves = _mm256_add_epi32(_mm512_castsi512_si256(quarters), _mm512_extracti64x4_epi64(quarters, 1));
    const __m128i all = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
}

#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

// Even and odd bytes widened to 16 bits, multiplied and added pairwise: exact, where saturating byte products aren't.
HWY_INLINE void dot_four(const std::uint8_t* const (&rows)[kTogether], const std::int8_t* query, std::size_t stride,
                         std::int32_t* out)
{
    const __m256i low_bytes = _mm256_set1_epi16(0x00ff);
    __m256i sums[kTogether];
    for (auto& sum : sums) sum = _mm256_setzero_si256();
    for (std::size_t d = 0; d < stride; d += 32) {
        const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + d));
        const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(values, 8), 8);
        const __m256i odd = _mm256_srai_epi16(values, 8);
        for (std::size_t r = 0; r < kTogether; ++r) {
            const __m256i code = _mm256_load_si256(reinterpret_cast<const __m256i*>(rows[r] + d));
            const __m256i low = _mm256_madd_epi16(_mm256_and_si256(code, low_bytes), even);
            const __m256i high = _mm256_madd_epi16(_mm256_srli_epi16(code, 8), odd);
            sums[r] = _mm256_add_epi32(sums[r], _mm256_add_epi32(low, high));
        }
    }
    const __m256i halves = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    const __m128i all = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
}

#else

HWY_INLINE void dot_four(const std::uint8_t* const (&rows)[kTogether], const std::int8_t* query, std::size_t stride,
                         std::int32_t* out)
{
    for (std::size_t r = 0; r < kTogether; ++r) {
        std::int32_t sum = 0;
        for (std::size_t d = 0; d < stride; ++d) sum += rows[r][d] * query[d];
        out[r] = sum;
    }
}

#endif

// out[i] = product of row ids[i] and the query. `out` has room for whole groups.
void dot_rows(const std::uint8_t* rows, std::size_t stride, const std::uint32_t* ids, std::size_t count,
              const std::int8_t* query, std::int32_t* out)
{
    const auto row_at = [=](std::size_t i) { return rows + std::size_t{ids[std::min(i, count - 1)]} * stride; };
    for (std::size_t i = 0; i < count; i += kTogether) {
        const std::uint8_t* const four[kTogether] = {row_at(i), row_at(i + 1), row_at(i + 2), row_at(i + 3)};
        dot_four(four, query, stride, out + i);
    }
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(dot_rows);

namespace
{

constexpr std::size_t line = 64;

std::vector<float> mean_of(std::size_t rows, std::size_t dimensions, const ByteRows::RowOf& row_of)
{
    RowMean mean(dimensions);
    std::vector<float> row(dimensions);
    for (const std::uint32_t number : rows_of_mean(rows)) {
        row_of(number, row.data());
        mean.add(row.data());
    }
    return mean.mean();
}

}  // namespace

void ByteRows::build(Metric metric, std::size_t dimensions, std::span<const std::uint32_t> seeds, EdgeView edges,
                     const RowOf& row_of, ThreadPool& pool)
{
    clear();
    if (!may_compare_bytes(metric, dimensions)) return;
    metric_ = metric;
    dimensions_ = dimensions;
    stride_ = (dimensions + line - 1) / line * line;
    mean_ = mean_of(edges.count(), dimensions, row_of);
    if (!tell_apart(edges, row_of)) return;
    encode(edges.count(), row_of, pool);
    seeds_.layout({static_cast<std::uint32_t>(seeds.size())}, dimensions, metric == Metric::l2);
    std::vector<float> row(dimensions);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        row_of(seeds[i], row.data());
        seeds_.set(i, row.data(), mean_.data());
    }
}

void ByteRows::clear()
{
    codes_ = {};
    terms_ = {};
    seeds_ = {};
}

void ByteRows::encode(std::size_t rows, const RowOf& row_of, ThreadPool& pool)
{
    codes_.resize(rows * stride_);
    terms_.resize(rows);
    pool.parallel_for(rows, 1024, [&](std::size_t begin, std::size_t end) {
        std::vector<float> row(dimensions_);
        for (std::size_t i = begin; i < end; ++i) {
            row_of(static_cast<std::uint32_t>(i), row.data());
            std::uint8_t* code = codes_.data() + i * stride_;
            std::memset(code + dimensions_, 0, stride_ - dimensions_);
            terms_[i] = encode_byte_row(metric_, row.data(), mean_.data(), dimensions_, code);
        }
    });
}

bool ByteRows::tell_apart(EdgeView edges, const RowOf& row_of) const
{
    ByteProbe probe(metric_, mean_);
    std::vector<float> own(dimensions_);
    std::vector<float> near(edges.degree * dimensions_);
    for (const std::uint32_t row : rows_of_probe(edges.count())) {
        std::size_t count = 0;
        for (const std::uint32_t to : edges.of(row))
            if (to != no_neighbour) row_of(to, near.data() + count++ * dimensions_);
        row_of(row, own.data());
        probe.add(own.data(), near.data(), count);
    }
    return probe.tells_apart();
}

void ByteRows::prepare(const float* query, GraphByteQuery& out) const
{
    assign_byte_query(metric_, query, mean_.data(), dimensions_, out.bytes);
    out.padded.assign(stride_, 0);
    std::copy_n(out.bytes.values.begin(), dimensions_, out.padded.begin());
}

void ByteRows::scores(const GraphByteQuery& query, std::span<const std::uint32_t> rows, float* out) const
{
    constexpr std::size_t step = 32;
    constexpr std::size_t most_fetched = 8 * line;
    const float factor = byte_row_factor(metric_, query.bytes);
    std::int32_t products[step + 4];
    for (std::size_t first = 0; first < rows.size(); first += step) {
        const std::span<const std::uint32_t> some = rows.subspan(first, std::min(step, rows.size() - first));
        for (const std::uint32_t row : some) {
            const std::uint8_t* code = codes_.data() + row * stride_;
            for (std::size_t d = 0; d < std::min(stride_, most_fetched); d += line) __builtin_prefetch(code + d);
            __builtin_prefetch(&terms_[row]);
        }
        HWY_DYNAMIC_DISPATCH(dot_rows)
        (codes_.data(), stride_, some.data(), some.size(), query.padded.data(), products);
        for (std::size_t i = 0; i < some.size(); ++i) {
            const std::int32_t product = products[i] - query.bytes.offset;
            out[first + i] = byte_row_score(factor, terms_[some[i]], product);
        }
    }
}

void ByteRows::seed_scores(const GraphByteQuery& query, float* out) const
{
    seeds_.score(0, query.bytes, 0, out);
}

}  // namespace pgwarp
#endif
