#include "index/graph/byte_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "index/graph/graph.h"
#include "numeric/distance.h"
#include "numeric/sample.h"

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "index/graph/byte_rows.cpp"
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
constexpr std::size_t fewest_dimensions = 32;  // below, bytes in whole cache lines save little
constexpr std::size_t mean_sample = 4096;
constexpr std::size_t probed_rows = 256;
constexpr double most_error = 0.15;  // of what distances to near rows differ by
constexpr std::uint64_t probe_seed = 0x70726f62;

std::vector<float> mean_of(std::size_t rows, std::size_t dimensions, const ByteRows::RowOf& row_of)
{
    const std::vector<std::uint32_t> sample = sample_rows(rows, mean_sample, probe_seed);
    std::vector<double> sum(dimensions, 0.0);
    std::vector<float> row(dimensions);
    for (const std::uint32_t number : sample) {
        row_of(number, row.data());
        for (std::size_t d = 0; d < dimensions; ++d) sum[d] += row[d];
    }
    std::vector<float> mean(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d)
        mean[d] = static_cast<float>(sum[d] / static_cast<double>(std::max<std::size_t>(sample.size(), 1)));
    return mean;
}

double variance(std::span<const double> values)
{
    double sum = 0;
    double squares = 0;
    for (const double value : values) {
        sum += value;
        squares += value * value;
    }
    const auto count = static_cast<double>(values.size());
    return std::max(0.0, squares / count - sum / count * (sum / count));
}

}  // namespace

void ByteRows::build(Metric metric, std::size_t dimensions, std::span<const std::uint32_t> seeds, EdgeView edges,
                     const RowOf& row_of, ThreadPool& pool)
{
    clear();
    if (metric == Metric::l1 || is_of_bits(metric) || dimensions < fewest_dimensions) return;
    metric_ = metric;
    dimensions_ = dimensions;
    stride_ = (dimensions + line - 1) / line * line;
    mean_ = mean_of(edges.count(), dimensions, row_of);
    encode(edges.count(), row_of, pool);
    if (!tell_apart(edges, row_of)) return clear();
    seeds_.layout({static_cast<std::uint32_t>(seeds.size())}, dimensions, metric == Metric::l2);
    std::vector<float> row(dimensions);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        row_of(seeds[i], row.data());
        seeds_.set(i, row.data(), mean_.data());
    }
}

void ByteRows::clear()
{
    codes_.resize(0);
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
            const float scale = encode_bytes(row.data(), mean_.data(), dimensions_, code);
            std::int64_t squares = 0;
            for (std::size_t d = 0; d < dimensions_; ++d) squares += (code[d] - 128) * (code[d] - 128);
            const double squared = static_cast<double>(squares) * scale * scale;
            terms_[i] = {scale, metric_ == Metric::l2 ? static_cast<float>(squared) : 0};
        }
    });
}

// Seen from sampled rows: how far the scores of their neighbours are off, against how they differ.
bool ByteRows::tell_apart(EdgeView edges, const RowOf& row_of) const
{
    std::vector<float> own(dimensions_);
    std::vector<float> other(dimensions_);
    std::vector<float> approximate(edges.degree);
    GraphByteQuery query;
    double errors = 0;
    double spread = 0;
    for (const std::uint32_t row : sample_rows(edges.count(), probed_rows, probe_seed + 1)) {
        std::vector<std::uint32_t> near;
        for (const std::uint32_t to : edges.of(row))
            if (to != no_neighbour) near.push_back(to);
        if (near.size() < 2) continue;
        row_of(row, own.data());
        prepare(own.data(), query);
        scores(query, near, approximate.data());
        std::vector<double> exact(near.size());
        std::vector<double> off(near.size());
        for (std::size_t i = 0; i < near.size(); ++i) {
            row_of(near[i], other.data());
            exact[i] = score(metric_, own.data(), other.data(), dimensions_);
            off[i] = exact[i] - approximate[i];
        }
        errors += variance(off);
        spread += variance(exact);
    }
    return errors <= most_error * most_error * spread;
}

void ByteRows::prepare(const float* query, GraphByteQuery& out) const
{
    // The mean adds the same to all products with a query: it is taken from the rows alone.
    out.bytes.assign(query, metric_ == Metric::l2 ? mean_.data() : nullptr, dimensions_);
    out.padded.assign(stride_, 0);
    std::copy_n(out.bytes.values.begin(), dimensions_, out.padded.begin());
}

void ByteRows::scores(const GraphByteQuery& query, std::span<const std::uint32_t> rows, float* out) const
{
    constexpr std::size_t step = 32;
    constexpr std::size_t most_fetched = 8 * line;
    const float factor = (metric_ == Metric::l2 ? -2 : -1) * query.bytes.step;
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
            const Terms& terms = terms_[some[i]];
            const auto product = static_cast<float>(products[i] - query.bytes.offset);
            out[first + i] = terms.bias + factor * terms.scale * product;
        }
    }
}

void ByteRows::seed_scores(const GraphByteQuery& query, float* out) const
{
    seeds_.score(0, query.bytes, 0, out);
}

}  // namespace pgwarp
#endif
