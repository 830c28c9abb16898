// Scores of packed vectors, and sums of a query's terms over codes.
#include "methods/pqtree/search_kernels.h"

#include <algorithm>
#include <limits>

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/pqtree/search_kernels.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, packed_block>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());

// Four sums hide the latency of additions.
void score_columns(bool squared, const float* values, std::size_t count, std::size_t dimensions, const float* query,
                   float* out)
{
    const Floats floats;
    for (std::size_t at = 0; at < count; at += packed_block, values += dimensions * packed_block) {
        for (std::size_t lane = 0; lane < packed_block; lane += kLanes) {
            hn::Vec<Floats> sums[4] = {hn::Zero(floats), hn::Zero(floats), hn::Zero(floats), hn::Zero(floats)};
            const auto add = [&](std::size_t d, hn::Vec<Floats>& sum) {
                const auto value = hn::LoadU(floats, values + d * packed_block + lane);
                const auto own = hn::Set(floats, query[d]);
                const auto difference = hn::Sub(own, value);
                sum = squared ? hn::MulAdd(difference, difference, sum) : hn::NegMulAdd(own, value, sum);
            };
            std::size_t d = 0;
            for (; d + 4 <= dimensions; d += 4)
                for (std::size_t i = 0; i < 4; ++i) add(d + i, sums[i]);
            for (; d < dimensions; ++d) add(d, sums[0]);
            const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
            hn::StoreU(sum, floats, out + at + lane);
        }
    }
}

// Writes the terms of a line part in floats; returns the range of its bases and the largest slope.
TermRange float_terms(const LineArrays& lines, const float* scores, float* bases, float* slopes)
{
    const Floats floats;
    const hn::RebindToSigned<Floats> words;
    auto least = hn::Set(floats, std::numeric_limits<float>::max());
    auto most = hn::Set(floats, -std::numeric_limits<float>::max());
    auto steepest = hn::Zero(floats);
    for (std::size_t i = 0; i < lines.from.size(); i += kLanes) {
        const auto from = hn::GatherIndex(floats, scores, hn::LoadU(words, lines.from.data() + i));
        const auto to = hn::GatherIndex(floats, scores, hn::LoadU(words, lines.to.data() + i));
        const auto length = hn::LoadU(floats, lines.length.data() + i);
        const auto first = hn::LoadU(floats, lines.first.data() + i);
        const auto difference = hn::Sub(hn::Sub(to, from), length);
        const auto moved = hn::Mul(first, length);
        const auto base = hn::MulAdd(first, hn::Add(difference, moved), from);
        const auto slope =
            hn::Mul(hn::LoadU(floats, lines.step.data() + i), hn::Add(difference, hn::Add(moved, moved)));
        hn::StoreU(base, floats, bases + i);
        hn::StoreU(slope, floats, slopes + i);
        least = hn::Min(least, base);
        most = hn::Max(most, base);
        steepest = hn::Max(steepest, hn::Abs(slope));
    }
    return {hn::GetLane(hn::MinOfLanes(floats, least)), hn::GetLane(hn::MaxOfLanes(floats, most)),
            hn::GetLane(hn::MaxOfLanes(floats, steepest))};
}

// Packs the terms of a line part: (base - least) / (unit * weight) and slope / unit, rounded.
void round_terms(const float* bases, const float* slopes, std::size_t count, float least, float per_base,
                 float per_slope, std::int32_t* out)
{
    const Floats floats;
    const hn::RebindToSigned<Floats> words;
    for (std::size_t i = 0; i < count; i += kLanes) {
        const auto base =
            hn::Mul(hn::Sub(hn::LoadU(floats, bases + i), hn::Set(floats, least)), hn::Set(floats, per_base));
        const auto slope = hn::Mul(hn::LoadU(floats, slopes + i), hn::Set(floats, per_slope));
        const auto low = hn::And(hn::NearestInt(slope), hn::Set(words, 0xffff));
        hn::StoreU(hn::Or(hn::ShiftLeft<16>(hn::NearestInt(base)), low), words, out + i);
    }
}

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3_ZEN4

