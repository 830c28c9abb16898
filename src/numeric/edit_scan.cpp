// Edit distances of one pattern to many rows by SIMD with run-time dispatch (Highway). A lane holds the differences of
// one row's column; rows are compared in batches, and the masks of their next characters are laid out lane by lane.
#include "numeric/edit_scan.h"

#include <algorithm>
#include <limits>

// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/edit_scan.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

// Some vectors of rows, whose columns are independent: one vector's instructions wait for each other.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
class Batch
{
    using Lanes = hn::ScalableTag<Lane>;
    using Vector = hn::Vec<Lanes>;
    static constexpr std::size_t lane_count = hn::MaxLanes(Lanes());
    static constexpr std::size_t step_columns = 16;  // between two looks at the distances
    static constexpr bool swaps = kind == EditKind::transpositions;
    static constexpr bool substring = kind == EditKind::substring;

public:
    static constexpr std::size_t capacity = vectors * lane_count;

    Batch(const EditMasks& masks, std::uint32_t at_most) : masks_(masks), at_most_(std::min(at_most, no_edit_limit - 1))
    {
    }

    bool full() const { return count_ == capacity; }
    void add(const TextView& text, std::uint32_t* out)
    {
        texts_[count_] = text;
        lengths_[count_] = text.length;
        outs_[count_++] = out;
    }
    void compare();

private:
    HWY_INLINE void lay_out_masks(std::uint32_t begin, std::uint32_t end);
    template <class Character>
    HWY_INLINE void lay_out_row(std::size_t row, const Character* characters, std::uint32_t count);
    HWY_INLINE void pass_columns(std::uint32_t first, std::uint32_t count);
    HWY_INLINE void measure();
    HWY_INLINE std::uint32_t next_end(std::uint32_t column, std::uint32_t end) const;
    HWY_INLINE bool decided(std::uint32_t column) const;
    // The least value that a row may still get behind `column`, and the value below which that would change its result.
    HWY_INLINE std::int64_t least_value(std::size_t row, std::uint32_t column) const
    {
        const std::int64_t left = std::int64_t{lengths_[row]} - column;
        if constexpr (substring) return static_cast<std::int64_t>(value_[row]) - left;
        return std::int64_t{column} + differences_[row] - left;
    }
    HWY_INLINE std::int64_t bar(std::size_t row) const
    {
        if constexpr (substring) return std::min(static_cast<std::int64_t>(best_[row]), at_most_ + 1);
        return at_most_ + 1;
    }
    // The distance of a row that ends with `column`.
    HWY_INLINE std::uint32_t distance_of(std::size_t row, std::uint32_t column) const
    {
        if constexpr (substring) return static_cast<std::uint32_t>(best_[row]);
        return static_cast<std::uint32_t>(std::int64_t{column} + differences_[row]);
    }
    HWY_INLINE void take_ended(std::uint32_t column);

    const EditMasks& masks_;
    std::int64_t at_most_;
    std::size_t count_ = 0;
    TextView texts_[capacity];
    std::uint32_t lengths_[capacity];
    std::uint32_t* outs_[capacity];
    HWY_ALIGN Lane plus_[blocks][capacity];   // the last column: rows of the table that are one above the row before
    HWY_ALIGN Lane minus_[blocks][capacity];  // and one below
    HWY_ALIGN Lane next_masks_[step_columns][blocks][capacity];
    std::int32_t differences_[capacity];  // of the column's last value and its first
    // Transpositions: rows of the last column that equal their upper left neighbours, and its masks.
    HWY_ALIGN Lane same_[swaps ? blocks : 1][capacity];
    HWY_ALIGN Lane match_[swaps ? blocks : 1][capacity];
    // Substrings: the last value of the column, and the least of all columns.
    HWY_ALIGN Lane value_[capacity];
    HWY_ALIGN Lane best_[capacity];
};

