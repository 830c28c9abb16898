// Bitmaps of the rows of keywords that many rows have. A search adds the bitmaps of its items 64 rows at a time, where
// their posting lists take a step a row. They take no more memory than these lists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/keyword_lists.h"

namespace pgwarp::matchcount
{

// A bitmap has whole blocks of rows.
inline constexpr std::size_t rows_of_bitmap_block = 512;

class KeywordBitmaps
{
public:
    KeywordBitmaps() = default;
    // Makes none where rows repeat a keyword.
    KeywordBitmaps(const KeywordLists& lists, ThreadPool& pool);

    // The numbers of the posting lists that have a bitmap, ascending.
    std::span<const std::size_t> numbers() const { return numbers_; }
    std::uint64_t memory_bytes() const { return bits_.size() * sizeof(std::uint64_t); }
    // Returns the bitmaps of some lists, as places in numbers().
    KeywordLists::Numbers within(const KeywordLists::Numbers& numbers) const;
    std::span<const std::uint64_t> bitmap(std::size_t place) const
    {
        return std::span(bits_).subspan(place * words_, words_);
    }

private:
    std::size_t words_ = 0;  // of a bitmap
    std::vector<std::size_t> numbers_;
    BulkVector<std::uint64_t> bits_;  // [numbers][words]
};

// The number of bitmaps that hold a row.
class BitmapSum
{
public:
    void clear() { bitmaps_.clear(); }
    bool empty() const { return bitmaps_.empty(); }
    void add(std::span<const std::uint64_t> bitmap) { bitmaps_.push_back(bitmap); }
    // out[i] = the sum of row first + i, which is less than 256; 0 behind the last row. `first` and the size of `out`
    // are multiples of rows_of_bitmap_block.
    void write(std::uint64_t first, std::span<std::uint8_t> out) const;

private:
    std::vector<std::span<const std::uint64_t>> bitmaps_;  // of one size
};

}  // namespace pgwarp::matchcount
