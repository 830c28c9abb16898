// The order of texts by length.
#include "methods/matchcount/texts_by_length.h"

#include <algorithm>

namespace pgwarp::matchcount
{

TextsByLength::TextsByLength(const RowView& rows, ThreadPool& pool)
{
    const auto length_of = [&rows](std::size_t i) { return view_text(rows.list(i)).length; };
    std::uint32_t longest = 0;
    for (std::size_t i = 0; i < rows.count; ++i) longest = std::max(longest, length_of(i));

    first_.assign(std::size_t{longest} + 2, 0);
    for (std::size_t i = 0; i < rows.count; ++i) ++first_[length_of(i) + 1];
    for (std::size_t length = 0; length <= longest; ++length) first_[length + 1] += first_[length];

    row_.resize(rows.count);
    std::vector<std::uint32_t> next = first_;
    for (std::size_t i = 0; i < rows.count; ++i) row_[next[length_of(i)]++] = static_cast<std::uint32_t>(i);

    offsets_.resize(rows.count + 1);
    offsets_[0] = 0;
    for (std::size_t place = 0; place < rows.count; ++place)
        offsets_[place + 1] = offsets_[place] + rows.list(row_[place]).size();
    words_.resize(offsets_.back());
    pool.parallel_for(rows.count, 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t place = begin; place < end; ++place)
            std::ranges::copy(rows.list(row_[place]), words_.begin() + static_cast<std::ptrdiff_t>(offsets_[place]));
    });
}

RowView TextsByLength::texts() const
{
    RowView rows;
    rows.count = row_.size();
    rows.offsets = offsets_.data();
    rows.words = words_.data();
    return rows;
}

std::uint32_t TextsByLength::first_of_length(std::uint64_t length) const
{
    return length < first_.size() ? first_[length] : count();
}

std::vector<std::uint64_t> TextsByLength::bitmap_of_places(RowBitmap rows) const
{
    std::vector<std::uint64_t> places;
    if (rows.empty()) return places;
    places.resize((std::size_t{count()} + 63) / 64);
    for (std::uint32_t place = 0; place < count(); ++place)
        if (bit_is_set(rows, row_[place])) set_bit(places, place);
    return places;
}

std::uint64_t TextsByLength::memory_bytes() const
{
    return (row_.size() + first_.size() + words_.size()) * sizeof(std::uint32_t) +
           offsets_.size() * sizeof(std::uint64_t);
}

}  // namespace pgwarp::matchcount