constexpr std::size_t kGroup = 64;  // rows at a time
constexpr std::size_t kParts = 16;  // line parts at a time

// The terms of a line part as four tables of bytes: of the lower and the upper bytes of slopes and of bases.
struct TermBytes {
    alignas(64) std::uint8_t planes[4][256];
};

void split_terms(const std::int32_t* words, TermBytes& out)
{
    for (std::size_t i = 0; i < 256; i += 16) {
        __m512i term = _mm512_loadu_si512(words + i);
        for (auto& plane : out.planes) {
            _mm_store_si128(reinterpret_cast<__m128i*>(plane + i), _mm512_cvtepi32_epi8(term));
            term = _mm512_srli_epi32(term, 8);
        }
    }
}

// Looks 64 bytes up in a table of 256.
HWY_INLINE __m512i look_up(const std::uint8_t* plane, __m512i index, __mmask64 upper)
{
    const __m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(plane), index, _mm512_load_si512(plane + 64));
    const __m512i high =
        _mm512_permutex2var_epi8(_mm512_load_si512(plane + 128), index, _mm512_load_si512(plane + 192));
    return _mm512_mask_blend_epi8(upper, low, high);
}

// out[i][r] = byte i of row r, for 64 rows of 16 bytes: four rounds of a perfect shuffle.
HWY_INLINE void transpose(const std::uint8_t* const* rows, std::size_t offset, std::uint8_t out[kParts][kGroup])
{
    __m512i now[kParts];
    __m512i next[kParts];
    for (std::size_t i = 0; i < kParts; ++i) {
        const auto quarter = [&](std::size_t q) {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[q * 16 + i] + offset));
        };
        __m512i all = _mm512_castsi128_si512(quarter(0));
        all = _mm512_inserti32x4(all, quarter(1), 1);
        all = _mm512_inserti32x4(all, quarter(2), 2);
        now[i] = _mm512_inserti32x4(all, quarter(3), 3);
    }
    for (std::size_t round = 0; round < 4; ++round) {
        for (std::size_t i = 0; i < kParts / 2; ++i) {
            next[2 * i] = _mm512_unpacklo_epi8(now[i], now[i + kParts / 2]);
            next[2 * i + 1] = _mm512_unpackhi_epi8(now[i], now[i + kParts / 2]);
        }
        for (std::size_t i = 0; i < kParts; ++i) now[i] = next[i];
    }
    for (std::size_t i = 0; i < kParts; ++i) _mm512_store_si512(out[i], now[i]);
}

// Adds base * weight + slope * place of a line part for 64 rows. Sums of quarter q are those of rows 16 i + 4 q + j, in
// element 4 i + j.
HWY_INLINE void add_part(const TermBytes& terms, const std::uint8_t* lines, const std::uint8_t* places, __m512i weight,
                         __m512i sums[4])
{
    const __m512i line = _mm512_load_si512(lines);
    const __m512i place = _mm512_load_si512(places);
    const __mmask64 upper = _mm512_movepi8_mask(line);
    __m512i term[4];
    for (std::size_t i = 0; i < 4; ++i) term[i] = look_up(terms.planes[i], line, upper);
    const __m512i zero = _mm512_setzero_si512();
    const __m512i slope[2] = {_mm512_unpacklo_epi8(term[0], term[1]), _mm512_unpackhi_epi8(term[0], term[1])};
    const __m512i base[2] = {_mm512_unpacklo_epi8(term[2], term[3]), _mm512_unpackhi_epi8(term[2], term[3])};
    const __m512i wide[2] = {_mm512_unpacklo_epi8(place, zero), _mm512_unpackhi_epi8(place, zero)};
    for (std::size_t i = 0; i < 2; ++i) {
        const __m512i low =
            _mm512_madd_epi16(_mm512_unpacklo_epi16(slope[i], base[i]), _mm512_unpacklo_epi16(wide[i], weight));
        const __m512i high =
            _mm512_madd_epi16(_mm512_unpackhi_epi16(slope[i], base[i]), _mm512_unpackhi_epi16(wide[i], weight));
        sums[2 * i] = _mm512_add_epi32(sums[2 * i], low);
        sums[2 * i + 1] = _mm512_add_epi32(sums[2 * i + 1], high);
    }
}

