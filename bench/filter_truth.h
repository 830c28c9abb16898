// True answers of queries with predicates, by brute force over all rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "filter_rows.h"

namespace pgwarp::bench
{

// Queries with a predicate each.
struct AskedQueries {
    double share = 1;
    Where where = Where::anywhere;
    std::vector<std::vector<std::uint64_t>> predicates;
    std::vector<double> limits;  // of the first queries: the score of the k-th nearest row that passes
};

// Sets the limits of the first `judged` queries of each.
void find_limits(const FilterRows& rows, std::size_t judged, std::size_t k, ThreadPool& pool,
                 std::vector<AskedQueries>& asked);

}  // namespace pgwarp::bench
