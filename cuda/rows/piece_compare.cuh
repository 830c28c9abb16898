// Comparison of a piece of a query's rows by a block: sums in single precision with bounds choose the rows whose values
// are computed (near_values.cuh), and the first entries are left for the merge (piece_merge.cuh).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/error.h"
#include "device/shared_memory.h"
#include "rows/certain_rows.h"
#include "rows/near_values.cuh"
#include "rows/piece_merge.cuh"
#include "rows/values.cuh"

namespace pgwarp::cuda::rows
{

inline constexpr int compare_threads = 128;
inline constexpr std::uint32_t most_piece_rows = 1024;

struct CompareJob {
    CertainRows rows;
    bool near;   // sums choose the rows whose values are computed
    bool coded;  // of bytes first
    const float* queries;
    Entries entries;
    std::uint32_t k;
    std::uint32_t piece_rows;  // the most of a piece, a power of two
};

__host__ __device__ inline std::uint32_t padded_dimensions(std::uint32_t dimensions)
{
    return (dimensions + piece_elements - 1) / piece_elements * piece_elements;
}

inline std::size_t shared_bytes(std::uint32_t dimensions, std::uint32_t capacity)
{
    return sizeof(RankShared) + capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t)) +
           2 * padded_dimensions(dimensions) * sizeof(float);
}

// Full vectors at the positions of their numbers.
struct NumberedRows {
    const float* rows;
    std::uint32_t dimensions;

    using Piece = detail::FullRows::Piece;
    __device__ Piece read(std::uint32_t row, std::uint32_t d) const
    {
        const float* from = rows + std::size_t{row} * dimensions + d;
        const float4 low = *reinterpret_cast<const float4*>(from);
        return {low, d + 4 < dimensions ? *reinterpret_cast<const float4*>(from + 4) : float4{0, 0, 0, 0}};
    }
    __device__ void decode(const Piece& piece, const float* mean, float* out) const
    {
        detail::FullRows{}.decode(piece, mean, out);
    }
};

// All 32 lanes call, each group of 8 with a row of its own.
__device__ inline double value_of(const ResidentRows& resident, const float* query, double norm, std::uint32_t row)
{
    if (resident.metric == Metric::l1) {
        const float* stored = resident.full + std::size_t{row} * resident.dimensions;
        return canonical_sum_of([=](std::uint32_t d) { return query[d]; }, [=](std::uint32_t d) { return stored[d]; },
                                resident.dimensions,
                                [](double sum, double a, double b) { return __dadd_rn(sum, fabs(__dsub_rn(a, b))); });
    }
    if (resident.full != nullptr) return full_value(resident, query, row);
    return half_value(resident, query, norm, row);
}

// The norm of a query where values or bounds need it.
__device__ inline double norm_of(const CertainRows& rows, const float* query)
{
    const ResidentRows& resident = rows.resident;
    const bool full = resident.full != nullptr;
    if (resident.metric == Metric::l2 || (full ? rows.coded.rows == nullptr : resident.metric == Metric::cosine))
        return 0;
    return __dsqrt_rn(canonical_dot(query, query, resident.dimensions));
}

__device__ inline bool is_dead(const CertainRows& rows, std::uint32_t row)
{
    return rows.dead != nullptr && ((rows.dead[row / 64] >> (row % 64)) & 1U) != 0;
}

// Writes the rows of a piece that live and pass, and returns their number.
template <class Source>
__device__ std::uint32_t list_live(const CompareJob& job, const Source& source, const ListPiece& piece,
                                   std::uint32_t* numbers, std::uint32_t* counter)
{
    if (threadIdx.x == 0) *counter = 0;
    __syncthreads();
    for (std::uint32_t base = 0; base < piece.count; base += compare_threads) {
        const std::uint32_t i = base + threadIdx.x;
        const std::uint32_t row = i < piece.count ? source.row(piece, i) : 0;
        const bool live = i < piece.count && !is_dead(job.rows, row) && source.passes(piece, row);
        const std::uint32_t place = take_place(live, counter);
        if (live) numbers[place] = row;
    }
    __syncthreads();
    return *counter;
}

__device__ inline std::uint32_t keep_near(const CompareJob& job, std::uint32_t* numbers, std::uint32_t count,
                                          const NearSpace& space)
{
    const ResidentRows& resident = job.rows.resident;
    if (resident.full != nullptr) {
        const NumberedRows rows{resident.full, resident.dimensions};
        return detail::keep_near<compare_threads>(rows, resident, numbers, count, job.k, space);
    }
    const detail::HalfRows rows{resident.half.rows, resident.stride, __fdiv_rn(1.0F, resident.half.scale)};
    return detail::keep_near<compare_threads>(rows, resident, numbers, count, job.k, space);
}

