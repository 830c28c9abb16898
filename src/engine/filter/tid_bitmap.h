// A bitmap of heap addresses that a session has sent, for searches among the rows that have them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "protocol/format.h"
#include "protocol/tid_bitmap.h"

namespace pgwarp
{

class TidBitmap
{
public:
    // Of words without a fault (tid_bitmap_fault()).
    explicit TidBitmap(std::vector<std::uint64_t> words);

    std::size_t pages() const { return begin_.size(); }
    TidPage page(std::size_t number) const { return front_page(std::span(words_).subspan(begin_[number])); }
    bool contains(const Tid& tid) const;
    // Addresses on pages whose rows are told apart, and the other pages.
    std::uint64_t tids() const { return tids_; }
    std::uint64_t whole_pages() const { return whole_pages_; }
    std::uint64_t memory_bytes() const
    {
        return words_.size() * sizeof(std::uint64_t) + begin_.size() * sizeof(std::uint32_t);
    }

private:
    std::vector<std::uint64_t> words_;
    std::vector<std::uint32_t> begin_;  // of each page in the words
    std::uint64_t tids_ = 0;
    std::uint64_t whole_pages_ = 0;
};

}  // namespace pgwarp