// Compares all rows of the batch and empties it.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
void Batch<kind, Lane, blocks, vectors>::compare()
{
    for (std::size_t i = count_; i < capacity; ++i) lengths_[i] = 0;
    std::fill_n(plus_[0], blocks * capacity, static_cast<Lane>(~Lane{0}));
    std::fill_n(minus_[0], blocks * capacity, Lane{0});
    if constexpr (swaps) {
        std::fill_n(same_[0], blocks * capacity, Lane{0});
        std::fill_n(match_[0], blocks * capacity, Lane{0});
    }
    if constexpr (substring) {
        std::fill_n(value_, capacity, static_cast<Lane>(masks_.length()));
        std::fill_n(best_, capacity, static_cast<Lane>(masks_.length()));
    }
    const std::uint32_t longest = *std::max_element(lengths_, lengths_ + capacity);
    for (std::size_t i = 0; i < count_; ++i) {
        if (lengths_[i] == 0) *outs_[i] = masks_.length();
    }
    for (std::uint32_t column = 0; column < longest;) {
        const std::uint32_t step_begin = column;
        const std::uint32_t step_end = std::min<std::uint32_t>(longest, step_begin + step_columns);
        lay_out_masks(step_begin, step_end);
        while (column < step_end) {
            const std::uint32_t next = next_end(column, step_end);
            pass_columns(column - step_begin, next - column);
            column = next;
            measure();
            take_ended(column);
        }
        if (decided(column)) break;
    }
    count_ = 0;
}

// Returns the number of columns at which the next row ends, or `end` if that is less.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
std::uint32_t Batch<kind, Lane, blocks, vectors>::next_end(std::uint32_t column, std::uint32_t end) const
{
    for (const std::uint32_t length : lengths_) end = std::min(end, length > column ? length : end);
    return end;
}

// Looks up the masks of the rows' characters [begin, end). Rows that have ended have none, because nobody reads their
// lanes any more.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
void Batch<kind, Lane, blocks, vectors>::lay_out_masks(std::uint32_t begin, std::uint32_t end)
{
    for (std::size_t row = 0; row < count_; ++row) {
        const TextView& text = texts_[row];
        if (text.length <= begin) continue;
        const std::uint32_t count = std::min(text.length, end) - begin;
        if (text.bytes_each == 1) lay_out_row(row, static_cast<const std::uint8_t*>(text.characters) + begin, count);
        if (text.bytes_each == 2) lay_out_row(row, static_cast<const std::uint16_t*>(text.characters) + begin, count);
        if (text.bytes_each == 4) lay_out_row(row, static_cast<const std::uint32_t*>(text.characters) + begin, count);
    }
}

template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
template <class Character>
void Batch<kind, Lane, blocks, vectors>::lay_out_row(std::size_t row, const Character* characters, std::uint32_t count)
{
    // A pointer to the masks that is kept outside of the loop makes compilers gather and scatter, which is slower.
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t* masks = masks_.of(characters[i]);
        for (std::uint32_t b = 0; b < blocks; ++b) next_masks_[i][b][row] = static_cast<Lane>(masks[b]);
    }
}

