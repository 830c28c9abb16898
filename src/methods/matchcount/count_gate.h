// The count priority queue of rows that come with their whole counts (GENIE, section 4.2): a gate, which rises as rows
// pass it, and a table of the rows that passed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/matchcount/match_count.h"

namespace pgwarp::matchcount
{

// Returns the rows of largest count, largest first, ties by row, at most `wanted`.
inline std::vector<CountedRow> rows_of_largest_count(std::vector<CountedRow> counted, std::size_t wanted)
{
    const auto larger = [](const CountedRow& a, const CountedRow& b) {
        return a.count != b.count ? a.count > b.count : a.row < b.row;
    };
    std::sort(counted.begin(), counted.end(), larger);
    counted.resize(std::min(counted.size(), wanted));
    return counted;
}

// Rows come in ascending order. Those of largest count, the first of equal ones, are in the table.
class CountGate
{
public:
    // wanted > 0; `most`: the largest count.
    CountGate(std::size_t wanted, std::size_t most) : wanted_(wanted), rows_of_count_(most + 2) {}

    // Rows of a smaller count are none of the wanted ones.
    std::uint32_t threshold() const { return threshold_; }
    // A row of a count of at least threshold().
    void pass(std::uint32_t row, std::uint32_t count)
    {
        table_.push_back({row, count});
        ++rows_of_count_[count];
        ++reached_;
        while (reached_ >= wanted_) reached_ -= rows_of_count_[threshold_++];
        if (table_.size() >= 4 * wanted_ + 1024) drop_overtaken();
    }
    // Returns the table: the wanted rows and some others.
    std::vector<CountedRow> take()
    {
        drop_overtaken();
        return std::move(table_);
    }

private:
    // At least `wanted` rows have counts from threshold() - 1 on, once the gate has risen.
    void drop_overtaken()
    {
        std::erase_if(table_, [this](const CountedRow& row) { return row.count + 1 < threshold_; });
    }

    std::size_t wanted_;
    std::uint32_t threshold_ = 0;
    std::size_t reached_ = 0;  // rows in the table whose counts have reached threshold_
    std::vector<std::uint32_t> rows_of_count_;
    std::vector<CountedRow> table_;
};

}  // namespace pgwarp::matchcount
