// Rows by heap address: a directory of blocks leads to the rows of a page.
#include "engine/filter/tid_order.h"

#include <algorithm>
#include <bit>

#include "engine/filter/coded_rows.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t compared_rows = std::size_t{1} << 16;  // that a thread checks at a time
constexpr std::size_t listed_pages = 2048;                   // whose rows a thread lists at a time
constexpr std::size_t pages_ahead = 8;                       // whose rows are prefetched
constexpr std::size_t rows_of_entry = 4;                     // of the directory, at least
constexpr std::size_t least_entries = 1024;

std::uint64_t code_of(std::uint32_t block, std::uint16_t offset)
{
    return std::uint64_t{block} << 16 | offset;
}

}  // namespace

TidOrder::TidOrder(std::span<const std::uint32_t> blocks, std::span<const std::uint16_t> offsets)
    : blocks_(blocks), offsets_(offsets)
{
}

bool TidOrder::is_sorted(ThreadPool& pool) const
{
    std::atomic<bool> sorted{true};
    pool.parallel_for(blocks_.size(), compared_rows, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = std::max<std::size_t>(begin, 1); row < end; ++row) {
            if (code_of(blocks_[row - 1], offsets_[row - 1]) > code_of(blocks_[row], offsets_[row])) {
                sorted.store(false, std::memory_order_relaxed);
                return;
            }
        }
    });
    return sorted.load();
}

void TidOrder::make_directory()
{
    first_.clear();
    if (blocks_.empty()) return;
    const std::size_t last = blocks_[row_at(blocks_.size() - 1)];
    const std::size_t entries = std::max(blocks_.size() / rows_of_entry, least_entries);
    shift_ = 0;
    while (last >> shift_ >= entries) ++shift_;
    first_.reserve((last >> shift_) + 2);
    for (std::size_t place = 0; place < blocks_.size(); ++place) {
        const std::size_t entry = blocks_[row_at(place)] >> shift_;
        while (first_.size() <= entry) first_.push_back(static_cast<std::uint32_t>(place));
    }
    first_.push_back(static_cast<std::uint32_t>(blocks_.size()));
}

void TidOrder::make(ThreadPool& pool)
{
    // Merges append rows whose addresses were freed before.
    if (!is_sorted(pool)) {
        std::vector<CodedRow> coded(blocks_.size());
        for (std::size_t row = 0; row < coded.size(); ++row)
            coded[row] = {code_of(blocks_[row], offsets_[row]), static_cast<std::uint32_t>(row)};
        sort_rows(coded, pool);
        rows_.resize(coded.size());
        for (std::size_t place = 0; place < coded.size(); ++place) rows_[place] = coded[place].row;
    }
    make_directory();
    ready_.store(true, std::memory_order_release);
}

// Those of the rows of a page.
TidOrder::Places TidOrder::places_of(std::uint32_t block) const
{
    const std::size_t entry = block >> shift_;
    if (entry + 1 >= first_.size()) return {0, 0};
    Places places = {first_[entry], first_[entry + 1]};
    if (shift_ == 0) return places;
    while (places.begin < places.end && blocks_[row_at(places.begin)] < block) ++places.begin;
    std::size_t end = places.begin;
    while (end < places.end && blocks_[row_at(end)] == block) ++end;
    return {places.begin, end};
}

// The first place of a page whose offset is not below the given one.
std::size_t TidOrder::first_at(Places places, std::uint16_t offset) const
{
    while (places.begin < places.end) {
        const std::size_t middle = places.begin + (places.end - places.begin) / 2;
        if (offsets_[row_at(middle)] < offset) {
            places.begin = middle + 1;
        } else {
            places.end = middle;
        }
    }
    return places.end;
}

// Where all rows of a page are in the index, that with offset 1 comes first. Several rows with one address are dead but
// for one.
void TidOrder::add_rows_at(Places places, std::uint16_t offset, std::vector<std::uint32_t>& rows) const
{
    const auto is_there = [&](std::size_t place) {
        return place >= places.begin && place < places.end && offsets_[row_at(place)] == offset;
    };
    std::size_t place = places.begin + offset - 1;
    if (!is_there(place) || (place > places.begin && is_there(place - 1))) place = first_at(places, offset);
    for (; is_there(place); ++place) rows.push_back(row_at(place));
}

// Prefetch the directory's entry of a page; then, with that, the offset of its first wanted row.
void TidOrder::bring_entry_near(const TidPage& page) const
{
    const std::size_t entry = page.block >> shift_;
    if (entry < first_.size()) __builtin_prefetch(first_.data() + entry);
}

void TidOrder::bring_rows_near(const TidPage& page) const
{
    const std::size_t entry = page.block >> shift_;
    if (entry + 1 >= first_.size() || !rows_.empty()) return;
    const bool has_bits = !page.is_whole() && page.bits[0] != 0;
    const std::size_t ahead = has_bits ? static_cast<std::size_t>(std::countr_zero(page.bits[0])) : 0;
    __builtin_prefetch(offsets_.data() + first_[entry] + ahead);
}

void TidOrder::add_rows_of(const TidPage& page, std::vector<std::uint32_t>& rows) const
{
    const Places places = places_of(page.block);
    if (page.is_whole()) {
        for (std::size_t place = places.begin; place < places.end; ++place) rows.push_back(row_at(place));
        return;
    }
    if (places.begin == places.end) return;
    for (std::size_t word = 0; word < page.bits.size(); ++word) {
        for (std::uint64_t bits = page.bits[word]; bits != 0; bits &= bits - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
            add_rows_at(places, static_cast<std::uint16_t>(64 * word + bit + 1), rows);
        }
    }
}

std::vector<std::uint32_t> TidOrder::rows_of(const TidBitmap& bitmap, ThreadPool& pool)
{
    made_.run([&] { make(pool); });
    std::vector<std::vector<std::uint32_t>> pieces((bitmap.pages() + listed_pages - 1) / listed_pages);
    pool.parallel_for(pieces.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t piece = begin; piece < end; ++piece) {
            const std::size_t last = std::min((piece + 1) * listed_pages, bitmap.pages());
            for (std::size_t page = piece * listed_pages; page < last; ++page) {
                if (page + 2 * pages_ahead < last) bring_entry_near(bitmap.page(page + 2 * pages_ahead));
                if (page + pages_ahead < last) bring_rows_near(bitmap.page(page + pages_ahead));
                add_rows_of(bitmap.page(page), pieces[piece]);
            }
        }
    });
    if (pieces.size() == 1) return std::move(pieces[0]);
    std::vector<std::uint32_t> rows;
    for (const auto& piece : pieces) rows.insert(rows.end(), piece.begin(), piece.end());
    return rows;
}

std::uint64_t TidOrder::estimate(const TidBitmap& bitmap) const
{
    if (blocks_.empty()) return 0;
    // Rows are taken to be spread evenly over the pages up to that of the last row.
    const std::uint64_t pages = std::uint64_t{blocks_.back()} + 1;
    const std::uint64_t whole = bitmap.whole_pages() * (blocks_.size() / pages + 1);
    return std::min<std::uint64_t>(bitmap.tids() + whole, blocks_.size());
}

std::uint64_t TidOrder::memory_bytes() const
{
    return is_ready() ? (rows_.size() + first_.size()) * sizeof(std::uint32_t) : 0;
}

}  // namespace pgwarp
