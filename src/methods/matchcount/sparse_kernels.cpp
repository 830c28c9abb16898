// Sums of columns of frequent terms, and the search for sums within limits.
#include "methods/matchcount/sparse_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/matchcount/sparse_kernels.cpp"
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
using Integers = hn::RebindToSigned<Floats>;
using Shorts = hn::Rebind<std::int16_t, Floats>;

HWY_INLINE hn::Vec<Floats> load_floats(const std::int16_t* values)
{
    return hn::ConvertTo(Floats(), hn::PromoteTo(Integers(), hn::LoadU(Shorts(), values)));
}

void add(const std::int16_t* values, std::size_t count, float factor, float* sums)
{
    const auto factors = hn::Set(Floats(), factor);
    const std::size_t lanes = hn::Lanes(Floats());
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(hn::MulAdd(load_floats(values + i), factors, hn::LoadU(Floats(), sums + i)), Floats(), sums + i);
    for (; i < count; ++i) sums[i] += static_cast<float>(values[i]) * factor;
}

void add_clamped(const std::int16_t* values, std::size_t count, float factor, float most, float* sums)
{
    const auto factors = hn::Set(Floats(), factor);
    const auto limits = hn::Set(Floats(), most);
    const std::size_t lanes = hn::Lanes(Floats());
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto products = hn::Mul(load_floats(values + i), factors);
        const auto clamped = hn::Max(hn::Min(products, limits), hn::Zero(Floats()));
        hn::StoreU(hn::Add(clamped, hn::LoadU(Floats(), sums + i)), Floats(), sums + i);
    }
    for (; i < count; ++i) sums[i] += std::clamp(static_cast<float>(values[i]) * factor, 0.0F, most);
}

std::size_t find(const float* sums, std::size_t begin, std::size_t end, float least, float most)
{
    const auto leasts = hn::Set(Floats(), least);
    const auto mosts = hn::Set(Floats(), most);
    const std::size_t lanes = hn::Lanes(Floats());
    std::size_t i = begin;
    for (; i + lanes <= end; i += lanes) {
        const auto loaded = hn::LoadU(Floats(), sums + i);
        const auto within = hn::And(hn::Ge(loaded, leasts), hn::Le(loaded, mosts));
        const std::intptr_t first = hn::FindFirstTrue(Floats(), within);
        if (first >= 0) return i + static_cast<std::size_t>(first);
    }
    while (i < end && !(sums[i] >= least && sums[i] <= most)) ++i;
    return i;
}

}  // namespace
}  // namespace pgwarp::matchcount::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp::matchcount
{

HWY_EXPORT(add);
HWY_EXPORT(add_clamped);
HWY_EXPORT(find);

void add_products(const std::int16_t* values, std::size_t count, float factor, float* sums)
{
    HWY_DYNAMIC_DISPATCH(add)(values, count, factor, sums);
}

void add_clamped_products(const std::int16_t* values, std::size_t count, float factor, float most, float* sums)
{
    HWY_DYNAMIC_DISPATCH(add_clamped)(values, count, factor, most, sums);
}

std::size_t find_between(const float* sums, std::size_t begin, std::size_t end, float least, float most)
{
    return HWY_DYNAMIC_DISPATCH(find)(sums, begin, end, least, most);
}

}  // namespace pgwarp::matchcount
#endif
