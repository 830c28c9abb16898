// Edit distances of one pattern to many rows, several rows at a time by SIMD: one row a lane, one block of the pattern
// a step (numeric/edit_distance.h has the algorithm and the scalar form).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numeric/edit_distance.h"
#include "protocol/rows.h"

namespace pgwarp
{

// The match masks of a pattern that is compared in lanes: at most 4 blocks of 64 characters.
class EditMasks
{
public:
    static constexpr std::uint32_t most_characters = 256;

    explicit EditMasks(const TextView& pattern);

    std::uint32_t length() const { return length_; }
    std::uint32_t blocks() const { return blocks_; }
    // The masks of a character, one a block.
    const std::uint64_t* of(std::uint32_t character) const
    {
        const std::uint32_t slot = character < bytes ? character : wide_slots_[wide_place(character)];
        return masks_.data() + std::size_t{slot} * blocks_;
    }

private:
    static constexpr std::uint32_t bytes = 256;
    static constexpr std::uint32_t wide_places = 1024;

    std::uint32_t wide_place(std::uint32_t character) const
    {
        std::uint32_t place = character * 0x9e3779b1U >> 22;
        while (wide_characters_[place] != character && wide_characters_[place] != 0) place = (place + 1) % wide_places;
        return place;
    }

    std::uint32_t length_;
    std::uint32_t blocks_;
    std::vector<std::uint64_t> masks_;            // [slot][block]; slot 256 is that of characters not in the pattern
    std::vector<std::uint32_t> wide_characters_;  // [place], by open addressing; 0: empty
    std::vector<std::uint16_t> wide_slots_;       // [place]
};

// A pattern for many rows. Const calls are thread-safe.
class EditScan
{
public:
    explicit EditScan(const TextView& pattern, EditKind kind = EditKind::levenshtein);

    // out[i] = the distance to row ids[i] of `rows` (texts) if it is at most `at_most`, otherwise a number above it.
    // Neighbouring ids of like lengths are fastest.
    // Only comparisons row by row poll.
    void distances(const RowView& rows, std::span<const std::uint32_t> ids, std::uint32_t at_most,
                   std::span<std::uint32_t> out, const EditPoll& poll = {}) const;

private:
    std::vector<std::uint32_t> words_;  // the pattern; patterns that are too long for lanes are compared row by row
    EditKind kind_;
    EditMasks masks_;  // of no characters where the pattern is too long
};

}  // namespace pgwarp
