// The mirror of an index of bags (protocol/bag_rows.h): the dictionary of their terms, the rows of each term with its
// frequencies there, the lengths of the rows, and bounds by which a search passes over postings.
#pragma once

#include <cstdint>
#include <span>

#include "methods/matchcount/part_dictionary.h"
#include "methods/method.h"
#include "protocol/bag_rows.h"

namespace pgwarp::matchcount
{

// No posting of a block has a larger frequency, or is of a shorter document. So no addend of theirs exceeds the one of
// these two, whatever a query's correction by length.
struct Impact {
    std::uint32_t frequency = 0;
    std::uint32_t length = 0xffffffff;

    void take(std::uint32_t other_frequency, std::uint32_t other_length);
};

// Blocks of this many neighbours of the list array, whose lists may be several.
inline constexpr std::size_t postings_of_block = 128;

struct BagIndex {
    PartDictionary dictionary;
    KeywordLists lists;                    // the list of a term has its rank as number
    BulkVector<std::uint8_t> frequencies;  // of each posting
    BulkVector<Impact> impacts;            // of each block
    BulkVector<std::uint32_t> lengths;     // of each row
    std::uint64_t total_length = 0;        // of all rows

    std::uint64_t memory_bytes() const;
};

// `rows`: valid bags.
BagIndex make_bag_index(const RowView& rows, ThreadPool& pool);

// Counts the rows of each term, those that are dead included.
TermCounts count_terms_of(const BagIndex& index, std::span<const std::uint64_t> terms);

}  // namespace pgwarp::matchcount
