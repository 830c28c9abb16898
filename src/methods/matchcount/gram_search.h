// The search of one text under the Jaccard distance of 3-grams (numeric/gram_distance.h), in an index of such grams.
//
// A count of shared keywords can only exceed the number of common grams, so it bounds the distance from below, by both
// lengths. The texts that share most keywords are candidates, and their k-th distance is the first limit. Then all
// texts whose counts allow a distance within the limit are compared.
#pragma once

#include <limits>

#include "methods/matchcount/text_search.h"

namespace pgwarp::matchcount
{

struct GramQuery {
    TextView text;
    std::uint32_t k = 0;
    RowBitmap dead;             // places
    RowResult after = {-1, 0};  // results up to this one, in order of (distance, row), are left out
    double within = std::numeric_limits<double>::infinity();  // texts that are farther are left out
    std::uint32_t least_candidates = 500;
    bool one_round = false;  // candidates will do, unless `within` or `after` is given
    const CancelToken* cancel = nullptr;
};

// Returns the k nearest live rows behind `after` and within `within`, by (distance, row). Throws Cancelled.
std::vector<RowResult> search_grams(const TextIndex& index, const GramQuery& query, CountWorkspace& workspace,
                                    ThreadPool& pool);

}  // namespace pgwarp::matchcount