// Sixty-four rows at a time: tables in registers are faster than loads of single terms.
void sum_codes(const CodeTerms& terms, const std::uint8_t* codes, const float* biases, std::size_t padded_parts,
               const std::uint32_t* positions, std::size_t count, float* out)
{
    thread_local std::vector<TermBytes> tables;
    tables.resize(padded_parts);
    for (std::size_t part = 0; part < padded_parts; ++part) split_terms(terms.words.data() + part * 256, tables[part]);
    const __m512i weight = _mm512_set1_epi16(static_cast<std::int16_t>(terms.base_weight));
    alignas(64) std::uint8_t lines[kParts][kGroup];
    alignas(64) std::uint8_t places[kParts][kGroup];
    for (std::size_t i = 0; i < count; i += kGroup) {
        const std::uint8_t* rows[kGroup];
        for (std::size_t r = 0; r < kGroup; ++r)
            rows[r] = codes + std::size_t{positions[std::min(i + r, count - 1)]} * 2 * padded_parts;
        for (std::size_t r = i + kGroup; r < std::min(i + 2 * kGroup, count); ++r)
            __builtin_prefetch(codes + std::size_t{positions[r]} * 2 * padded_parts);
        __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                           _mm512_setzero_si512()};
        for (std::size_t first = 0; first < padded_parts; first += kParts) {
            transpose(rows, first, lines);
            transpose(rows, padded_parts + first, places);
            for (std::size_t part = 0; part < kParts; ++part)
                add_part(tables[first + part], lines[part], places[part], weight, sums);
        }
        alignas(64) std::int32_t totals[4][4][4];
        for (std::size_t q = 0; q < 4; ++q) {
            _mm_store_si128(reinterpret_cast<__m128i*>(totals[0][q]), _mm512_castsi512_si128(sums[q]));
            _mm_store_si128(reinterpret_cast<__m128i*>(totals[1][q]), _mm512_extracti32x4_epi32(sums[q], 1));
            _mm_store_si128(reinterpret_cast<__m128i*>(totals[2][q]), _mm512_extracti32x4_epi32(sums[q], 2));
            _mm_store_si128(reinterpret_cast<__m128i*>(totals[3][q]), _mm512_extracti32x4_epi32(sums[q], 3));
        }
        const std::int32_t* const total = totals[0][0];
        for (std::size_t r = 0; r < std::min(kGroup, count - i); ++r)
            out[i + r] = terms.unit * static_cast<float>(total[r]) + biases[positions[i + r]] + terms.shift;
    }
}

#else

constexpr std::size_t kAhead = 16;  // rows prefetched

// A row at a time: its line parts are the lanes, and each lane looks its term up. Sums are exact integers.
void sum_codes(const CodeTerms& terms, const std::uint8_t* codes, const float* biases, std::size_t padded_parts,
               const std::uint32_t* positions, std::size_t count, float* out)
{
    const hn::CappedTag<std::int32_t, 16> words;
    const hn::Rebind<std::uint8_t, decltype(words)> bytes;
    const std::size_t lanes = hn::Lanes(words);
    const auto weight = hn::Set(words, terms.base_weight);
    const auto table = hn::Mul(hn::Iota(words, 0), hn::Set(words, 256));
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t* code = codes + std::size_t{positions[i]} * 2 * padded_parts;
        __builtin_prefetch(codes + std::size_t{positions[std::min(i + kAhead, count - 1)]} * 2 * padded_parts);
        auto sum = hn::Zero(words);
        for (std::size_t part = 0; part < padded_parts; part += lanes) {
            const auto line = hn::PromoteTo(words, hn::LoadU(bytes, code + part));
            const auto place = hn::PromoteTo(words, hn::LoadU(bytes, code + padded_parts + part));
            const auto term = hn::GatherIndex(words, terms.words.data() + part * 256, hn::Add(line, table));
            const auto slope = hn::ShiftRight<16>(hn::ShiftLeft<16>(term));
            sum = hn::Add(sum, hn::Add(hn::Mul(hn::ShiftRight<16>(term), weight), hn::Mul(slope, place)));
        }
        const std::int32_t total = hn::GetLane(hn::SumOfLanes(words, sum));
        out[i] = terms.unit * static_cast<float>(total) + biases[positions[i]] + terms.shift;
    }
}

