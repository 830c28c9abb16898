// The texts of an index in order of (length, row): texts whose lengths are near that of a query are neighbours in
// memory. A place is a number in this order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/row_bitmap.h"
#include "numeric/parallel.h"
#include "protocol/rows.h"

namespace pgwarp::matchcount
{

class TextsByLength
{
public:
    TextsByLength() = default;
    // Copies the texts, which must be valid (lists_fault()).
    TextsByLength(const RowView& rows, ThreadPool& pool);

    std::uint32_t count() const { return static_cast<std::uint32_t>(row_.size()); }
    // The texts, text i at place i.
    RowView texts() const;
    TextView text(std::uint32_t place) const { return view_text(texts().list(place)); }
    std::uint32_t row(std::uint32_t place) const { return row_[place]; }
    // The length of the text at a place, from the texts' first words.
    std::uint32_t length(std::uint32_t place) const { return text(place).length; }
    // The first place of a text of at least this length.
    std::uint32_t first_of_length(std::uint64_t length) const;
    // Returns a bitmap of rows as one of places; empty if that is empty.
    std::vector<std::uint64_t> bitmap_of_places(RowBitmap rows) const;
    std::uint64_t memory_bytes() const;

private:
    BulkVector<std::uint32_t> row_;      // of each place
    std::vector<std::uint32_t> first_;   // [longest length + 2], the first place of each length
    BulkVector<std::uint64_t> offsets_;  // [count + 1]
    BulkVector<std::uint32_t> words_;
};

}  // namespace pgwarp::matchcount
