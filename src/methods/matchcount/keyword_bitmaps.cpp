// The making of bitmaps, and their sums: counters as planes of bits, which become bytes.
#include "methods/matchcount/keyword_bitmaps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "methods/row_bitmap.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t block_words = rows_of_bitmap_block / 64;
constexpr std::size_t most_planes = 8;
using Planes = std::array<std::array<std::uint64_t, block_words>, most_planes>;

// Bits of a byte as bytes of a word.
constexpr std::array<std::uint64_t, 256> make_spread_bits()
{
    std::array<std::uint64_t, 256> words{};
    for (std::size_t byte = 0; byte < words.size(); ++byte)
        for (unsigned bit = 0; bit < 8; ++bit) words[byte] |= std::uint64_t{byte >> bit & 1} << 8 * bit;
    return words;
}
constexpr std::array<std::uint64_t, 256> spread_bits = make_spread_bits();

// Adds a block of a bitmap to counters that stay below 2^planes.
void add_block(const std::uint64_t* bits, std::size_t planes, Planes& sum)
{
    std::array<std::uint64_t, block_words> carry;
    std::copy_n(bits, block_words, carry.begin());
    for (std::size_t plane = 0; plane < planes; ++plane) {
        for (std::size_t i = 0; i < block_words; ++i) {
            const std::uint64_t both = sum[plane][i] & carry[i];
            sum[plane][i] ^= carry[i];
            carry[i] = both;
        }
    }
}

void write_block(const Planes& sum, std::size_t planes, std::uint8_t* out)
{
    for (std::size_t i = 0; i < block_words; ++i) {
        for (unsigned shift = 0; shift < 64; shift += 8, out += 8) {
            std::uint64_t counts = 0;
            for (std::size_t plane = 0; plane < planes; ++plane)
                counts |= spread_bits[sum[plane][i] >> shift & 0xff] << plane;
            std::memcpy(out, &counts, sizeof(counts));
        }
    }
}

}  // namespace

KeywordBitmaps::KeywordBitmaps(const KeywordLists& lists, ThreadPool& pool)
{
    if (lists.most_repeats() > 1) return;
    words_ = (lists.rows() + rows_of_bitmap_block - 1) / rows_of_bitmap_block * block_words;
    const std::uint64_t least_postings = words_ * sizeof(std::uint64_t) / sizeof(std::uint32_t);
    for (std::size_t number = 0; number < lists.list_count(); ++number)
        if (lists.start(number + 1) - lists.start(number) >= least_postings) numbers_.push_back(number);
    bits_.resize(numbers_.size() * words_);
    pool.parallel_for(numbers_.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t place = begin; place < end; ++place) {
            const std::span<std::uint64_t> bits = std::span(bits_).subspan(place * words_, words_);
            std::fill(bits.begin(), bits.end(), 0U);
            const KeywordLists::Numbers list{numbers_[place], numbers_[place] + 1};
            for (const std::uint32_t row : lists.lists(list)) set_bit(bits, row);
        }
    });
}

KeywordLists::Numbers KeywordBitmaps::within(const KeywordLists::Numbers& numbers) const
{
    const auto first = std::lower_bound(numbers_.begin(), numbers_.end(), numbers.first);
    const auto last = std::lower_bound(first, numbers_.end(), numbers.last);
    return {static_cast<std::size_t>(first - numbers_.begin()), static_cast<std::size_t>(last - numbers_.begin())};
}

void BitmapSum::write(std::uint64_t first, std::span<std::uint8_t> out) const
{
    const std::size_t planes = std::min<std::size_t>(most_planes, std::bit_width(bitmaps_.size()));
    for (std::size_t at = 0; at < out.size(); at += rows_of_bitmap_block) {
        const std::size_t word = (first + at) / 64;
        if (bitmaps_.empty() || word >= bitmaps_[0].size()) {
            std::fill(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), std::uint8_t{0});
            return;
        }
        Planes sum{};
        for (std::size_t i = 0; i < bitmaps_.size(); ++i)
            add_block(&bitmaps_[i][word], std::min<std::size_t>(planes, std::bit_width(i + 1)), sum);
        write_block(sum, planes, &out[at]);
    }
}

}  // namespace pgwarp::matchcount
