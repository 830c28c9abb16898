// Bitmaps of heap addresses for tests.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "engine/filter/tid_bitmap.h"

namespace pgwarp::test
{

// The words of a bitmap of these addresses and of all rows of these pages.
inline std::vector<std::uint64_t> bitmap_words(const std::set<Tid>& tids, const std::set<std::uint32_t>& whole)
{
    std::map<std::uint32_t, std::vector<std::uint64_t>> pages;
    for (const Tid& tid : tids) {
        std::vector<std::uint64_t>& bits = pages[tid.block];
        const std::size_t bit = tid.offset - std::size_t{1};
        bits.resize(std::max(bits.size(), bit / 64 + 1));
        bits[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
    for (const std::uint32_t block : whole) pages[block].clear();
    std::vector<std::uint64_t> words;
    for (const auto& [block, bits] : pages) {
        words.push_back(block | std::uint64_t{bits.size()} << 32);
        words.insert(words.end(), bits.begin(), bits.end());
    }
    return words;
}

inline TidBitmap bitmap_of(const std::set<Tid>& tids, const std::set<std::uint32_t>& whole)
{
    return TidBitmap(bitmap_words(tids, whole));
}

}  // namespace pgwarp::test