// Goes on by these columns of the step, in registers.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
void Batch<kind, Lane, blocks, vectors>::pass_columns(std::uint32_t first, std::uint32_t count)
{
    const Lanes lanes;
    constexpr int top = static_cast<int>(sizeof(Lane) * 8) - 1;
    const Vector one = hn::Set(lanes, Lane{1});
    const int last_row = static_cast<int>((masks_.length() - 1) % (sizeof(Lane) * 8));
    Vector plus[blocks][vectors];
    Vector minus[blocks][vectors];
    Vector same[swaps ? blocks : 1][vectors];
    Vector match_before[swaps ? blocks : 1][vectors];
    Vector value[vectors];
    Vector best[vectors];
    for (std::size_t v = 0; v < vectors; ++v) {
        for (std::uint32_t b = 0; swaps && b < blocks; ++b) {
            same[b][v] = hn::Load(lanes, same_[b] + v * lane_count);
            match_before[b][v] = hn::Load(lanes, match_[b] + v * lane_count);
        }
        if (substring) value[v] = hn::Load(lanes, value_ + v * lane_count);
        if (substring) best[v] = hn::Load(lanes, best_ + v * lane_count);
    }
    for (std::uint32_t b = 0; b < blocks; ++b) {
        for (std::size_t v = 0; v < vectors; ++v) {
            plus[b][v] = hn::Load(lanes, plus_[b] + v * lane_count);
            minus[b][v] = hn::Load(lanes, minus_[b] + v * lane_count);
        }
    }
    for (std::uint32_t column = first; column < first + count; ++column) {
        for (std::size_t v = 0; v < vectors; ++v) {
            // The first row of the table grows by 1 in each column; a substring may begin in any.
            Vector plus_carry = substring ? hn::Zero(lanes) : one;
            Vector minus_carry = hn::Zero(lanes);
            Vector swap_carry = hn::Zero(lanes);
            for (std::uint32_t b = 0; b < blocks; ++b) {
                const Vector match = hn::Load(lanes, next_masks_[column][b] + v * lane_count);
                const Vector p = plus[b][v];
                const Vector m = minus[b][v];
                const Vector start = b == 0 ? match : hn::Or(match, minus_carry);
                const Vector sum = hn::Add(hn::And(start, p), p);
                Vector diagonal = hn::Or(hn::Xor(sum, p), hn::Or(start, m));
                if constexpr (swaps) {
                    const Vector swapped = hn::AndNot(same[b][v], match);
                    const Vector shifted = hn::Or(hn::Add(swapped, swapped), swap_carry);
                    diagonal = hn::Or(diagonal, hn::And(shifted, match_before[b][v]));
                    swap_carry = hn::ShiftRight<top>(swapped);
                    same[b][v] = diagonal;
                    match_before[b][v] = match;
                }
                const Vector right_plus = hn::Or(m, hn::Not(hn::Or(diagonal, p)));
                const Vector right_minus = hn::And(diagonal, p);
                const Vector shifted_plus = hn::Or(hn::Add(right_plus, right_plus), plus_carry);
                const Vector doubled_minus = hn::Add(right_minus, right_minus);
                const Vector shifted_minus = b == 0 ? doubled_minus : hn::Or(doubled_minus, minus_carry);
                plus[b][v] = hn::Or(shifted_minus, hn::Not(hn::Or(diagonal, shifted_plus)));
                minus[b][v] = hn::And(shifted_plus, diagonal);
                if constexpr (substring) {
                    if (b + 1 == blocks) {
                        const Vector up = hn::And(hn::ShiftRightSame(right_plus, last_row), one);
                        const Vector down = hn::And(hn::ShiftRightSame(right_minus, last_row), one);
                        value[v] = hn::Sub(hn::Add(value[v], up), down);
                        best[v] = hn::Min(best[v], value[v]);
                    }
                }
                if (b + 1 == blocks) continue;
                plus_carry = hn::ShiftRight<top>(right_plus);
                minus_carry = hn::ShiftRight<top>(right_minus);
            }
        }
    }
    for (std::uint32_t b = 0; b < blocks; ++b) {
        for (std::size_t v = 0; v < vectors; ++v) {
            hn::Store(plus[b][v], lanes, plus_[b] + v * lane_count);
            hn::Store(minus[b][v], lanes, minus_[b] + v * lane_count);
            if (swaps) hn::Store(same[b][v], lanes, same_[b] + v * lane_count);
            if (swaps) hn::Store(match_before[b][v], lanes, match_[b] + v * lane_count);
        }
    }
    for (std::size_t v = 0; substring && v < vectors; ++v) {
        hn::Store(value[v], lanes, value_ + v * lane_count);
        hn::Store(best[v], lanes, best_ + v * lane_count);
    }
}

