// A hash table of the places of a few rows in a list. Most rows that are looked up are not in it, so it is sparse, and
// most lookups end at the first slot.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pgwarp
{

class PlaceTable
{
public:
    static constexpr std::uint32_t none = 0xffffffff;

    PlaceTable() : first_(std::size_t{1} << bits, none) {}

    // The rows are distinct.
    void assign(std::span<const std::uint32_t> rows)
    {
        clear();
        for (const std::uint32_t row : rows) add(row);
    }
    void clear()
    {
        for (const std::uint32_t row : rows_) first_[slot_of(row)] = none;
        rows_.clear();
        next_.clear();
    }
    std::uint32_t place_of(std::uint32_t row) const
    {
        std::uint32_t place = first_[slot_of(row)];
        while (place != none && rows_[place] != row) place = next_[place];
        return place;
    }
    // Calls act(i, place) for each rows[i] in the table, in order. A branch on a slot would be mispredicted often, so
    // many slots are read first, without a branch.
    template <class Act>
    void for_those_there(std::span<const std::uint32_t> rows, const Act& act) const
    {
        std::array<std::uint8_t, 64> maybe;
        for (std::size_t begin = 0; begin < rows.size(); begin += maybe.size()) {
            const std::size_t count = std::min(maybe.size(), rows.size() - begin);
            std::size_t taken = 0;
            for (std::size_t i = 0; i < count; ++i) {
                maybe[taken] = static_cast<std::uint8_t>(i);
                taken += first_[slot_of(rows[begin + i])] != none ? 1 : 0;
            }
            for (std::size_t i = 0; i < taken; ++i) {
                const std::size_t at = begin + maybe[i];
                const std::uint32_t place = place_of(rows[at]);
                if (place != none) act(at, place);
            }
        }
    }
    // Appends a row that is not in the table.
    void add(std::uint32_t row)
    {
        std::uint32_t& first = first_[slot_of(row)];
        next_.push_back(first);
        first = static_cast<std::uint32_t>(rows_.size());
        rows_.push_back(row);
    }
    std::span<const std::uint32_t> rows() const { return rows_; }

private:
    static constexpr unsigned bits = 12;
    static std::size_t slot_of(std::uint32_t row) { return (row * 0x9e3779b1U) >> (32 - bits); }

    std::vector<std::uint32_t> first_;  // places by slot
    std::vector<std::uint32_t> next_;   // places of the same slot
    std::vector<std::uint32_t> rows_;
};

}  // namespace pgwarp
