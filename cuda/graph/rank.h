// The last step of a search: the rows that were found, ranked by the values that are returned. Values have the bits of
// src/methods/graph/stored_rows.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/view.h"
#include "ivfadc/finish.h"

namespace pgwarp::cuda::graph
{

// Queries [count][dimensions] with their norms, or as bits.
struct RankQueries {
    const float* original = nullptr;
    const double* norms = nullptr;
    const std::uint32_t* bits = nullptr;  // [count][words]
};

// Those of the queries from `first` on.
inline RankQueries from(const GraphView& view, const RankQueries& queries, std::size_t first)
{
    RankQueries some;
    if (queries.original != nullptr) some.original = queries.original + first * view.vectors.dimensions;
    if (queries.norms != nullptr) some.norms = queries.norms + first;
    if (queries.bits != nullptr) some.bits = queries.bits + first * view.bits.words;
    return some;
}
inline ivfadc::Answers from(const ivfadc::Answers& answers, std::uint32_t k, std::size_t first)
{
    return {answers.values + first * k, answers.rows + first * k, answers.found + first};
}

// found[q] rows of rows [count][wanted] each; out: [count][k] on the device or in page-locked memory, found[q] as
// given, written last. wanted <= most_ef, k <= wanted.
void rank_found(const GraphView& view, const RankQueries& queries, const std::uint32_t* rows,
                const std::uint32_t* found, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                const ivfadc::Answers& out, bool chained, cudaStream_t stream);

// Values of rows [first, first + count) for the first query; values[i].
void all_values(const GraphView& view, const RankQueries& queries, std::uint32_t first, std::uint32_t count,
                double* values, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
