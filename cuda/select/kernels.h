// The launches behind select.h. All are asynchronous in `stream`. Scores and ids are results, [rows][k]. All throw
// CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda::detail
{

struct SelectOperands {
    const float* values;
    const std::uint32_t* ids;  // null: the column is the id
    std::int64_t rows, columns, stride, k;
    float* selected_values;
    std::uint32_t* selected_ids;
};

// splits = 0: a warp for each row. Else `splits` blocks for each row, and the results are [rows][splits][k], each from
// a part of the columns.
inline constexpr std::int64_t warp_method_most = 256;  // k
void select_by_warps(const SelectOperands& operands, int splits, cudaStream_t stream);

// `splits` >= 1 blocks for each row; results as above.
inline constexpr std::int64_t block_method_most = 2048;  // k
void select_by_blocks(const SelectOperands& operands, int splits, cudaStream_t stream);

// The whole grid works on all rows: threshold, filter, sort of the keys that passed.
struct GridPlan {
    std::int64_t rows;      // of one round
    std::int64_t capacity;  // candidates of a row
    std::uint32_t sample;   // scores of a row
    std::size_t bytes;
};
GridPlan plan_grid(std::int64_t rows, std::int64_t columns, std::int64_t k);
void select_by_grid(const SelectOperands& operands, const GridPlan& plan, void* workspace, cudaStream_t stream);

// Sorts keys [rows][capacity], of which the first counts[row] are valid, and writes the k smallest of each row.
// Overwrites `keys` and `other`; `other` is used only for k > cut_most.
inline constexpr std::int64_t sort_tile = 8192;  // capacity is a multiple of it
inline constexpr std::int64_t cut_most = 4096;
void sort_candidates(unsigned long long* keys, unsigned long long* other, const unsigned* counts, std::int64_t rows,
                     std::int64_t capacity, std::int64_t k, float* scores, std::uint32_t* ids, cudaStream_t stream);

int multiprocessors();

}  // namespace pgwarp::cuda::detail
