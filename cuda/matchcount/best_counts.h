// The last steps of a search by counts: selection among the rows that passed, and rows of count 0 where fewer match.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "matchcount/counted_rows.h"

namespace pgwarp::cuda::matchcount
{

// The rows that passed, in device memory: scores of counts (count_score.h) and row numbers; +infinity and padding_id in
// unused places (select/key.cuh).
struct PassedRows {
    std::uint32_t queries = 0;
    std::uint32_t places = 0;       // of a query
    float* scores = nullptr;        // [queries][places]
    std::uint32_t* rows = nullptr;  // [queries][places]
};

// Rows of count 0 follow where `fill` is set: those of the window and not dead.
struct RowsOfNoCount {
    bool fill = false;
    std::uint32_t rows = 0;               // of the index
    const RowWindow* windows = nullptr;   // [queries], or null
    const std::uint32_t* dead = nullptr;  // bitmap, or null
};

// workspace: best_counts_workspace_bytes(queries, places, k), aligned for a Carver.
std::size_t best_counts_workspace_bytes(std::uint32_t queries, std::uint32_t places, std::uint32_t k);
void best_counts(const PassedRows& passed, const RowsOfNoCount& others, std::uint32_t k, const CountedRows& out,
                 std::byte* workspace, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
