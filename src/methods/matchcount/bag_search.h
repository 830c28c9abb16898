// The search of one query among bags, by BM25: MaxScore (Turtle and Flood, Query Evaluation: Strategies and
// Optimizations, 1995) by slices of rows, with bounds by blocks of postings (Ding and Suel, Faster Top-k Document
// Retrieval Using Block-Max Indexes, 2011). Every answer is exact.
//
// In a slice each term has a bound of its addends. Terms whose bounds together do not exceed the k-th score so far
// cannot alone make a result: only the postings of the others are added up. A row's addends of the first are looked up,
// the largest bound first, while the row may still be a result; then its canonical score is computed. A slice where no
// term remains is passed over.
#pragma once

#include <vector>

#include "methods/matchcount/bag_index.h"
#include "methods/matchcount/part_search.h"

namespace pgwarp::matchcount
{

// Returns the k nearest live rows behind `after` and within `within`, by (distance, row). Rows without a common term
// are among them. The query's words are those of a query of bags. Throws Cancelled.
std::vector<RowResult> search_bags(const BagIndex& index, const PartQuery& query);

}  // namespace pgwarp::matchcount
