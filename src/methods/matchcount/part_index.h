// The mirror of an index of sets or attributes: the dictionary of their parts, and the rows of each part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/keyword_bitmaps.h"
#include "methods/matchcount/part_dictionary.h"
#include "numeric/metric.h"
#include "protocol/part_rows.h"
#include "protocol/rows.h"

namespace pgwarp::matchcount
{

struct PartIndex {
    ElementType element = ElementType::set;
    Metric metric = Metric::overlap;
    PartDictionary dictionary;
    KeywordLists lists;
    KeywordBitmaps bitmaps;
    BulkVector<std::uint16_t> sizes;  // of the sets, for the Jaccard distance; then zeros of a block of counts

    std::uint64_t memory_bytes() const
    {
        return dictionary.memory_bytes() + lists.memory_bytes() + bitmaps.memory_bytes() +
               sizes.size() * sizeof(std::uint16_t);
    }
};

// `ranked`: the rows of an index of this shape.
PartIndex make_part_index(const IndexShape& shape, RankedRows ranked, ThreadPool& pool);

// Returns the items of a valid query that contain a part of the dictionary. The ranges of an item of attributes become
// items of their own: a row has one value of a name, and the ranges are disjoint, so that the row is counted once.
std::vector<Item> items_of(const PartDictionary& dictionary, ElementType element, std::span<const std::uint32_t> query);

// Estimates the float operations of searches by counts: each reads the counters of all rows, and a list for each item,
// which is taken to hold a sixteenth of the rows.
double cost_of_counting(ElementType element, std::size_t rows, const RowView& queries);

// The distance of a valid row and a valid query.
double distance_of_parts(ElementType element, Metric metric, std::span<const std::uint32_t> query,
                         std::span<const std::uint32_t> row);

}  // namespace pgwarp::matchcount
