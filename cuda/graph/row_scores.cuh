// Scores of a query and located rows, in bulk (SONG section 6): teams of threads share a row and read 16 bytes each.
// The score of a row depends on the query, the row and the size of the team alone.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "graph/device_group.cuh"
#include "graph/entry.h"
#include "graph/search_shape.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// What a score is: the smaller the nearer.
enum class ScoreKind : std::uint8_t {
    dot,     // halves: term of the row - factor * (query . row): L2, inner product, cosine
    l1,      // halves: sum of |query - row|
    bytes,   // the same as dot, of bytes
    floats,  // squared distances and products
    bits,    // bits that differ
};

// Where the teams stand among all that share the work: those of one group, or of the groups of a cluster.
struct Teams {
    std::uint32_t size;   // threads of a team
    std::uint32_t own;    // number of the calling thread's team
    std::uint32_t count;  // of all
};

__device__ inline Teams teams_of(const DeviceGroup& group, std::uint32_t size)
{
    return {size, group.rank() / size, group.size() / size};
}

// A query in shared memory in pieces of eight elements: the first four of all pieces, then the other four of all. So
// neighbouring threads read neighbouring 16 bytes.
struct StagedQuery {
    const float4* first;
    const float4* second;
};

// Where element d lies among 2 * pieces * 4 floats.
__device__ inline std::uint32_t staged_place(std::uint32_t d, std::uint32_t pieces)
{
    return (d / 4 % 2) * pieces * 4 + d / 8 * 4 + d % 4;
}

namespace detail
{

template <ScoreKind kind>
__device__ inline float score_pair(__half2 row, float a, float b, float sum)
{
    const float2 values = __half22float2(row);
    if constexpr (kind == ScoreKind::l1) return sum + fabsf(a - values.x) + fabsf(b - values.y);
    return fmaf(values.y, b, fmaf(values.x, a, sum));
}

template <ScoreKind kind>
__device__ inline float score_piece(const uint4& row, const float4& a, const float4& b, float sum)
{
    sum = score_pair<kind>(*reinterpret_cast<const __half2*>(&row.x), a.x, a.y, sum);
    sum = score_pair<kind>(*reinterpret_cast<const __half2*>(&row.y), a.z, a.w, sum);
    sum = score_pair<kind>(*reinterpret_cast<const __half2*>(&row.z), b.x, b.y, sum);
    return score_pair<kind>(*reinterpret_cast<const __half2*>(&row.w), b.z, b.w, sum);
}

}  // namespace detail

// Rows as halves.
template <ScoreKind kind>
struct HalfScores {
    DeviceGroup group;
    Teams teams;
    const __half* rows;
    const float* terms;  // [rows], or none
    std::uint32_t pieces;
    float factor;
    StagedQuery query;

    // located: memory of this block, or of another of the cluster.
    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        constexpr std::uint32_t together = 4;  // rows of a team under way at a time; a team has as many threads
        const std::uint32_t lane = group.rank() & (teams.size - 1);
        // All threads of the group go through the same turns.
        for (std::uint32_t base = 0; base < count; base += together * teams.count) {
            const auto number = [&](std::uint32_t i) { return base + i * teams.count + teams.own; };
            const uint4* row[together];
#pragma unroll
            for (std::uint32_t i = 0; i < together; ++i) {
                const std::size_t at = located[min(number(i), count - 1)];
                row[i] = reinterpret_cast<const uint4*>(rows) + at * pieces;
            }
            const std::uint32_t own = located[min(number(lane % together), count - 1)];
            const float term = terms != nullptr ? __ldg(terms + own) : 0.0F;
            float sums[together] = {};
#pragma unroll 2
            for (std::uint32_t piece = lane; piece < pieces; piece += teams.size) {
                uint4 halves[together];
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) halves[i] = __ldg(row[i] + piece);
                const float4 a = query.first[piece];
                const float4 b = query.second[piece];
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    sums[i] = detail::score_piece<kind>(halves[i], a, b, sums[i]);
                }
            }
            for (std::uint32_t step = teams.size / 2; step > 0; step /= 2) {
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    sums[i] += __shfl_xor_sync(group.warp_mask(), sums[i], static_cast<int>(step));
                }
            }
            float sum = sums[0];
#pragma unroll
            for (std::uint32_t i = 1; i < together; ++i) sum = lane == i ? sums[i] : sum;
            if (lane >= together || number(lane) >= count) continue;
            take(number(lane), make_entry(kind == ScoreKind::l1 ? sum : term - factor * sum, own));
        }
    }
};

// A query as bytes, in shared memory: what a product of them stands for, and pieces of 16.
struct StagedBytes {
    float step;
    std::uint32_t largest;  // while it is staged
    std::uint32_t unused[2];
    uint4 pieces[1];
};
static_assert(offsetof(StagedBytes, pieces) == byte_query_header);

// Rows as bytes: the CPU's scores (ByteRows of index/graph), to the last bit where the mean is the same. `wide`: more
// rows are under way at a time, for groups that have a multiprocessor's registers to themselves.
template <bool wide>
struct ByteScores {
    DeviceGroup group;
    Teams teams;
    const std::int8_t* rows;
    const float2* terms;
    std::uint32_t pieces;
    float factor;  // of the query's step
    const StagedBytes* query;

