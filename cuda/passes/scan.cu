#include "passes/scan.h"

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "device/carver.h"
#include "device/error.h"
#include "distance/canonical.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned block_threads = 256;
constexpr std::uint32_t block_rows = block_threads / canonical_lanes;
constexpr std::uint64_t no_row = ~0ULL;

__global__ void value_rows(ScanJob job, std::uint32_t begin, std::uint32_t end, std::uint64_t* keys,
                           std::uint32_t* rows)
{
    const std::uint32_t row = begin + blockIdx.x * block_rows + threadIdx.x / canonical_lanes;
    if (row >= end) return;
    const double distance =
        canonical_distance(job.metric, job.query, job.vectors + std::size_t{row} * job.dimensions, job.dimensions);
    if (threadIdx.x % canonical_lanes != 0) return;
    const std::uint64_t key = ordered_key(emitted_value(job.metric, distance));
    const std::uint64_t after = ordered_key(job.cursor.value);
    const bool dead = job.dead != nullptr && ((job.dead[row / 64] >> (row % 64)) & 1U) != 0;
    const bool wanted = !dead && (key > after || (key == after && row > job.cursor.row));
    keys[row] = wanted ? key : no_row;
    rows[row] = row;
}

__global__ void write_first(ScanJob job, const std::uint64_t* keys, const std::uint32_t* rows)
{
    const std::uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    const std::uint32_t k = min(job.answer.k, job.rows);
    if (i >= k) return;
    if (i == 0 && keys[0] == no_row) job.answer.found[job.id] = 0;
    if (keys[i] == no_row) return;
    const std::size_t out = std::size_t{job.id} * job.answer.k + i;
    job.answer.values[out] = value_of_key(job.metric, keys[i]);
    job.answer.rows[out] = rows[i];
    if (i + 1 == k || keys[i + 1] == no_row) job.answer.found[job.id] = i + 1;
}

struct Workspace {
    std::uint64_t* keys[2];
    std::uint32_t* rows[2];
    std::byte* sort;
    std::size_t sort_bytes;
};

Workspace lay_out(Carver& memory, std::uint32_t rows)
{
    Workspace workspace{};
    for (auto& keys : workspace.keys) keys = memory.take<std::uint64_t>(rows);
    for (auto& ids : workspace.rows) ids = memory.take<std::uint32_t>(rows);
    cub::DoubleBuffer<std::uint64_t> keys(workspace.keys[0], workspace.keys[1]);
    cub::DoubleBuffer<std::uint32_t> ids(workspace.rows[0], workspace.rows[1]);
    check(cub::DeviceRadixSort::SortPairs(nullptr, workspace.sort_bytes, keys, ids, rows), "sizing a sort");
    workspace.sort = memory.take<std::byte>(workspace.sort_bytes);
    return workspace;
}

}  // namespace

std::size_t scan_workspace_bytes(std::uint32_t rows)
{
    return carved_bytes([rows](Carver& memory) { lay_out(memory, rows); });
}

void scan_rows(const ScanJob& job, std::byte* memory, cudaStream_t stream)
{
    constexpr std::uint32_t launch_elements = 1U << 30;
    Carver carver(memory);
    Workspace workspace = lay_out(carver, job.rows);
    const std::uint32_t piece = std::max(block_rows, launch_elements / job.dimensions / block_rows * block_rows);
    for (std::uint64_t begin = 0; begin < job.rows; begin += piece) {
        const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(job.rows, begin + piece));
        const auto first = static_cast<std::uint32_t>(begin);
        value_rows<<<(end - first + block_rows - 1) / block_rows, block_threads, 0, stream>>>(
            job, first, end, workspace.keys[0], workspace.rows[0]);
        check_launch("valuing rows");
    }
    cub::DoubleBuffer<std::uint64_t> keys(workspace.keys[0], workspace.keys[1]);
    cub::DoubleBuffer<std::uint32_t> ids(workspace.rows[0], workspace.rows[1]);
    // The sort is stable and rows are in ascending order, so ties are ordered by row.
    check(cub::DeviceRadixSort::SortPairs(workspace.sort, workspace.sort_bytes, keys, ids, job.rows, 0, 64, stream),
          "sorting rows");
    const std::uint32_t k = std::min(job.answer.k, job.rows);
    write_first<<<(k + block_threads - 1) / block_threads, block_threads, 0, stream>>>(job, keys.Current(),
                                                                                       ids.Current());
    check_launch("writing the first rows");
}

}  // namespace pgwarp::cuda
