// The nearest of the rows that pass the predicate of each query, of which no list is made: all rows are tested, piece
// by piece, and those that pass are compared.
#pragma once

#include <cstdint>

#include "rows/certain_rows.h"
#include "rows/sent_filters.h"

namespace pgwarp::cuda::rows
{

struct PassingPlan : ChunkPlan {
    SentFilters filters;
    std::uint32_t rows = 0;    // of the index
    std::uint32_t pieces = 0;  // of a query
};

// filters: of the queries; k: at most most_compared_k.
PassingPlan plan_passing_rows(std::uint32_t rows, SentFilters filters, std::uint32_t k);
void enqueue_passing_rows(const CertainRows& rows, const PassingPlan& plan, const Chunk& chunk,
                          ThreadPool& pool = caller_alone());

}  // namespace pgwarp::cuda::rows
