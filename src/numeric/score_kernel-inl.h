// The kernel of all one-query scores: up to four rows against one query. Included once for each target.
//
// Each row has two accumulators and one order of additions, independent of its place in a batch: so a row's score does
// not depend on the caller's division of the work. Four rows at a time hide the latency of the additions.
#if defined(PGWARP_NUMERIC_SCORE_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PGWARP_NUMERIC_SCORE_KERNEL_INL_H_
#undef PGWARP_NUMERIC_SCORE_KERNEL_INL_H_
#else
#define PGWARP_NUMERIC_SCORE_KERNEL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numeric/half-inl.h"
#include "numeric/half.h"

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
using Words = hn::Rebind<half_bits, Floats>;
constexpr std::size_t lane_count = hn::MaxLanes(Floats());

// Operations of the metrics: add() adds the term of one or more dimensions, finish() turns the sum into the score.
struct SquaredDifference {
    static HWY_INLINE Vector add(Vector sum, Vector query, Vector row)
    {
        const Vector difference = hn::Sub(query, row);
        return hn::MulAdd(difference, difference, sum);
    }
    static HWY_INLINE float add(float sum, float query, float row) { return sum + (query - row) * (query - row); }
    static HWY_INLINE float finish(float sum) { return sum; }
};

struct NegativeProduct {
    static HWY_INLINE Vector add(Vector sum, Vector query, Vector row) { return hn::MulAdd(query, row, sum); }
    static HWY_INLINE float add(float sum, float query, float row) { return sum + query * row; }
    static HWY_INLINE float finish(float sum) { return -sum; }
};

struct AbsoluteDifference {
    static HWY_INLINE Vector add(Vector sum, Vector query, Vector row)
    {
        return hn::Add(sum, hn::Abs(hn::Sub(query, row)));
    }
    static HWY_INLINE float add(float sum, float query, float row) { return sum + std::fabs(query - row); }
    static HWY_INLINE float finish(float sum) { return sum; }
};

// The squared norm of the row; the query is not used.
struct SquaredValue {
    static HWY_INLINE Vector add(Vector sum, Vector, Vector row) { return hn::MulAdd(row, row, sum); }
    static HWY_INLINE float add(float sum, float, float row) { return sum + row * row; }
    static HWY_INLINE float finish(float sum) { return sum; }
};

HWY_INLINE Vector load(const float* values)
{
    return hn::LoadU(Floats(), values);
}
HWY_INLINE Vector load(const half_bits* values)
{
    return half_to_float(Floats(), hn::LoadU(Words(), values));
}

// Load `count` < lane_count values and fill with zeros; reads nothing beyond them. Only for targets with masked loads.
HWY_INLINE Vector load_part(const float* values, std::size_t count)
{
    return hn::MaskedLoad(hn::FirstN(Floats(), count), Floats(), values);
}
HWY_INLINE Vector load_part(const half_bits* values, std::size_t count)
{
    return half_to_float(Floats(), hn::MaskedLoad(hn::FirstN(Words(), count), Words(), values));
}

HWY_INLINE float load_one(const float* value)
{
    return *value;
}
HWY_INLINE float load_one(const half_bits* value)
{
    const hn::CappedTag<float, 1> one;
    return hn::GetLane(half_to_float(one, hn::LoadU(hn::Rebind<half_bits, decltype(one)>(), value)));
}

#if HWY_TARGET == HWY_SCALAR

// Write the sum of the lanes of each of four vectors.
HWY_INLINE void sum_four(Vector sum0, Vector sum1, Vector sum2, Vector sum3, float out[4])
{
    out[0] = hn::GetLane(sum0);
    out[1] = hn::GetLane(sum1);
    out[2] = hn::GetLane(sum2);
    out[3] = hn::GetLane(sum3);
}

#else