    __device__ static int product(const uint4& row, const uint4& query, int sum)
    {
        sum = __dp4a(static_cast<int>(row.x), static_cast<int>(query.x), sum);
        sum = __dp4a(static_cast<int>(row.y), static_cast<int>(query.y), sum);
        sum = __dp4a(static_cast<int>(row.z), static_cast<int>(query.z), sum);
        return __dp4a(static_cast<int>(row.w), static_cast<int>(query.w), sum);
    }
    __device__ uint4 load(std::uint32_t row, std::uint32_t piece) const
    {
        return __ldg(reinterpret_cast<const uint4*>(rows) + (static_cast<std::size_t>(row) * pieces + piece));
    }
    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        constexpr std::uint32_t together = wide ? 8 : 4;  // rows of a team under way at a time
        const std::uint32_t lane = group.rank() & (teams.size - 1);
        for (std::uint32_t base = 0; base < count; base += together * teams.count) {
            const auto number = [&](std::uint32_t i) { return base + i * teams.count + teams.own; };
            const auto row_at = [&](std::uint32_t i) { return located[min(number(i), count - 1)]; };
            // Where many are under way the last ones are often none; where few are, asking costs more than reading.
            const auto is_there = [&](std::uint32_t i) { return !wide || number(i) < count; };
            std::uint32_t own = row_at(lane % together);
            float2 term = __ldg(terms + own);
            int sums[together] = {};
#pragma unroll(wide ? 1 : 2)
            for (std::uint32_t piece = lane; piece < pieces; piece += teams.size) {
                uint4 bytes[together];
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    if (is_there(i)) bytes[i] = load(row_at(i), piece);
                }
                const uint4 asked = query->pieces[piece];
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    if (is_there(i)) sums[i] = product(bytes[i], asked, sums[i]);
                }
            }
            for (std::uint32_t step = teams.size / 2; step > 0; step /= 2) {
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    sums[i] += __shfl_xor_sync(group.warp_mask(), sums[i], static_cast<int>(step));
                }
            }
            // Each thread has a row to report; in teams of less than there are rows, several.
            for (std::uint32_t first = 0; first < (wide ? together : 1); first += teams.size) {
                const std::uint32_t mine = first + lane;
                if (mine >= together || number(mine) >= count) continue;
                if (first > 0) {
                    own = row_at(mine);
                    term = __ldg(terms + own);
                }
                int sum = sums[0];
#pragma unroll
                for (std::uint32_t i = 1; i < together; ++i) sum = mine == i ? sums[i] : sum;
                const float scale = __fmul_rn(factor * query->step, term.x);
                take(number(mine), make_entry(__fadd_rn(term.y, __fmul_rn(scale, static_cast<float>(sum))), own));
            }
        }
    }
};

// Rows in full: for what bytes don't tell apart.
struct FloatScores {
    DeviceGroup group;
    Teams teams;
    const float* rows;
    std::uint32_t dimensions;
    bool squared;
    const float* query;

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        const std::uint32_t lane = group.rank() & (teams.size - 1);
        // All threads of the group go through the same turns.
        for (std::uint32_t base = 0; base < count; base += teams.count) {
            const std::uint32_t number = base + teams.own;
            const std::uint32_t own = located[min(number, count - 1)];
            const float* row = rows + static_cast<std::size_t>(own) * dimensions;
            float sum = 0;
#pragma unroll 4
            for (std::uint32_t d = lane; d < dimensions; d += teams.size) {
                const float stored = __ldg(row + d);
                const float difference = query[d] - stored;
                sum = squared ? fmaf(difference, difference, sum) : fmaf(-query[d], stored, sum);
            }
            for (std::uint32_t step = teams.size / 2; step > 0; step /= 2) {
                sum += __shfl_xor_sync(group.warp_mask(), sum, static_cast<int>(step));
            }
            if (lane == 0 && number < count) take(number, make_entry(sum, own));
        }
    }
};

// Rows as bits: a thread a row.
struct BitScores {
    DeviceGroup group;
    const std::uint32_t* rows;
    std::uint32_t words;
    const std::uint32_t* query;  // shared

    __device__ static std::uint32_t differing(const std::uint32_t* row, const std::uint32_t* query, std::uint32_t words)
    {
        std::uint32_t bits = 0;
        if (words % 4 == 0) {
            for (std::uint32_t i = 0; i < words; i += 4) {
                const uint4 piece = __ldg(reinterpret_cast<const uint4*>(row + i));
                bits += __popc(piece.x ^ query[i]) + __popc(piece.y ^ query[i + 1]) + __popc(piece.z ^ query[i + 2]) +
                        __popc(piece.w ^ query[i + 3]);
            }
        } else {
            for (std::uint32_t i = 0; i < words; ++i) bits += __popc(__ldg(row + i) ^ query[i]);
        }
        return bits;
    }
    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        for (std::uint32_t i = group.rank(); i < count; i += group.size()) {
            const std::uint32_t row = located[i];
            const std::uint32_t bits = differing(rows + static_cast<std::size_t>(row) * words, query, words);
            take(i, make_entry(static_cast<float>(bits), row));
        }
    }
};

}  // namespace pgwarp::cuda::graph
