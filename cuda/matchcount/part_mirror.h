// The sets or attributes of an index: the dictionary of their parts in host memory, the rows of each part in device
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/context.h"
#include "matchcount/keyword_lists.h"
#include "methods/matchcount/part_dictionary.h"

namespace pgwarp::cuda
{

class PartMirror
{
public:
    // Takes device memory for the rows besides, until the lists are made. Waits. Throws std::bad_alloc. `stream` must
    // outlive the mirror.
    PartMirror(pgwarp::matchcount::RankedRows ranked, MemoryPool& pool, const Context::Lease& stream);

    const pgwarp::matchcount::PartDictionary& dictionary() const { return dictionary_; }
    const matchcount::KeywordLists& lists() const { return lists_; }
    // Estimates the postings of items.
    std::uint64_t postings(std::span<const matchcount::Item> items) const;
    std::uint64_t host_bytes() const
    {
        return dictionary_.memory_bytes() + sampled_before_.size() * sizeof(std::uint32_t);
    }
    std::uint64_t device_bytes() const { return lists_.memory_bytes(); }

private:
    void sample(std::span<const std::uint32_t> keywords);

    pgwarp::matchcount::PartDictionary dictionary_;
    matchcount::KeywordLists lists_;
    std::vector<std::uint32_t> sampled_before_;  // [keywords + 1]: sampled postings of smaller keywords
    std::uint64_t step_ = 1;                     // every so many postings are sampled
};

}  // namespace pgwarp::cuda
