// Edit distances of text, by bit-parallel dynamic programming: Myers, "A fast bit-vector algorithm for approximate
// string matching based on dynamic programming" (JACM 1999), in blocks of 64 characters of the pattern; transpositions
// as in Hyyro, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003). Nothing here
// allocates or throws, because backends call it too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/text_rows.h"

namespace pgwarp
{

enum class EditKind : std::uint8_t {
    levenshtein,     // insertions, deletions, substitutions
    transpositions,  // and swaps of neighbours that no other edit touches: the restricted Damerau distance
    substring,       // the Levenshtein distance of the pattern to the nearest substring of the text
};

inline constexpr std::uint32_t no_edit_limit = 0xffffffff;

// Called during long comparisons, at least every few milliseconds; it may leave them by an exception or longjmp().
struct EditPoll {
    void (*call)(void*) = nullptr;
    void* argument = nullptr;
};

// A pattern, prepared once and compared with many texts. It points to the caller's memory. Comparisons write to its
// scratch memory: a thread that compares needs a pattern of its own. A comparison of m with n characters takes about
// n * (m / 64) steps of a few nanoseconds; a small at_most makes long ones shorter.
class EditPattern
{
public:
    // Returns the number of words that a pattern of this text needs: less than 9 a character and 100 more.
    static std::size_t memory_words(const TextView& pattern);
    // `pattern` has at most max_text_characters. `memory`: memory_words(pattern) words, which live as long as the
    // pattern; the text need not.
    EditPattern(const TextView& pattern, EditKind kind, std::uint64_t* memory);

    std::uint32_t length() const { return length_; }
    // Returns the distance to the text if it is at most `at_most`, otherwise a number above at_most.
    std::uint32_t distance(const TextView& text, std::uint32_t at_most = no_edit_limit,
                           const EditPoll& poll = {}) const;

private:
    std::uint32_t slot_of(std::uint32_t character) const;
    std::uint32_t hash_place(std::uint32_t character) const;
    std::uint32_t make_slot(std::uint32_t character, std::uint32_t& slots);
    void fill_masks(const TextView& pattern);
    std::uint32_t block_count() const { return (length_ + 63) / 64; }
    std::uint32_t block_rows(std::uint32_t block) const;
    template <class Character>
    std::uint32_t distance_by_kind(const Character* text, std::uint32_t length, std::uint32_t at_most,
                                   const EditPoll& poll) const;
    template <EditKind kind, class Character>
    std::uint32_t distance_in_block(const Character* text, std::uint32_t length, std::uint32_t at_most) const;
    template <EditKind kind, class Character>
    std::uint32_t distance_in_blocks(const Character* text, std::uint32_t length, std::uint32_t at_most,
                                     const EditPoll& poll) const;

    std::uint32_t length_ = 0;
    EditKind kind_ = EditKind::levenshtein;
    // Each character of the pattern has a slot, from 1; slot 0 is that of all others. A slot has one mask for each
    // block of the pattern that has the character, so that memory is linear in the length.
    std::uint16_t* byte_slots_ = nullptr;  // of characters below 256
    std::uint16_t* hash_ = nullptr;        // slots of the others, by open addressing; null: the pattern has none
    std::uint32_t hash_mask_ = 0;          // the number of places less 1
    std::uint32_t* slot_characters_ = nullptr;
    std::uint32_t* mask_begins_ = nullptr;  // [slot]; with one block this is the slot's own number
    std::uint32_t* mask_ends_ = nullptr;    // [slot]
    std::uint16_t* mask_blocks_ = nullptr;  // ascending in a slot
    std::uint64_t* masks_ = nullptr;        // the positions of the character in the block; masks_[0] = 0
    std::uint64_t* columns_ = nullptr;      // scratch: the differences of the last column, 4 words a block
};

}  // namespace pgwarp
