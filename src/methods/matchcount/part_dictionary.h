// The dictionary of the sets, attributes or bags of an index: their distinct parts in order, of sets the elements, of
// attributes the pairs {name, value}, of bags the terms. The keyword of a part is its rank. So a range of values of a
// name is a range of keywords, and numbers need not be made discrete.
#pragma once

#include <cstdint>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/matchcount/keyword_lists.h"
#include "numeric/parallel.h"
#include "protocol/rows.h"

namespace pgwarp::matchcount
{

// Elements and terms are the values of one name, no_name.
inline constexpr std::uint64_t no_name = 0;

class PartDictionary
{
public:
    PartDictionary() = default;
    // Both ascending in order of (name, value): the distinct names, the first value of each and their number, and the
    // values.
    PartDictionary(std::vector<std::uint64_t> names, std::vector<std::uint32_t> firsts,
                   BulkVector<std::uint64_t> values)
        : names_(std::move(names)), firsts_(std::move(firsts)), values_(std::move(values))
    {
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(values_.size()); }
    std::uint64_t memory_bytes() const
    {
        return names_.size() * sizeof(std::uint64_t) + firsts_.size() * sizeof(std::uint32_t) +
               values_.size() * sizeof(std::uint64_t);
    }
    // Returns the keywords of the parts of this name with a value from `first` to `last`; an item that contains nothing
    // where there are none.
    Item find(std::uint64_t name, std::uint64_t first, std::uint64_t last) const;

private:
    std::vector<std::uint64_t> names_;
    std::vector<std::uint32_t> firsts_;  // [names + 1]
    BulkVector<std::uint64_t> values_;
};

// Rows as lists of keywords.
struct RankedRows {
    PartDictionary dictionary;
    BulkVector<std::uint64_t> offsets;   // [rows + 1]
    BulkVector<std::uint32_t> keywords;  // of each row ascending

    KeywordRows rows() const { return {offsets, keywords}; }
};

// Makes the dictionary of valid rows (lists_fault()) and their keywords. Beside these it takes two to
// three times the memory of the rows where most parts are distinct, and little where few are. Throws BadRequest for
// 2^32 - 1 distinct parts or more.
RankedRows rank_parts(const RowView& rows, ElementType element, ThreadPool& pool);

}  // namespace pgwarp::matchcount
