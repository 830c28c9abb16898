// The dense form without thresholds: a block counts one query in one part of a range by comparing bytes, with the gate
// of posting lists behind it. It serves a few queries, and those whose threshold was misleading.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "matchcount/best_counts.h"
#include "matchcount/counter_parts.h"
#include "matchcount/dense_rows.h"

namespace pgwarp::cuda::matchcount
{

// `all`: all queries are counted, not only wanted ones.
CounterParts dense_parts(const DenseRows& rows, std::uint32_t queries, bool all, const Context& context);

// The places of a query for searches of k rows by such parts.
constexpr std::uint32_t dense_places(const CounterParts& parts, std::uint32_t k)
{
    return parts.count * (k < parts.rows ? k : parts.rows);
}

// Passes at most k rows of each part, for the queries with wanted[query] != 0; null: for all. passed.places is at least
// dense_places(); places from there on are not written. thresholds[query] >= 1: no row of the k best has less.
void count_dense_parts(const DenseRows& rows, const DenseQueries& queries, const std::uint32_t* wanted, std::uint32_t k,
                       std::uint32_t* thresholds, const PassedRows& passed, Context& context, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
