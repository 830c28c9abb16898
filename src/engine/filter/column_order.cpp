// Sorting by one attribute, and binary searches in the order.
#include "engine/filter/column_order.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

constexpr std::size_t sample_step = 64;
constexpr std::uint64_t most_near_codes = 1U << 16;

}  // namespace

ColumnOrder::ColumnOrder(std::span<const std::uint64_t> attributes, std::size_t columns, std::size_t column,
                         ThreadPool& pool)
    : attributes_(attributes), columns_(columns), column_(column)
{
    std::vector<CodedRow> coded(attributes.size() / columns);
    for (std::size_t row = 0; row < coded.size(); ++row)
        coded[row] = {attributes[row * columns + column], static_cast<std::uint32_t>(row)};
    sort_rows(coded, pool);
    rows_.reserve(coded.size());
    for (const CodedRow& one : coded) rows_.push_back(one.row);
    if (place_codes(coded)) return;
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < coded.size(); ++i) distinct += i == 0 || coded[i - 1].code < coded[i].code ? 1 : 0;
    samples_all_ = distinct <= coded.size() / sample_step;
    for (std::size_t i = 0; i < coded.size(); ++i) {
        const bool is_first = i == 0 || coded[i - 1].code < coded[i].code;
        if (samples_all_ ? !is_first : i % sample_step != 0) continue;
        samples_.push_back(coded[i].code);
        if (samples_all_) places_.push_back(static_cast<std::uint32_t>(i));
    }
}

// Makes place_of_ where it is short, also beside the rows.
bool ColumnOrder::place_codes(std::span<const CodedRow> coded)
{
    if (coded.empty()) return false;
    const std::uint64_t span = coded.back().code - coded.front().code;
    if (span >= std::min<std::uint64_t>(most_near_codes, coded.size() + sample_step)) return false;
    first_code_ = coded.front().code;
    place_of_.reserve(span + 2);
    for (std::size_t place = 0; place < coded.size(); ++place) {
        while (place_of_.size() <= coded[place].code - first_code_)
            place_of_.push_back(static_cast<std::uint32_t>(place));
    }
    place_of_.push_back(static_cast<std::uint32_t>(coded.size()));
    return true;
}

// The first place whose code is above the given one, or not below it where equal_too.
std::size_t ColumnOrder::first_above(std::uint64_t code, bool equal_too) const
{
    if (!place_of_.empty()) {
        if (code < first_code_) return 0;
        const std::uint64_t number = code - first_code_;
        return number < place_of_.size() - 1 ? place_of_[number + (equal_too ? 0 : 1)] : rows_.size();
    }
    const auto is_before = [&](std::uint64_t other) { return equal_too ? other < code : other <= code; };
    const auto sample = std::partition_point(samples_.begin(), samples_.end(), is_before);
    const auto number = static_cast<std::size_t>(sample - samples_.begin());
    if (samples_all_) return number < places_.size() ? places_[number] : rows_.size();
    // The place lies behind the sample before, and not behind this one.
    std::size_t begin = number == 0 ? 0 : (number - 1) * sample_step;
    std::size_t end = std::min(number * sample_step, rows_.size());
    while (begin < end) {
        const std::size_t middle = begin + (end - begin) / 2;
        if (is_before(code_at(middle))) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return end;
}

std::span<const std::uint32_t> ColumnOrder::rows_of(const CodeRange& range) const
{
    const std::size_t begin = first_above(range.first, true);
    const std::size_t end = first_above(range.last, false);
    return std::span(rows_).subspan(begin, end - begin);
}

std::uint64_t ColumnOrder::count(const PredicateTerm& term) const
{
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < term.range_count(); ++i) rows += rows_of(term.range(i)).size();
    return rows;
}

std::uint64_t ColumnOrder::memory_bytes() const
{
    return (rows_.size() + places_.size() + place_of_.size()) * sizeof(std::uint32_t) +
           samples_.size() * sizeof(std::uint64_t);
}

}  // namespace pgwarp
