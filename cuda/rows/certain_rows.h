// The nearest of certain rows of each query, which the caller lists (Searcher::search_among()). Lists are cut into
// pieces, each compared by a block: sums in single precision with bounds choose the rows whose values are computed
// (near_values.cuh). A second launch merges the pieces of a query.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/context.h"
#include "device/searcher.h"
#include "rows/list_layout.h"
#include "rows/ordered_rows.h"
#include "rows/view.h"

namespace pgwarp::cuda::rows
{

inline constexpr std::uint32_t most_compared_k = 512;  // a larger k, or a cursor: enqueue_certain_values()

// Rows in bytes, which propose where full vectors decide: their differences from a mean row, or multiples of them.
struct CodedRows {
    const std::int8_t* rows = nullptr;  // [rows][stride], zeros from the dimensions on; null: there are none
    const float2* terms = nullptr;      // [rows]: x the scale of the row
    const float* mean = nullptr;        // [dimensions], by which queries are moved; null: not at all
    std::uint32_t stride = 0;           // a multiple of 16
};

// Rows on the device, at the positions of their numbers: full vectors, or halves where the metric is not L1.
struct CertainRows {
    ResidentRows resident;
    CodedRows coded;                      // of full vectors
    const std::uint64_t* dead = nullptr;  // one bit for each row; null: no row is dead
};

// Whether a block can hold a query of these rows.
bool serves_certain_rows(const Context& context, const ResidentRows& resident);

struct CertainPlan : ChunkPlan {
    std::shared_ptr<const ListLayout> layout;
    std::uint32_t piece_rows = 0;
};

// k: at most most_compared_k.
CertainPlan plan_certain_rows(const Context& context, std::span<const RowList> lists, std::uint32_t k);
void enqueue_certain_rows(const CertainRows& rows, const CertainPlan& plan, const Chunk& chunk, ThreadPool& pool);

// The rows of one query's list after a cursor, for any k.
ChunkPlan plan_certain_values(RowList list);
void enqueue_certain_values(const CertainRows& rows, const ChunkPlan& plan, const Chunk& chunk, RowList list,
                            const RowCursor& after);

}  // namespace pgwarp::cuda::rows