// Sums the differences of the column: its last value is its first plus them.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
void Batch<kind, Lane, blocks, vectors>::measure()
{
    if constexpr (substring) return;
    const Lanes lanes;
    const std::uint32_t last_rows = masks_.length() - (blocks - 1) * static_cast<std::uint32_t>(sizeof(Lane) * 8);
    const Vector last_mask = hn::Set(lanes, static_cast<Lane>(~std::uint64_t{0} >> (64 - last_rows)));
    for (std::size_t v = 0; v < vectors; ++v) {
        Vector sum = hn::Zero(lanes);
        for (std::uint32_t b = 0; b < blocks; ++b) {
            Vector plus = hn::Load(lanes, plus_[b] + v * lane_count);
            Vector minus = hn::Load(lanes, minus_[b] + v * lane_count);
            if (b + 1 == blocks) {
                plus = hn::And(plus, last_mask);
                minus = hn::And(minus, last_mask);
            }
            sum = hn::Add(sum, hn::Sub(hn::PopulationCount(plus), hn::PopulationCount(minus)));
        }
        HWY_ALIGN Lane sums[lane_count];
        hn::Store(sum, lanes, sums);
        for (std::size_t i = 0; i < lane_count; ++i)
            differences_[v * lane_count + i] =
                static_cast<std::int32_t>(static_cast<std::make_signed_t<Lane>>(sums[i]));
    }
}

// Whether the distances of all rows that have not ended are known: they exceed the limit, or that of the nearest
// substring so far is the least. From `column` on the last value of a column falls by at most 1 a column.
template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
bool Batch<kind, Lane, blocks, vectors>::decided(std::uint32_t column) const
{
    for (std::size_t i = 0; i < count_; ++i) {
        if (lengths_[i] > column && least_value(i, column) < bar(i)) return false;
    }
    for (std::size_t i = 0; i < count_; ++i) {
        if (lengths_[i] > column) *outs_[i] = static_cast<std::uint32_t>(bar(i));
    }
    return true;
}

template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
void Batch<kind, Lane, blocks, vectors>::take_ended(std::uint32_t column)
{
    for (std::size_t i = 0; i < count_; ++i) {
        if (lengths_[i] == column) *outs_[i] = distance_of(i, column);
    }
}

// The hardware prefetcher loads the rest.
HWY_INLINE void fetch_text(const std::uint32_t* words)
{
    constexpr std::size_t line_words = 16;
    hwy::Prefetch(words);
    hwy::Prefetch(words + line_words);
}

template <EditKind kind, class Lane, std::uint32_t blocks, std::size_t vectors>
void scan(const EditMasks& masks, const RowView& rows, const std::uint32_t* ids, std::size_t count,
          std::uint32_t at_most, std::uint32_t* out)
{
    constexpr std::size_t ahead = 32;
    const std::uint32_t length = masks.length();
    Batch<kind, Lane, blocks, vectors> batch(masks, at_most);
    const auto too_far = [&](std::uint32_t other) {
        if (other > length) return kind != EditKind::substring && other - length > at_most;
        return length - other > at_most;
    };
    for (std::size_t i = 0; i < count; ++i) {
        if (i + 2 * ahead < count) hwy::Prefetch(rows.offsets + ids[i + 2 * ahead]);
        if (i + ahead < count) fetch_text(rows.words + rows.offsets[ids[i + ahead]]);
        const TextView text = view_text(rows.list(ids[i]));
        if (too_far(text.length)) {
            out[i] = at_most + 1;
            continue;
        }
        batch.add(text, out + i);
        if (batch.full()) batch.compare();
    }
    batch.compare();
}

