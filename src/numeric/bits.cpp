// Counts of ones in whole vectors, with run-time SIMD dispatch (Highway).
#include "numeric/bits.h"

#include <algorithm>
#include <cstring>

// For processors with instructions that count the ones of whole vectors.
#define HWY_WANT_AVX3_DL 1
// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/bits.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

using Counts = hn::ScalableTag<std::uint64_t>;
using Vector = hn::Vec<Counts>;
constexpr std::size_t kBytes = hn::MaxLanes(Counts()) * sizeof(std::uint64_t);

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE Vector load_rest(const std::uint8_t* bytes, std::size_t count)
{
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    return hn::Set(Counts(), word);
}
HWY_INLINE Vector load(const std::uint8_t* bytes)
{
    return load_rest(bytes, kBytes);
}

#else

using Bytes = hn::Repartition<std::uint8_t, Counts>;

HWY_INLINE Vector load(const std::uint8_t* bytes)
{
    return hn::BitCast(Counts(), hn::LoadU(Bytes(), bytes));
}
// Load fewer bytes than a whole vector has; the rest is 0.
HWY_INLINE Vector load_rest(const std::uint8_t* bytes, std::size_t count)
{
#if HWY_CAP_GE512
    return hn::BitCast(Counts(), hn::MaskedLoad(hn::FirstN(Bytes(), count), Bytes(), bytes));
#else
    HWY_ALIGN std::uint8_t padded[kBytes] = {};
    std::memcpy(padded, bytes, count);
    return hn::BitCast(Counts(), hn::Load(Bytes(), padded));
#endif
}

#endif

HWY_INLINE double total(Vector counts)
{
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(Counts(), counts)));
}

struct Hamming {
    Vector differing;

    HWY_INLINE Hamming() : differing(hn::Zero(Counts())) {}

    HWY_INLINE void add(Vector a, Vector b) { differing = hn::Add(differing, hn::PopulationCount(hn::Xor(a, b))); }
    HWY_INLINE double distance() const { return total(differing); }
};

struct Jaccard {
    Vector both;
    Vector either;

    HWY_INLINE Jaccard() : both(hn::Zero(Counts())), either(hn::Zero(Counts())) {}

    HWY_INLINE void add(Vector a, Vector b)
    {
        both = hn::Add(both, hn::PopulationCount(hn::And(a, b)));
        either = hn::Add(either, hn::PopulationCount(hn::Or(a, b)));
    }
    HWY_INLINE double distance() const
    {
        const double shared = total(both);
        return shared == 0 ? 1 : 1 - shared / total(either);
    }
};

template <class Counter>
HWY_INLINE double compare(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes)
{
    Counter counter;
    std::size_t i = 0;
    for (; i + kBytes <= bytes; i += kBytes) counter.add(load(a + i), load(b + i));
    if (i < bytes) counter.add(load_rest(a + i, bytes - i), load_rest(b + i, bytes - i));
    return counter.distance();
}

template <class Counter, class Out>
HWY_INLINE void compare_dense(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                              Out* out)
{
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Out>(compare<Counter>(query, rows + i * bytes, bytes));
}

template <class Counter>
HWY_INLINE void compare_gathered(const std::uint8_t* query, const std::uint8_t* rows, const std::uint32_t* ids,
                                 std::size_t count, std::size_t bytes, float* out)
{
    constexpr std::size_t ahead = 8;
    constexpr std::size_t line = 64;
    const std::size_t fetched = std::min<std::size_t>(bytes, 4 * line);  // the hardware prefetcher loads the rest
    const auto fetch = [=](std::size_t i) HWY_ATTR {
        for (std::size_t at = 0; at < fetched; at += line) hwy::Prefetch(rows + std::size_t{ids[i]} * bytes + at);
    };
    for (std::size_t i = 0; i < std::min(ahead, count); ++i) fetch(i);
    for (std::size_t i = 0; i < count; ++i) {
        if (i + ahead < count) fetch(i + ahead);
        out[i] = static_cast<float>(compare<Counter>(query, rows + std::size_t{ids[i]} * bytes, bytes));
    }
}

// Entry points of one target: dispatch needs functions that are no templates.
double compare_two(Metric metric, const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes)
{
    return metric == Metric::hamming ? compare<Hamming>(a, b, bytes) : compare<Jaccard>(a, b, bytes);
}

void compare_to_doubles(Metric metric, const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                        std::size_t bytes, double* out)
{
    if (metric == Metric::hamming) return compare_dense<Hamming>(query, rows, count, bytes, out);
    compare_dense<Jaccard>(query, rows, count, bytes, out);
}

void compare_to_floats(Metric metric, const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                       std::size_t bytes, float* out)
{
    if (metric == Metric::hamming) return compare_dense<Hamming>(query, rows, count, bytes, out);
    compare_dense<Jaccard>(query, rows, count, bytes, out);
}

void compare_some(Metric metric, const std::uint8_t* query, const std::uint8_t* rows, const std::uint32_t* ids,
                  std::size_t count, std::size_t bytes, float* out)
{
    if (metric == Metric::hamming) return compare_gathered<Hamming>(query, rows, ids, count, bytes, out);
    compare_gathered<Jaccard>(query, rows, ids, count, bytes, out);
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(compare_two);
HWY_EXPORT(compare_to_doubles);
HWY_EXPORT(compare_to_floats);
HWY_EXPORT(compare_some);

namespace
{

const std::uint8_t* bytes_of(const void* rows)
{
    return static_cast<const std::uint8_t*>(rows);
}

}  // namespace

double bit_distance(Metric metric, const void* a, const void* b, std::size_t bytes)
{
    return HWY_DYNAMIC_DISPATCH(compare_two)(metric, bytes_of(a), bytes_of(b), bytes);
}

void bit_distances(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t words,
                   double* out)
{
    HWY_DYNAMIC_DISPATCH(compare_to_doubles)
    (metric, bytes_of(query), bytes_of(rows), count, words * sizeof(float), out);
}

void bit_scores(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t words, float* out)
{
    HWY_DYNAMIC_DISPATCH(compare_to_floats)
    (metric, bytes_of(query), bytes_of(rows), count, words * sizeof(float), out);
}

void bit_scores_gather(Metric metric, const float* query, const float* rows, const std::uint32_t* ids,
                       std::size_t count, std::size_t words, float* out)
{
    HWY_DYNAMIC_DISPATCH(compare_some)
    (metric, bytes_of(query), bytes_of(rows), ids, count, words * sizeof(float), out);
}

}  // namespace pgwarp
#endif
