// The rows of each list, and the positions of rows in list-major order.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/once.h"

namespace pgwarp
{

class InvertedLists
{
public:
    InvertedLists(std::size_t lists, std::size_t rows) : list_of_row_(rows), begin_(lists + 1, 0) {}

    std::span<std::uint32_t> list_of_row() { return list_of_row_; }

    // Orders the rows, once list_of_row is filled; later calls do nothing. Thread-safe.
    void arrange()
    {
        arranged_.run([this] {
            // Memory may be short anywhere, and then the next writer begins again.
            row_at_.resize(list_of_row_.size());
            position_of_.resize(list_of_row_.size());
            std::vector<std::uint32_t> next(begin_.size(), 0);
            for (const std::uint32_t list : list_of_row_) {
                if (list + 1 >= next.size()) throw BadRequest("a row is in a list that does not exist");
                ++next[list + 1];
            }
            std::partial_sum(next.begin(), next.end(), next.begin());
            begin_ = next;
            for (std::size_t row = 0; row < list_of_row_.size(); ++row) {
                const std::uint32_t position = next[list_of_row_[row]]++;
                row_at_[position] = static_cast<std::uint32_t>(row);
                position_of_[row] = position;
            }
        });
    }
    // Frees the arrays of loading, positions unless they are kept.
    void finish(bool keep_positions = false)
    {
        arrange();
        if (!keep_positions) position_of_ = {};
        list_of_row_ = {};
    }

    std::size_t lists() const { return begin_.size() - 1; }
    std::size_t rows() const { return row_at_.size(); }
    std::uint32_t begin(std::size_t list) const { return begin_[list]; }
    std::uint32_t end(std::size_t list) const { return begin_[list + 1]; }
    std::uint32_t row_at(std::size_t position) const { return row_at_[position]; }
    std::uint32_t position_of(std::size_t row) const { return position_of_[row]; }
    std::uint64_t memory_bytes() const
    {
        return (begin_.size() + row_at_.size() + list_of_row_.size() + position_of_.size()) * sizeof(std::uint32_t);
    }

private:
    std::vector<std::uint32_t> list_of_row_;  // while loading
    std::vector<std::uint32_t> position_of_;  // while loading, and later where they are kept
    std::vector<std::uint32_t> begin_;
    std::vector<std::uint32_t> row_at_;
    Once arranged_;
};

}  // namespace pgwarp
