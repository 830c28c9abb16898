// Where each of a few rows stands in a list. Most of what is asked for isn't there: the table is so large that it
// mostly says so at once.
#pragma once

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

    // Of rows that differ.
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
    // A row that is not there, at the end.
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
