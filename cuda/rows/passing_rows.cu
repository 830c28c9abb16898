#include "rows/passing_rows.h"

#include <algorithm>
#include <utility>

#include "rows/piece_compare.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

struct Space {
    std::byte* filters;  // written by the host
    Entries entries;
};

Space lay_out(Carver& memory, const PassingPlan& plan)
{
    Space space{};
    space.filters = memory.take<std::byte>(plan.filters.bytes());
    space.entries = take_entries(memory, std::size_t{plan.count} * plan.pieces, plan.k);
    return space;
}

// Pieces of all rows. Those of the same rows are neighbours, so that the queries of a chunk find them in the cache.
struct TestedRows {
    FilterView filters;
    std::uint32_t rows;
    std::uint32_t queries;
    std::uint32_t pieces;  // of a query

    __device__ ListPiece piece(std::uint32_t number) const
    {
        const std::uint32_t first = number / queries * most_piece_rows;
        return {number % queries, first, min(most_piece_rows, rows - first)};
    }
    __device__ std::uint32_t row(const ListPiece& piece, std::uint32_t i) const { return piece.first + i; }
    __device__ bool passes(const ListPiece& piece, std::uint32_t row) const { return filters.passes(piece.query, row); }
    __device__ std::size_t place(const ListPiece& piece, std::uint32_t) const
    {
        return std::size_t{piece.query} * pieces + piece.first / most_piece_rows;
    }
};

__global__ __launch_bounds__(merge_threads) void merge_queries(Entries entries, std::uint32_t pieces, std::uint32_t k,
                                                               Answers out)
{
    __shared__ MergeShared shared;
    merge_pieces(entries, blockIdx.x * pieces, (blockIdx.x + 1) * pieces, blockIdx.x, k, shared, out);
}

}  // namespace

PassingPlan plan_passing_rows(std::uint32_t rows, SentFilters filters, std::uint32_t k)
{
    PassingPlan plan;
    plan.rows = rows;
    plan.pieces = (rows + most_piece_rows - 1) / most_piece_rows;
    plan.k = k;
    const std::size_t of_query = std::size_t{plan.pieces} * entries_of_piece(k);
    plan.count =
        static_cast<std::uint32_t>(std::min(filters.count(), std::max<std::size_t>(most_entries / of_query, 1)));
    plan.filters = std::move(filters);
    plan.filters.keep(plan.count);
    plan.host_workspace = plan.filters.bytes();
    plan.workspace = carved_bytes([&](Carver& memory) { lay_out(memory, plan); });
    plan.answers_on_device = true;
    return plan;
}

void enqueue_passing_rows(const CertainRows& rows, const PassingPlan& plan, const Chunk& chunk, ThreadPool& pool)
{
    plan.filters.write(chunk.host_workspace, pool);
    send_written(chunk, plan.host_workspace);
    Carver memory(chunk.workspace);
    const Space space = lay_out(memory, plan);
    const CompareJob job = job_of(rows, chunk.queries, space.entries, plan.k, most_piece_rows);
    launch_comparison(job, TestedRows{plan.filters.view(space.filters), plan.rows, plan.count, plan.pieces},
                      plan.count * plan.pieces, chunk.stream);
    merge_queries<<<plan.count, merge_threads, 0, chunk.stream>>>(space.entries, plan.pieces, plan.k, chunk.answers);
    check_launch("merging rows that pass");
}

}  // namespace pgwarp::cuda::rows
