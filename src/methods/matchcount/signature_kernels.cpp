// Cells of random binning and elements of sets, hashed for many functions at a time, and counts of equal bytes.
#include "methods/matchcount/signature_kernels.h"

#include <cstring>

// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/matchcount/signature_kernels.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::matchcount::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

using Floats = hn::ScalableTag<float>;
using Hashes = hn::RebindToUnsigned<Floats>;
using Numbers = hn::ScalableTag<std::uint64_t>;
using Bytes = hn::ScalableTag<std::uint8_t>;
using Sums = hn::Repartition<std::uint64_t, Bytes>;

constexpr std::size_t kFunctions = hn::MaxLanes(Floats());
constexpr std::size_t kNumbers = hn::MaxLanes(Numbers());
constexpr std::size_t kBytes = hn::MaxLanes(Bytes());
constexpr std::size_t kMostVectors = 255;  // equal bytes that a byte can count

template <int bits, class V>
HWY_INLINE V rotate(V value)
{
    return hn::Or(hn::ShiftLeft<bits>(value), hn::ShiftRight<32 - bits>(value));
}

// The steps of MurmurHash3_x86_32 (Appleby) for a block of four bytes, and for the end.
template <class V>
HWY_INLINE V mix_block(V hash, V block)
{
    block = rotate<15>(hn::Mul(block, hn::Set(Hashes(), 0xcc9e2d51U)));
    block = hn::Mul(block, hn::Set(Hashes(), 0x1b873593U));
    return hn::Add(hn::Mul(rotate<13>(hn::Xor(hash, block)), hn::Set(Hashes(), 5U)), hn::Set(Hashes(), 0xe6546b64U));
}
template <class V>
HWY_INLINE V finish_hash(V hash, std::uint32_t length)
{
    hash = hn::Xor(hash, hn::Set(Hashes(), length));
    hash = hn::Mul(hn::Xor(hash, hn::ShiftRight<16>(hash)), hn::Set(Hashes(), 0x85ebca6bU));
    hash = hn::Mul(hn::Xor(hash, hn::ShiftRight<13>(hash)), hn::Set(Hashes(), 0xc2b2ae35U));
    return hn::Xor(hash, hn::ShiftRight<16>(hash));
}

void bin(const float* row, const float* grid, const float* shift, std::size_t dimensions, std::size_t functions,
         std::uint32_t* out)
{
    for (std::size_t f = 0; f < functions; f += kFunctions) {
        auto hash = hn::Iota(Hashes(), static_cast<std::uint32_t>(f));
        for (std::size_t d = 0; d < dimensions; ++d) {
            const std::size_t at = d * functions + f;
            const auto place = hn::Add(hn::Mul(hn::Set(Floats(), row[d]), hn::LoadU(Floats(), grid + at)),
                                       hn::LoadU(Floats(), shift + at));
            // The sum with 0 makes 0 of -0.
            const auto cell = hn::Add(hn::Floor(place), hn::Zero(Floats()));
            hash = mix_block(hash, hn::BitCast(Hashes(), cell));
        }
        hn::StoreU(finish_hash(hash, static_cast<std::uint32_t>(4 * dimensions)), Hashes(), out + f);
    }
}

// As mix_hash() of numeric/hash.h.
template <class V>
HWY_INLINE V mix_number(V number)
{
    number = hn::Add(number, hn::Set(Numbers(), 0x9e3779b97f4a7c15ULL));
    number = hn::Mul(hn::Xor(number, hn::ShiftRight<30>(number)), hn::Set(Numbers(), 0xbf58476d1ce4e5b9ULL));
    number = hn::Mul(hn::Xor(number, hn::ShiftRight<27>(number)), hn::Set(Numbers(), 0x94d049bb133111ebULL));
    return hn::Xor(number, hn::ShiftRight<31>(number));
}