// The same by bytes. moved: the query as bytes are compared with it.
__device__ inline std::uint32_t keep_coded(const CompareJob& job, std::uint32_t* numbers, std::uint32_t count,
                                           const float* moved, NearSpace space)
{
    const CodedRows& coded = job.rows.coded;
    space.query = moved;
    const detail::ByteRows rows{coded.rows, coded.terms, coded.stride,
                                sqrtf(static_cast<float>(job.rows.resident.dimensions))};
    return detail::keep_near<compare_threads>(rows, job.rows.resident, numbers, count, job.k, space);
}

// A Source has piece(number); row(piece, i), the i-th row of a piece; passes(piece, row); and place(piece, number), the
// place of the piece's entries. Pieces are numbered from `first` on.
template <class Source>
__global__ __launch_bounds__(compare_threads) void compare_pieces(CompareJob job, Source source, std::uint32_t first)
{
    extern __shared__ std::uint64_t keys[];
    __shared__ unsigned long long least;  // of the keys
    const ResidentRows& resident = job.rows.resident;
    auto* select = reinterpret_cast<RankShared*>(keys + job.piece_rows);
    auto* query = reinterpret_cast<float*>(select + 1);
    float* mean = query + padded_dimensions(resident.dimensions);  // of halves; of full vectors the query moved
    auto* numbers = reinterpret_cast<std::uint32_t*>(mean + padded_dimensions(resident.dimensions));
    auto* bounds = reinterpret_cast<float*>(keys);

    const std::uint32_t number = first + blockIdx.x;
    const ListPiece piece = source.piece(number);
    const float* given = job.queries + std::size_t{piece.query} * resident.dimensions;
    for (std::uint32_t d = threadIdx.x; d < padded_dimensions(resident.dimensions); d += compare_threads) {
        const bool inside = d < resident.dimensions;
        query[d] = inside ? given[d] : 0;
        if (resident.full == nullptr) {
            mean[d] = inside ? resident.half.mean[d] : 0;
        } else {
            mean[d] = inside && job.rows.coded.mean != nullptr ? __fsub_rn(given[d], job.rows.coded.mean[d]) : query[d];
        }
    }
    if (threadIdx.x == 0) least = ~std::uint64_t{0};
    std::uint32_t count = list_live(job, source, piece, numbers, &select->kept);
    const double norm = norm_of(job.rows, query);
    const NearSpace space{query, mean, bounds, bounds + job.piece_rows, select, norm};
    if (job.coded && count > job.k + spare_rows) count = keep_coded(job, numbers, count, mean, space);
    if (job.near && count > job.k + spare_rows) count = keep_near(job, numbers, count, space);
    // The bound is uniform in a warp, whose lanes all take part in the shuffles.
    for (std::uint32_t base = threadIdx.x / 32 * 4; base < count; base += compare_threads / 8) {
        const std::uint32_t at = base + threadIdx.x % 32 / 8;
        const double value = value_of(resident, query, norm, numbers[min(at, count - 1)]);
        if (at >= count || threadIdx.x % 8 != 0) continue;
        keys[at] = order_of(__dadd_rn(value, 0.0));
        atomicMin(&least, static_cast<unsigned long long>(keys[at]));
    }
    __syncthreads();
    if (count > job.entries.width) sort_candidates<compare_threads>(static_cast<int>(count), keys, numbers);
    const std::uint32_t kept = min(count, job.entries.width);
    const std::size_t place = source.place(piece, number);
    const std::size_t out = place * job.entries.width;
    for (std::uint32_t i = threadIdx.x; i < kept; i += compare_threads) {
        job.entries.keys[out + i] = keys[i];
        job.entries.rows[out + i] = numbers[i];
    }
    if (threadIdx.x != 0) return;
    job.entries.counts[place] = kept;
    job.entries.leasts[place] = least;
}

// Compares `pieces` pieces, in launches of less than 2 ms of an H100 each, for which other queries wait.
template <class Source>
void launch_comparison(const CompareJob& job, const Source& source, std::uint32_t pieces, cudaStream_t stream)
{
    constexpr std::size_t launch_elements = std::size_t{1} << 30;  // of rows that one launch reads
    const std::uint32_t dimensions = job.rows.resident.dimensions;
    const std::size_t of_piece = std::size_t{job.piece_rows} * dimensions;
    const auto step = static_cast<std::uint32_t>(std::max<std::size_t>(launch_elements / of_piece, 1));
    allow_shared_memory(compare_pieces<Source>);
    for (std::uint32_t first = 0; first < pieces; first += step) {
        compare_pieces<<<std::min(step, pieces - first), compare_threads, shared_bytes(dimensions, job.piece_rows),
                         stream>>>(job, source, first);
        check_launch("comparing certain rows");
    }
}

// entries: places for those of the pieces.
inline CompareJob job_of(const CertainRows& rows, const float* queries, const Entries& entries, std::uint32_t k,
                         std::uint32_t piece_rows)
{
    const bool summed = rows.resident.metric != Metric::l1;
    return {
        rows,      summed && has_near_values(rows.resident), summed && rows.coded.rows != nullptr, queries, entries, k,
        piece_rows};
}

}  // namespace pgwarp::cuda::rows
