// The search of one query among sets or attributes, by counts of common parts. Every answer is exact.
//
// Under the overlap metric the rows of largest count are the answer. Under the Jaccard distance a row of count c is at
// least as far as 1 - c / (size of the query): so the k-th distance that was found is a gate for counts.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "methods/matchcount/match_count.h"
#include "methods/matchcount/part_index.h"
#include "methods/method.h"

namespace pgwarp::matchcount
{

struct PartQuery {
    std::span<const std::uint32_t> words;  // valid
    std::uint32_t k = 0;
    RowBitmap dead;
    // Results up to this one, in order of (distance, row), are left out.
    RowResult after = {-std::numeric_limits<double>::infinity(), 0};
    double within = std::numeric_limits<double>::infinity();  // rows that are farther are left out
    const CancelToken* cancel = nullptr;
};

// Returns the query of a batch that has this number, from the first row on.
PartQuery part_query(const SearchBatch& batch, std::size_t number);

// Returns the k nearest live rows behind `after` and within `within`, by (distance, row). Rows without a common part
// are among them. Throws Cancelled.
std::vector<RowResult> search_parts(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace);

}  // namespace pgwarp::matchcount
