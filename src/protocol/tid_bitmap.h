// A set of heap addresses, as a search among the rows of another index's bitmap carries it: pages of the table, with a
// bit for each row of them.
//
// As words (u64), one page after the other, in ascending order of blocks:
//   {block | number of words << 32}, then these words: bit i of them is the row with offset i + 1.
// A page without words stands for all of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pgwarp
{

inline constexpr std::uint64_t no_tids = 0;                                    // no bitmap: all rows
inline constexpr std::uint32_t most_page_words = 32;                           // pages of 32 KiB have the most rows
inline constexpr std::uint64_t max_tid_bitmap_words = std::uint64_t{8} << 20;  // longer ones stay with the executor

// A view of a page; it does not own the words.
struct TidPage {
    std::uint32_t block = 0;
    std::span<const std::uint64_t> bits;  // empty: all rows

    bool is_whole() const { return bits.empty(); }
    bool contains(std::uint16_t offset) const
    {
        if (is_whole()) return true;
        const std::size_t bit = std::size_t{offset} - 1;  // offset 0 is no row's
        return bit / 64 < bits.size() && ((bits[bit / 64] >> (bit % 64)) & 1U) != 0;
    }
};

// The page at the front of words, which must not be empty. Words from outside must have passed tid_bitmap_fault().
inline TidPage front_page(std::span<const std::uint64_t> words)
{
    return {static_cast<std::uint32_t>(words[0]), words.subspan(1, words[0] >> 32)};
}

// Returns null for the words of a bitmap, else a description of the fault.
inline const char* tid_bitmap_fault(std::span<const std::uint64_t> words)
{
    std::uint64_t next_block = 0;
    while (!words.empty()) {
        const std::uint64_t block = words[0] & 0xffffffffU;
        const std::uint64_t bits = words[0] >> 32;
        if (block < next_block) return "bitmap whose pages don't ascend";
        if (bits > most_page_words || bits >= words.size()) return "bitmap that ends within a page";
        next_block = block + 1;
        words = words.subspan(1 + bits);
    }
    return nullptr;
}

}  // namespace pgwarp
