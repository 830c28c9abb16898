#include "rows/table_scan.h"

#include "device/error.h"
#include "rows/tile_scan.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

// The work of a scan that compares every query with every row: an item is a stretch of rows and 64 queries.
struct TableWork {
    static constexpr const std::uint32_t* dead = nullptr;
    std::uint32_t rows;  // padded to whole groups
    std::uint32_t stretch;
    std::uint32_t queries;
    std::uint32_t query_tiles;

    __device__ std::uint32_t first() const { return 0; }
    __device__ std::uint32_t last() const { return gridDim.x; }
    __device__ TileItem item(std::uint32_t index) const
    {
        const std::uint32_t first_query = index % query_tiles * scan_queries;
        const std::uint32_t first_row = index / query_tiles * stretch;
        return {first_query, min(scan_queries, queries - first_query), first_row, first_row,
                min(stretch, rows - first_row)};
    }
    __device__ TilePair pair(std::uint32_t at) const { return {at, 0, 0}; }
};

}  // namespace

void scan_table(const HalfTable& table, std::uint32_t row_stride, const QueryView& queries, std::uint32_t count,
                const DenseScores& out, std::uint32_t shared_bytes, cudaStream_t stream)
{
    const std::uint32_t query_tiles = (count + scan_queries - 1) / scan_queries;
    // Few queries take short stretches, so that the blocks fill all multiprocessors.
    const std::uint32_t stretch = query_tiles > 32 ? 1024 : scan_tile_rows;
    const TableWork work{whole_groups(table.rows), stretch, count, query_tiles};
    const std::uint32_t items = query_tiles * ((work.rows + stretch - 1) / stretch);
    if (items == 0) return;
    with_tile_kernel<HalfTileRows, TableWork, DenseOutput>(0, shared_bytes, [&](auto kernel, std::uint32_t bytes) {
        kernel<<<items, scan_threads, bytes, stream>>>({table.half.rows, row_stride}, queries, row_stride, table.terms,
                                                       work, DenseOutput{out});
        check_launch("scan of a table");
    });
}

}  // namespace pgwarp::cuda::rows
