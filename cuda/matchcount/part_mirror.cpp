#include "matchcount/part_mirror.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "device/wait.h"
#include "methods/errors.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t most_sampled = std::size_t{1} << 22;  // postings

matchcount::KeywordLists make_lists(const pgwarp::matchcount::RankedRows& ranked, MemoryPool& pool,
                                    const Context::Lease& stream)
{
    DeviceArray<std::uint64_t> offsets(pool, ranked.offsets.size(), "matchcount loading", stream);
    DeviceArray<std::uint32_t> keywords(pool, ranked.keywords.size(), "matchcount loading", stream);
    send(offsets.data(), ranked.offsets.data(), offsets.bytes(), stream, "loading rows");
    send(keywords.data(), ranked.keywords.data(), keywords.bytes(), stream, "loading rows");
    stream.stream().synchronize();
    const auto rows = static_cast<std::uint32_t>(ranked.offsets.size() - 1);
    try {
        return {{rows, offsets.data(), keywords.data()}, pool, stream};
    } catch (const BadRequest&) {
        throw std::bad_alloc();  // the CPU serves rows past the limits of these lists
    }
}

}  // namespace

PartMirror::PartMirror(pgwarp::matchcount::RankedRows ranked, MemoryPool& pool, const Context::Lease& stream)
    : dictionary_(std::move(ranked.dictionary)), lists_(make_lists(ranked, pool, stream))
{
    sample(ranked.keywords);
}

void PartMirror::sample(std::span<const std::uint32_t> keywords)
{
    step_ = keywords.size() / most_sampled + 1;
    sampled_before_.resize(std::size_t{dictionary_.size()} + 1);
    for (std::size_t i = 0; i < keywords.size(); i += step_) ++sampled_before_[keywords[i] + std::size_t{1}];
    std::partial_sum(sampled_before_.begin(), sampled_before_.end(), sampled_before_.begin());
}

std::uint64_t PartMirror::postings(std::span<const matchcount::Item> items) const
{
    std::uint64_t sampled = 0;
    for (const matchcount::Item& item : items)
        sampled += sampled_before_[item.last + std::size_t{1}] - sampled_before_[item.first];
    return sampled * step_;
}

}  // namespace pgwarp::cuda