template <EditKind kind>
void scan_by_length(const EditMasks& masks, const RowView& rows, const std::uint32_t* ids, std::size_t count,
                    std::uint32_t at_most, std::uint32_t* out)
{
    if (masks.length() <= 16) return scan<kind, std::uint16_t, 1, 2>(masks, rows, ids, count, at_most, out);
    if (masks.length() <= 32) return scan<kind, std::uint32_t, 1, 2>(masks, rows, ids, count, at_most, out);
    if (masks.blocks() == 1) return scan<kind, std::uint64_t, 1, 2>(masks, rows, ids, count, at_most, out);
    if (masks.blocks() == 2) return scan<kind, std::uint64_t, 2, 2>(masks, rows, ids, count, at_most, out);
    if (masks.blocks() == 3) return scan<kind, std::uint64_t, 3, 1>(masks, rows, ids, count, at_most, out);
    return scan<kind, std::uint64_t, 4, 1>(masks, rows, ids, count, at_most, out);
}

// The entry point of one target: dispatch needs functions that are no templates.
void scan_rows(EditKind kind, const EditMasks& masks, const RowView& rows, const std::uint32_t* ids, std::size_t count,
               std::uint32_t at_most, std::uint32_t* out)
{
    switch (kind) {
        case EditKind::levenshtein:
            return scan_by_length<EditKind::levenshtein>(masks, rows, ids, count, at_most, out);
        case EditKind::transpositions:
            return scan_by_length<EditKind::transpositions>(masks, rows, ids, count, at_most, out);
        case EditKind::substring:
            return scan_by_length<EditKind::substring>(masks, rows, ids, count, at_most, out);
    }
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(scan_rows);

namespace
{

void compare_row_by_row(const TextView& pattern, EditKind kind, const RowView& rows, std::span<const std::uint32_t> ids,
                        std::uint32_t at_most, std::span<std::uint32_t> out, const EditPoll& poll)
{
    std::vector<std::uint64_t> memory(EditPattern::memory_words(pattern));
    const EditPattern compared(pattern, kind, memory.data());
    for (std::size_t i = 0; i < ids.size(); ++i)
        out[i] = compared.distance(view_text(rows.list(ids[i])), at_most, poll);
}

}  // namespace

EditMasks::EditMasks(const TextView& pattern)
    : length_(pattern.length),
      blocks_((pattern.length + 63) / 64),
      masks_(std::size_t{bytes + 1} * blocks_),
      wide_characters_(wide_places),
      wide_slots_(wide_places, bytes)
{
    for (std::uint32_t i = 0; i < length_; ++i) {
        const std::uint32_t character = pattern[i];
        const std::uint32_t place = character < bytes ? 0 : wide_place(character);
        if (character >= bytes && wide_characters_[place] == 0) {
            wide_characters_[place] = character;
            wide_slots_[place] = static_cast<std::uint16_t>(masks_.size() / blocks_);
            masks_.resize(masks_.size() + blocks_);
        }
        const std::uint32_t slot = character < bytes ? character : wide_slots_[place];
        masks_[std::size_t{slot} * blocks_ + i / 64] |= std::uint64_t{1} << i % 64;
    }
}

EditScan::EditScan(const TextView& pattern, EditKind kind)
    : words_(text_words(pattern.length, pattern.bytes_each)),
      kind_(kind),
      masks_(pattern.length <= EditMasks::most_characters ? pattern : TextView())
{
    std::copy_n(static_cast<const std::uint32_t*>(pattern.characters), words_.size() - 1, words_.begin() + 1);
    words_[0] = pattern.length | (pattern.bytes_each >> 1) << text_length_bits;
}

void EditScan::distances(const RowView& rows, std::span<const std::uint32_t> ids, std::uint32_t at_most,
                         std::span<std::uint32_t> out, const EditPoll& poll) const
{
    if (masks_.length() == 0) return compare_row_by_row(view_text(words_), kind_, rows, ids, at_most, out, poll);
    HWY_DYNAMIC_DISPATCH(scan_rows)(kind_, masks_, rows, ids.data(), ids.size(), at_most, out.data());
}

}  // namespace pgwarp
#endif
