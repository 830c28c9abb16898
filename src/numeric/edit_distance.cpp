// Edit distances by Myers' bit vectors: a column of the dynamic programming table is two bits a row, its differences to
// the row above, and one step goes to the next column for 64 rows.
#include "numeric/edit_distance.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace pgwarp
{

namespace
{

constexpr std::uint32_t byte_characters = 256;
constexpr std::uint32_t steps_to_poll = 1U << 18;  // each of a few nanoseconds

std::uint32_t most_slots(const TextView& pattern)
{
    return pattern.bytes_each == 1 ? std::min(pattern.length, byte_characters) : pattern.length;
}

// Returns 0 where all characters of the pattern are bytes.
std::uint32_t hash_places(const TextView& pattern)
{
    return pattern.bytes_each == 1 ? 0 : std::bit_ceil(2 * pattern.length + 1);
}

// Takes arrays from the memory of a pattern, whole words each.
class Carver
{
public:
    explicit Carver(std::uint64_t* memory) : memory_(memory) {}
    template <class T>
    T* take(std::size_t count)
    {
        auto* taken = reinterpret_cast<T*>(memory_ + words_);
        words_ += (count * sizeof(T) + 7) / 8;
        return taken;
    }
    std::size_t words() const { return words_; }

private:
    std::uint64_t* memory_;
    std::size_t words_ = 0;
};

// The differences of 64 rows of one column. Kinds without transpositions need the first two only.
struct ColumnBlock {
    std::uint64_t plus = ~std::uint64_t{0};  // rows one above the row before: so in column 0
    std::uint64_t minus = 0;                 // rows one below the row before
};
struct SwapColumnBlock : ColumnBlock {
    std::uint64_t same_diagonal = 0;  // rows that equal their upper left neighbour
    std::uint64_t match = 0;          // rows whose pattern character is the column's
};
template <EditKind kind>
using BlockOf = std::conditional_t<kind == EditKind::transpositions, SwapColumnBlock, ColumnBlock>;

// The bits that go from a block to the next one in the same column: the difference of the boundary row to its left
// neighbour, and whether a swap across the boundary is possible.
struct Carry {
    std::uint64_t plus;
    std::uint64_t minus;
    std::uint64_t swap = 0;
};

// The row above the first block.
template <EditKind kind>
constexpr Carry top_carry{kind == EditKind::substring ? 0U : 1U, 0};

// Goes to the next column. `last_row` is the row of the block whose difference to its left neighbour is carried on.
template <EditKind kind>
inline void next_column(BlockOf<kind>& block, std::uint64_t match, Carry& carry, std::uint32_t last_row)
{
    std::uint64_t diagonal = match | carry.minus;
    diagonal = (((diagonal & block.plus) + block.plus) ^ block.plus) | diagonal | block.minus;
    if constexpr (kind == EditKind::transpositions) {
        const std::uint64_t swaps = ~block.same_diagonal & match;
        diagonal |= (swaps << 1 | carry.swap) & block.match;
        carry.swap = swaps >> 63;
        block.same_diagonal = diagonal;
        block.match = match;
    }
    std::uint64_t plus = block.minus | ~(diagonal | block.plus);
    std::uint64_t minus = diagonal & block.plus;
    const std::uint64_t plus_out = plus >> last_row & 1;
    const std::uint64_t minus_out = minus >> last_row & 1;
    plus = plus << 1 | carry.plus;
    minus = minus << 1 | carry.minus;
    block.plus = minus | ~(diagonal | plus);
    block.minus = plus & diagonal;
    carry.plus = plus_out;
    carry.minus = minus_out;
}

// The value of the pattern's last row in the columns, and when it decides.
template <EditKind kind>
class LastRow
{
public:
    LastRow(std::uint32_t value, std::uint32_t at_most) : value_(value), at_most_(at_most) {}

    void add(std::int64_t difference) { value_ += difference; }

    // Called when a column is done and `left` columns are to come, in each of which the value falls by at most 1.
    // Whether the result is known.
    bool decided(std::uint32_t left)
    {
        if constexpr (kind == EditKind::substring) {
            best_ = std::min(best_, value_);
            return value_ - left >= std::min(best_, at_most_ + 1);
        }
        return value_ - left > at_most_;
    }
    std::uint32_t result() const
    {
        if constexpr (kind == EditKind::substring) return static_cast<std::uint32_t>(best_);
        return static_cast<std::uint32_t>(value_);
    }

private:
    std::int64_t value_;
    std::int64_t best_ = no_edit_limit;  // substring: of the columns; the first is no worse than the empty text
    std::int64_t at_most_;
};

// The blocks of a column that distances of at most `at_most` may depend on (Ukkonen 1985): a path through a cell d rows
// below the main diagonal costs at least |d| to get there and |m - n - d| to the end.
class Band
{
public:
    Band(EditKind kind, std::int64_t pattern, std::int64_t text, std::int64_t at_most)
        : last_block_((pattern - 1) / 64), above_(text), below_(pattern)
    {
        if (kind == EditKind::substring) return;  // paths begin in any column
        const std::int64_t edits = std::min(at_most, std::max(pattern, text));
        // A swap reads two rows and columns back, where a block has to be in the band already.
        const std::int64_t margin = kind == EditKind::transpositions ? 1 : 0;
        above_ = (edits - (pattern - text)) / 2 + margin;
        below_ = (edits + (pattern - text)) / 2 + margin;
    }
    std::uint32_t first(std::int64_t column) const
    {
        return static_cast<std::uint32_t>(std::clamp<std::int64_t>((column - above_ - 1) / 64, 0, last_block_));
    }
    std::uint32_t last(std::int64_t column) const
    {
        return static_cast<std::uint32_t>(std::min((column + below_ - 1) / 64, last_block_));
    }

private:
    std::int64_t last_block_;
    std::int64_t above_;
    std::int64_t below_;
};

std::uint32_t excess(std::uint32_t at_most)
{
    return at_most + 1;  // distances are less than no_edit_limit
}

}  // namespace

std::size_t EditPattern::memory_words(const TextView& pattern)
{
    const std::size_t slots = most_slots(pattern) + 1;
    const std::size_t blocks = (pattern.length + 63) / 64;
    Carver carver(nullptr);
    carver.take<std::uint64_t>(pattern.length + 1 + 4 * blocks);
    carver.take<std::uint32_t>(3 * slots);
    carver.take<std::uint16_t>(byte_characters + hash_places(pattern) + pattern.length + 1);
    return carver.words();
}

EditPattern::EditPattern(const TextView& pattern, EditKind kind, std::uint64_t* memory)
    : length_(pattern.length), kind_(kind)
{
    const std::size_t slots = most_slots(pattern) + 1;
    const std::uint32_t places = hash_places(pattern);
    Carver carver(memory);
    masks_ = carver.take<std::uint64_t>(length_ + 1 + 4 * std::size_t{block_count()});
    columns_ = masks_ + length_ + 1;
    mask_begins_ = carver.take<std::uint32_t>(3 * slots);
    mask_ends_ = mask_begins_ + slots;
    slot_characters_ = mask_ends_ + slots;
    byte_slots_ = carver.take<std::uint16_t>(byte_characters + places + length_ + 1);
    if (places > 0) hash_ = byte_slots_ + byte_characters;
    hash_mask_ = places - 1;
    mask_blocks_ = byte_slots_ + byte_characters + places;
    std::fill_n(byte_slots_, byte_characters + places, std::uint16_t{0});
    fill_masks(pattern);
}

// Counts the blocks of each character, gives each slot its part of the masks, and sets them.
void EditPattern::fill_masks(const TextView& pattern)
{
    mask_begins_[0] = mask_ends_[0] = 0;
    masks_[0] = 0;
    mask_blocks_[0] = 0;
    std::uint32_t slots = 0;
    for (std::uint32_t i = 0; i < length_; ++i) {
        const std::uint32_t slot = make_slot(pattern[i], slots);
        const std::uint32_t block_end = i / 64 + 1;  // mask_begins_ holds the last one seen
        mask_ends_[slot] += mask_begins_[slot] < block_end ? 1 : 0;
        mask_begins_[slot] = block_end;
    }
    std::uint32_t begin = 1;
    for (std::uint32_t slot = 1; slot <= slots; ++slot) {
        const std::uint32_t count = mask_ends_[slot];
        mask_begins_[slot] = mask_ends_[slot] = begin;
        begin += count;
    }
    for (std::uint32_t i = 0; i < length_; ++i) {
        const std::uint32_t slot = slot_of(pattern[i]);
        std::uint32_t& end = mask_ends_[slot];
        if (end == mask_begins_[slot] || mask_blocks_[end - 1] != i / 64) {
            mask_blocks_[end] = static_cast<std::uint16_t>(i / 64);
            masks_[end++] = 0;
        }
        masks_[end - 1] |= std::uint64_t{1} << i % 64;
    }
}

// Returns the place of a character or the empty one where it belongs.
std::uint32_t EditPattern::hash_place(std::uint32_t character) const
{
    std::uint32_t place = (character * 0x9e3779b1U >> 12) & hash_mask_;
    while (hash_[place] != 0 && slot_characters_[hash_[place]] != character) place = (place + 1) & hash_mask_;
    return place;
}

std::uint32_t EditPattern::slot_of(std::uint32_t character) const
{
    if (character < byte_characters) return byte_slots_[character];
    return hash_ == nullptr ? 0 : hash_[hash_place(character)];
}

std::uint32_t EditPattern::make_slot(std::uint32_t character, std::uint32_t& slots)
{
    std::uint16_t& slot = character < byte_characters ? byte_slots_[character] : hash_[hash_place(character)];
    if (slot == 0) {
        slot = static_cast<std::uint16_t>(++slots);
        slot_characters_[slot] = character;
        mask_begins_[slot] = mask_ends_[slot] = 0;
    }
    return slot;
}

std::uint32_t EditPattern::block_rows(std::uint32_t block) const
{
    return std::min(64U, length_ - 64 * block);
}

std::uint32_t EditPattern::distance(const TextView& text, std::uint32_t at_most, const EditPoll& poll) const
{
    const bool substring = kind_ == EditKind::substring;
    if (length_ == 0) return substring ? 0 : text.length;
    if (text.length == 0) return length_;
    if (length_ > text.length && length_ - text.length > at_most) return excess(at_most);
    if (!substring && text.length > length_ && text.length - length_ > at_most) return excess(at_most);
    if (text.bytes_each == 1)
        return distance_by_kind(static_cast<const std::uint8_t*>(text.characters), text.length, at_most, poll);
    if (text.bytes_each == 2)
        return distance_by_kind(static_cast<const std::uint16_t*>(text.characters), text.length, at_most, poll);
    return distance_by_kind(static_cast<const std::uint32_t*>(text.characters), text.length, at_most, poll);
}

template <class Character>
std::uint32_t EditPattern::distance_by_kind(const Character* text, std::uint32_t length, std::uint32_t at_most,
                                            const EditPoll& poll) const
{
    const auto of_kind = [&]<EditKind kind>() {
        return length_ <= 64 ? distance_in_block<kind>(text, length, at_most)
                             : distance_in_blocks<kind>(text, length, at_most, poll);
    };
    switch (kind_) {
        case EditKind::levenshtein:
            return of_kind.template operator()<EditKind::levenshtein>();
        case EditKind::transpositions:
            return of_kind.template operator()<EditKind::transpositions>();
        case EditKind::substring:
            return of_kind.template operator()<EditKind::substring>();
    }
    return 0;
}

template <EditKind kind, class Character>
std::uint32_t EditPattern::distance_in_block(const Character* text, std::uint32_t length, std::uint32_t at_most) const
{
    BlockOf<kind> block;
    LastRow<kind> last_row(length_, at_most);
    for (std::uint32_t i = 0; i < length; ++i) {
        Carry carry = top_carry<kind>;
        next_column<kind>(block, masks_[slot_of(text[i])], carry, length_ - 1);
        last_row.add(static_cast<std::int64_t>(carry.plus) - static_cast<std::int64_t>(carry.minus));
        if (last_row.decided(length - 1 - i)) break;
    }
    return last_row.result();
}

// A block above the band is as if its last row grew by 1 in each column from where the band left it, one below as if it
// grew by 1 in each row: values of cells are then those of paths, and paths in the band are all there.
template <EditKind kind, class Character>
std::uint32_t EditPattern::distance_in_blocks(const Character* text, std::uint32_t length, std::uint32_t at_most,
                                              const EditPoll& poll) const
{
    const Band band(kind, length_, length, at_most);
    auto* const blocks = reinterpret_cast<BlockOf<kind>*>(columns_);
    const std::uint32_t count = block_count();
    std::uint32_t known = 0;             // blocks that the band has reached
    LastRow<kind> last_row(0, at_most);  // of the last of them
    std::uint32_t steps = 0;             // since the last poll
    for (std::uint32_t i = 0; i < length; ++i) {
        const std::uint32_t first = band.first(i + 1);
        for (; known <= band.last(i + 1); ++known) {
            blocks[known] = {};
            last_row.add(block_rows(known));
        }
        const std::uint32_t slot = slot_of(text[i]);
        const std::uint32_t end = mask_ends_[slot];
        std::uint32_t mask = mask_begins_[slot];
        if (first > 0)
            mask = static_cast<std::uint32_t>(std::lower_bound(mask_blocks_ + mask, mask_blocks_ + end, first) -
                                              mask_blocks_);
        Carry carry = top_carry<kind>;
        for (std::uint32_t b = first; b < known; ++b) {
            const bool has = mask < end && mask_blocks_[mask] == b;
            next_column<kind>(blocks[b], has ? masks_[mask] : 0, carry, block_rows(b) - 1);
            mask += has ? 1 : 0;
        }
        last_row.add(static_cast<std::int64_t>(carry.plus) - static_cast<std::int64_t>(carry.minus));
        if (known == count && last_row.decided(length - 1 - i)) break;
        steps += known - first + 1;
        if (steps < steps_to_poll || poll.call == nullptr) continue;
        steps = 0;
        poll.call(poll.argument);
    }
    return last_row.result();
}

}  // namespace pgwarp
