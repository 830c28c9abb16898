#include "numeric/key_ranks.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/key_ranks.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

void count_below(const std::uint64_t* keys, std::size_t count, std::uint32_t* ranks)
{
    const hn::CappedTag<std::uint64_t, 8> tag;
    const std::size_t lanes = hn::Lanes(tag);
    HWY_ALIGN std::uint64_t some[8] = {};
    for (std::size_t i = 0; i < count; i += lanes) {
        const std::size_t filled = std::min(lanes, count - i);
        std::copy_n(keys + i, filled, some);
        const auto own = hn::Load(tag, some);
        auto below = hn::Zero(tag);
        // A mask is -1 in its lanes.
        for (std::size_t j = 0; j < count; ++j)
            below = hn::Sub(below, hn::VecFromMask(tag, hn::Lt(hn::Set(tag, keys[j]), own)));
        hn::Store(below, tag, some);
        for (std::size_t lane = 0; lane < filled; ++lane) ranks[i + lane] = static_cast<std::uint32_t>(some[lane]);
    }
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(count_below);

void rank_keys(const std::uint64_t* keys, std::size_t count, std::uint32_t* ranks)
{
    HWY_DYNAMIC_DISPATCH(count_below)(keys, count, ranks);
}

}  // namespace pgwarp
#endif