void least(const std::uint64_t* elements, std::size_t count, const std::uint64_t* seeds, std::size_t functions,
           std::uint64_t* out)
{
    for (std::size_t f = 0; f < functions; f += kNumbers) {
        const auto seed = hn::LoadU(Numbers(), seeds + f);
        auto smallest = hn::Set(Numbers(), ~std::uint64_t{0});
        for (std::size_t i = 0; i < count; ++i)
            smallest = hn::Min(smallest, mix_number(hn::Xor(hn::Set(Numbers(), elements[i]), seed)));
        hn::StoreU(smallest, Numbers(), out + f);
    }
}

#if HWY_TARGET == HWY_SCALAR

void count(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count, std::size_t bytes,
           std::uint16_t* out)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t equal = 0;
        for (std::size_t b = 0; b < bytes; ++b) equal += rows[i * bytes + b] == query[b];
        out[i] = equal;
    }
}

#else

HWY_INLINE hn::Vec<Bytes> ones_where_equal(const std::uint8_t* a, const std::uint8_t* b)
{
    const auto equal = hn::Eq(hn::LoadU(Bytes(), a), hn::LoadU(Bytes(), b));
    return hn::VecFromMask(Bytes(), equal);
}

HWY_INLINE std::uint16_t total(hn::Vec<Bytes> counts)
{
    return static_cast<std::uint16_t>(hn::GetLane(hn::SumOfLanes(Sums(), hn::SumsOf8(counts))));
}

// Counts on rows of at least a vector. The last vector ends where the row ends; `last` is the query there, with the
// byte 255 at positions that are counted already.
HWY_INLINE std::uint16_t count_row(const std::uint8_t* query, const std::uint8_t* last, const std::uint8_t* row,
                                   std::size_t bytes)
{
    std::uint16_t equal = 0;
    auto counts = hn::Zero(Bytes());
    std::size_t at = 0;
    for (std::size_t vectors = 1; at + kBytes <= bytes; at += kBytes, ++vectors) {
        counts = hn::Sub(counts, ones_where_equal(query + at, row + at));
        if (vectors % (kMostVectors - 1) != 0) continue;
        equal = static_cast<std::uint16_t>(equal + total(counts));
        counts = hn::Zero(Bytes());
    }
    if (at < bytes) counts = hn::Sub(counts, ones_where_equal(last, row + bytes - kBytes));
    return static_cast<std::uint16_t>(equal + total(counts));
}

void count(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count, std::size_t bytes,
           std::uint16_t* out)
{
    HWY_ALIGN std::uint8_t last[kBytes];
    std::memset(last, 255, sizeof(last));
    const std::size_t rest = bytes % kBytes;
    if (bytes >= kBytes) {
        std::memcpy(last + kBytes - rest, query + bytes - rest, rest);
        for (std::size_t i = 0; i < count; ++i) out[i] = count_row(query, last, rows + i * bytes, bytes);
        return;
    }
    std::memcpy(last, query, bytes);
    HWY_ALIGN std::uint8_t row[kBytes] = {};
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(row, rows + i * bytes, bytes);
        out[i] = total(hn::Sub(hn::Zero(Bytes()), ones_where_equal(last, row)));
    }
}

#endif

}  // namespace
}  // namespace pgwarp::matchcount::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp::matchcount
{

HWY_EXPORT(bin);
HWY_EXPORT(least);
HWY_EXPORT(count);

void bin_row(const float* row, const float* grid, const float* shift, std::size_t dimensions, std::size_t functions,
             std::uint32_t* out)
{
    HWY_DYNAMIC_DISPATCH(bin)(row, grid, shift, dimensions, functions, out);
}

void least_hashes(std::span<const std::uint64_t> elements, const std::uint64_t* seeds, std::size_t functions,
                  std::uint64_t* out)
{
    HWY_DYNAMIC_DISPATCH(least)(elements.data(), elements.size(), seeds, functions, out);
}

void count_equal_bytes(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                       std::uint16_t* out)
{
    HWY_DYNAMIC_DISPATCH(count)(query, rows, count, bytes, out);
}

}  // namespace pgwarp::matchcount
#endif