#endif

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

namespace
{

constexpr float largest_term = 32767;
constexpr float largest_sum = 1 << 30;

}  // namespace

HWY_EXPORT(score_columns);
HWY_EXPORT(float_terms);
HWY_EXPORT(round_terms);
HWY_EXPORT(sum_codes);

void score_packed(bool squared, const float* values, std::size_t count, std::size_t dimensions, const float* query,
                  float* out)
{
    HWY_DYNAMIC_DISPATCH(score_columns)(squared, values, count, dimensions, query, out);
}

LineArrays::LineArrays(const LineTable& table, std::size_t line_part, std::span<const float> lengths)
{
    const std::size_t lines = table.shape.lines();
    for (std::size_t line = line_part * lines; line < (line_part + 1) * lines; ++line) {
        from.push_back(static_cast<std::int32_t>(table.end(line, 0)));
        to.push_back(static_cast<std::int32_t>(table.end(line, 1)));
        first.push_back(table.places[2 * line]);
        step.push_back(table.places[2 * line + 1]);
        length.push_back(lengths[line]);
    }
    from.resize(padded(lines));
    to.resize(padded(lines));
    for (auto* values : {&first, &step, &length}) values->resize(padded(lines));
}

void make_terms(std::span<const LineArrays> lines, const float* centroid_scores, std::size_t stride, CodeTerms& terms)
{
    constexpr std::size_t room = 256;
    thread_local std::vector<float> bases;
    thread_local std::vector<float> slopes;
    thread_local std::vector<TermRange> ranges;
    bases.resize(lines.size() * room);
    slopes.resize(lines.size() * room);
    ranges.resize(lines.size());
    float highest = 0;
    float steepest = 0;
    float sum = 0;
    terms.shift = 0;
    for (std::size_t part = 0; part < lines.size(); ++part) {
        ranges[part] = HWY_DYNAMIC_DISPATCH(float_terms)(lines[part], centroid_scores + part * stride,
                                                         bases.data() + part * room, slopes.data() + part * room);
        const float height = ranges[part].most - ranges[part].least;
        highest = std::max(highest, height);
        steepest = std::max(steepest, ranges[part].steepest);
        sum += height + 255 * ranges[part].steepest;
        terms.shift += ranges[part].least;
    }
    terms.unit = std::max({steepest / largest_term, sum / largest_sum, 1e-30F});
    terms.base_weight = 1 + static_cast<std::int32_t>(std::min(highest / (largest_term * terms.unit), 32766.0F));
    const float per_base =
        std::min(1 / (terms.unit * static_cast<float>(terms.base_weight)), largest_term / std::max(highest, 1e-30F));
    terms.words.assign(padded(lines.size()) * room, 0);
    for (std::size_t part = 0; part < lines.size(); ++part) HWY_DYNAMIC_DISPATCH(round_terms)
    (bases.data() + part * room, slopes.data() + part * room, lines[part].from.size(), ranges[part].least, per_base,
     1 / terms.unit, terms.words.data() + part * room);
}

void score_codes(const CodeTerms& terms, const std::uint8_t* codes, const float* biases, std::size_t padded_parts,
                 const std::uint32_t* positions, std::size_t count, float* out)
{
    HWY_DYNAMIC_DISPATCH(sum_codes)(terms, codes, biases, padded_parts, positions, count, out);
}

}  // namespace pgwarp
#endif