// Add up the 128-bit blocks of a vector.
template <class D>
HWY_INLINE auto sum_of_blocks(D, hn::Vec<D> v)
{
    if constexpr (hn::MaxLanes(D()) <= 4) {
        return v;
    } else {
        const hn::Half<D> half;
        return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
}

// Write the sum of the lanes of each of four vectors.
HWY_INLINE void sum_four(Vector sum0, Vector sum1, Vector sum2, Vector sum3, float out[4])
{
    const Floats floats;
    const hn::RepartitionToWide<Floats> pairs;
    const Vector low = hn::Add(hn::InterleaveLower(floats, sum0, sum1), hn::InterleaveUpper(floats, sum0, sum1));
    const Vector high = hn::Add(hn::InterleaveLower(floats, sum2, sum3), hn::InterleaveUpper(floats, sum2, sum3));
    const auto low_pairs = hn::BitCast(pairs, low);
    const auto high_pairs = hn::BitCast(pairs, high);
    const Vector sums = hn::Add(hn::BitCast(floats, hn::InterleaveLower(pairs, low_pairs, high_pairs)),
                                hn::BitCast(floats, hn::InterleaveUpper(pairs, low_pairs, high_pairs)));
    hn::StoreU(sum_of_blocks(floats, sums), hn::CappedTag<float, 4>(), out);
}

#endif

// Add one step of every row.
template <class Operation, int row_count, class Load>
HWY_INLINE void add_step(Vector (&sums)[row_count], Vector query, Load load_row)
{
    for (int r = 0; r < row_count; ++r) sums[r] = Operation::add(sums[r], query, load_row(r));
}

// Score 1 or 4 rows against the query.
template <class Operation, int row_count, class Element>
HWY_INLINE void score_group(const float* query, const Element* const (&rows)[row_count], std::size_t dimensions,
                            float* out)
{
    Vector even[row_count];
    Vector odd[row_count];
    for (int r = 0; r < row_count; ++r) even[r] = odd[r] = hn::Zero(Floats());
    std::size_t i = 0;
    for (; i + 2 * lane_count <= dimensions; i += 2 * lane_count) {
        add_step<Operation>(even, load(query + i), [&](int r) HWY_ATTR { return load(rows[r] + i); });
        add_step<Operation>(odd, load(query + i + lane_count),
                            [&](int r) HWY_ATTR { return load(rows[r] + i + lane_count); });
    }
    if (i + lane_count <= dimensions) {
        add_step<Operation>(even, load(query + i), [&](int r) HWY_ATTR { return load(rows[r] + i); });
        i += lane_count;
    }
    if (HWY_CAP_GE512 && i < dimensions) {
        const std::size_t rest = dimensions - i;
        add_step<Operation>(odd, load_part(query + i, rest),
                            [&](int r) HWY_ATTR { return load_part(rows[r] + i, rest); });
        i = dimensions;
    }
    for (int r = 0; r < row_count; ++r) even[r] = hn::Add(even[r], odd[r]);
    float sums[4];
    constexpr int last = row_count - 1;
    sum_four(even[0], even[last < 1 ? last : 1], even[last < 2 ? last : 2], even[last], sums);
    for (; i < dimensions; ++i) {
        for (int r = 0; r < row_count; ++r) sums[r] = Operation::add(sums[r], query[i], load_one(rows[r] + i));
    }
    for (int r = 0; r < row_count; ++r) out[r] = Operation::finish(sums[r]);
}

// Prefetch the start of a row that will be scored soon; the hardware prefetcher loads the rest of a long row.
template <class Element>
HWY_INLINE void prefetch_row(const Element* row, std::size_t dimensions)
{
    constexpr std::size_t line = 64 / sizeof(Element);
    constexpr std::size_t most_lines = 16;
    for (std::size_t d = 0; d < dimensions && d < most_lines * line; d += line) hwy::Prefetch(row + d);
}

// Score the rows that row_at(i) points to, i < count.
template <class Operation, class Element, bool gathered, class RowAt>
HWY_INLINE void score_rows(const float* query, std::size_t count, std::size_t dimensions, float* out, RowAt row_at)
{
    constexpr std::size_t ahead = 8;
    if (gathered) {
        for (std::size_t p = 0; p < ahead && p < count; ++p) prefetch_row<Element>(row_at(p), dimensions);
    }
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        if (gathered) {
            for (std::size_t p = i + ahead; p < i + ahead + 4 && p < count; ++p) {
                prefetch_row<Element>(row_at(p), dimensions);
            }
        }
        const Element* const rows[4] = {row_at(i), row_at(i + 1), row_at(i + 2), row_at(i + 3)};
        score_group<Operation>(query, rows, dimensions, out + i);
    }
    for (; i < count; ++i) {
        const Element* const rows[1] = {row_at(i)};
        score_group<Operation>(query, rows, dimensions, out + i);
    }
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PGWARP_NUMERIC_SCORE_KERNEL_INL_H_
