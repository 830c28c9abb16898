// Scores of a query and a batch of rows (SONG section 6). Logical warps, a power of two of neighbouring threads, share
// a row and read 16 bytes each. The score of a row depends only on the query, the row and the size of the logical warp.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "graph/device_group.cuh"
#include "graph/entry.h"
#include "graph/launch_config.h"
#include "graph/queue.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// The kind of score; smaller is nearer.
enum class ScoreKind : std::uint8_t {
    dot,     // halves: term of the row - factor * (query . row): L2, inner product, cosine
    l1,      // halves: sum of |query - row|
    bytes,   // bytes: term of the row - factor * (query . row)
    floats,  // floats: squared distance or negative product
    bits,    // bits: number of differing bits
};

// The partition of a group into logical warps.
struct LogicalWarps {
    std::uint32_t size;   // threads of a logical warp, 2^bits
    std::uint32_t own;    // index of the calling thread's logical warp
    std::uint32_t count;  // number of logical warps
    std::uint32_t bits;
};

template <class Group>
__device__ inline LogicalWarps logical_warps_of(const Group& group, std::uint32_t size)
{
    const std::uint32_t bits = 31 - __clz(static_cast<int>(size));
    return {size, group.rank() >> bits, group.size() >> bits, bits};
}

// A query in shared memory in pieces of eight elements: the first four elements of all pieces, then the last four of
// all pieces. So neighbouring threads read neighbouring 16 bytes.
struct StagedQuery {
    const float4* first;
    const float4* second;
};

// The place of element d among the 2 * pieces * 4 floats.
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

// Scores of rows as halves.
template <class Group, ScoreKind kind>
struct HalfScores {
    Group group;
    LogicalWarps logical_warps;
    const __half* rows;
    const float* terms;  // [rows], or null
    std::uint32_t pieces;
    float factor;
    StagedQuery query;

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        constexpr std::uint32_t together = 4;  // rows that a logical warp reads at a time; at most its threads
        const std::uint32_t lane = group.rank() & (logical_warps.size - 1);
        // All threads of the group must make the same number of steps.
        for (std::uint32_t base = 0; base < count; base += together * logical_warps.count) {
            const auto number = [&](std::uint32_t i) { return base + i * logical_warps.count + logical_warps.own; };
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
            for (std::uint32_t piece = lane; piece < pieces; piece += logical_warps.size) {
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
            for (std::uint32_t step = logical_warps.size / 2; step > 0; step /= 2) {
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    sums[i] += __shfl_xor_sync(group.warp_mask(), sums[i], static_cast<int>(step));
                }
            }
            float sum = sums[0];
#pragma unroll
            for (std::uint32_t i = 1; i < together; ++i) sum = lane == i ? sums[i] : sum;
            const bool has = lane < together && number(lane) < count;
            const Entry entry = make_entry(kind == ScoreKind::l1 ? sum : term - factor * sum, own);
            take(has ? number(lane) : nowhere, has ? entry : no_entry);
        }
    }
};

// A query as bytes in shared memory: the float that a step of the bytes stands for, and pieces of 16 bytes.
struct StagedBytes {
    float step;
    std::uint32_t largest;  // bits of the largest element while the query is staged
    std::uint32_t unused[2];
    uint4 pieces[1];
};
static_assert(offsetof(StagedBytes, pieces) == byte_query_header);

// The sources of rows as bytes: row i of a batch is at place(i) of `rows` and has the row number number(i).
struct LocatedBytes {
    const std::int8_t* rows;
    const float2* terms;
    const std::uint32_t* located;
    __device__ std::uint32_t place(std::uint32_t i) const { return located[i]; }
    __device__ std::uint32_t number(std::uint32_t i) const { return located[i]; }
};
struct SeedBytes {
    const std::int8_t* rows;
    const float2* terms;
    const std::uint32_t* numbers;
    __device__ std::uint32_t place(std::uint32_t i) const { return i; }
    __device__ std::uint32_t number(std::uint32_t i) const { return numbers[i]; }
};

// Scores of rows as bytes, with the bits of the CPU's (methods/graph/byte_rows.h) where the mean is the same. A group
// with a multiprocessor to itself reads more rows at a time.
template <class Group>
struct ByteScores {
    static constexpr std::uint32_t least_logical_warp = 4;
    static constexpr std::uint32_t piece_elements = 32;  // floats of a cache line of 128 bytes

    Group group;
    LogicalWarps logical_warps;
    ByteView bytes;
    std::uint32_t pieces;
    float factor;          // of the product, before the steps of query and row
    const float* vectors;  // full vectors, or null
    std::uint32_t dimensions;
    const StagedBytes* query;

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        const LocatedBytes source{bytes.rows, bytes.terms, located};
        // Twice the registers, so that more rows are read at a time.
        if constexpr (Group::exclusive) {
            if (count > 4 * logical_warps.count) return score<8>(source, count, take);
        }
        score<4>(source, count, take);
    }
    // Scores of the seeds begin .. begin + count - 1. numbers: the rows of these seeds.
    template <class Take>
    __device__ void seeds(const std::uint32_t* numbers, std::uint32_t begin, std::uint32_t count,
                          const Take& take) const requires(Group::exclusive)
    {
        const std::size_t offset = begin;
        score<8>(SeedBytes{bytes.seeds + offset * bytes.stride, bytes.seed_terms + offset, numbers}, count, take);
    }
    __device__ void prefetch(std::uint32_t row) const requires(Group::exclusive)
    {
        group.prefetch(bytes.rows + static_cast<std::size_t>(row) * bytes.stride, bytes.stride);
        group.prefetch(bytes.terms + row, 1);
    }
    // The full vector of a row that will be ranked: number of pieces to prefetch, and prefetch of one piece.
    __device__ std::uint32_t vector_pieces() const requires(Group::exclusive)
    {
        return vectors != nullptr ? (dimensions + piece_elements - 1) / piece_elements : 0;
    }
    __device__ void prefetch_vector(std::uint32_t row, std::uint32_t piece) const requires(Group::exclusive)
    {
        group.prefetch(vectors + static_cast<std::size_t>(row) * dimensions + piece * piece_elements, 1);
    }

private:
    __device__ static int product(const uint4& row, const uint4& query, int sum)
    {
        sum = __dp4a(static_cast<int>(row.x), static_cast<int>(query.x), sum);
        sum = __dp4a(static_cast<int>(row.y), static_cast<int>(query.y), sum);
        sum = __dp4a(static_cast<int>(row.z), static_cast<int>(query.z), sum);
        return __dp4a(static_cast<int>(row.w), static_cast<int>(query.w), sum);
    }
    __device__ static uint4 load(const std::int8_t* rows, std::size_t piece)
    {
        return __ldg(reinterpret_cast<const uint4*>(rows) + piece);
    }

    // Sums over a logical warp of the partial sums of its threads for `together` rows. Each step halves the rows of a
    // thread. In the end a thread has the sum of row lane * together / size of the logical warp, and of the rows after
    // it that no other thread has.
    template <std::uint32_t together>
    __device__ void share_sums(int (&sums)[together], std::uint32_t lane) const
    {
        std::uint32_t bit = logical_warps.size / 2;
#pragma unroll
        for (std::uint32_t half = together / 2; half > 0; half /= 2) {
            if (bit == 0) return;
            const bool upper = (lane & bit) != 0;
#pragma unroll
            for (std::uint32_t i = 0; i < half; ++i) {
                const int given = upper ? sums[i] : sums[i + half];
                const int kept = upper ? sums[i + half] : sums[i];
                sums[i] = kept + __shfl_xor_sync(group.warp_mask(), given, static_cast<int>(bit));
            }
            bit /= 2;
        }
        for (; bit > 0; bit /= 2) sums[0] += __shfl_xor_sync(group.warp_mask(), sums[0], static_cast<int>(bit));
    }

    // together: rows that a logical warp reads at a time.
    template <std::uint32_t together, class Source, class Take>
    __device__ void score(const Source& source, std::uint32_t count, const Take& take) const
    {
        const std::uint32_t lane = group.rank() & (logical_warps.size - 1);
        const std::uint32_t mine = (lane * together) >> logical_warps.bits;  // first row whose sum this thread has
        const bool reports = mine * logical_warps.size == lane * together;
        for (std::uint32_t base = 0; base < count; base += together * logical_warps.count) {
            const auto number = [&](std::uint32_t i) { return base + i * logical_warps.count + logical_warps.own; };
            const auto place = [&](std::uint32_t i) { return source.place(min(number(i), count - 1)); };
            float2 term = __ldg(source.terms + place(mine));
            int sums[together] = {};
#pragma unroll(together > 4 ? 1 : 2)
            for (std::uint32_t piece = lane; piece < pieces; piece += logical_warps.size) {
                uint4 row[together];
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    row[i] = load(source.rows, std::size_t{place(i)} * pieces + piece);
                }
                const uint4 asked = query->pieces[piece];
#pragma unroll
                for (std::uint32_t i = 0; i < together; ++i) {
                    sums[i] = product(row[i], asked, sums[i]);
                }
            }
            share_sums(sums, lane);
#pragma unroll
            for (std::uint32_t i = 0; i < together / least_logical_warp; ++i) {
                if (i * logical_warps.size >= together) break;
                const std::uint32_t own = number(mine + i);
                const bool has = reports && own < count;
                if (i > 0) term = __ldg(source.terms + place(mine + i));
                const float scale = __fmul_rn(factor * query->step, term.x);
                const float score = __fadd_rn(term.y, __fmul_rn(scale, static_cast<float>(sums[i])));
                take(has ? own : nowhere, has ? make_entry(score, source.number(own)) : no_entry);
            }
        }
    }
};

// Scores of rows as floats, where bytes do not tell rows apart.
template <class Group>
struct FloatScores {
    Group group;
    LogicalWarps logical_warps;
    const float* rows;
    std::uint32_t dimensions;
    bool squared;
    const float* query;

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        const std::uint32_t lane = group.rank() & (logical_warps.size - 1);
        // All threads of the group must make the same number of steps.
        for (std::uint32_t base = 0; base < count; base += logical_warps.count) {
            const std::uint32_t number = base + logical_warps.own;
            const std::uint32_t own = located[min(number, count - 1)];
            const float* row = rows + static_cast<std::size_t>(own) * dimensions;
            float sum = 0;
#pragma unroll 4
            for (std::uint32_t d = lane; d < dimensions; d += logical_warps.size) {
                const float stored = __ldg(row + d);
                const float difference = query[d] - stored;
                sum = squared ? fmaf(difference, difference, sum) : fmaf(-query[d], stored, sum);
            }
            for (std::uint32_t step = logical_warps.size / 2; step > 0; step /= 2) {
                sum += __shfl_xor_sync(group.warp_mask(), sum, static_cast<int>(step));
            }
            const bool has = lane == 0 && number < count;
            take(has ? number : nowhere, has ? make_entry(sum, own) : no_entry);
        }
    }
};

// The number of bits that differ between a row and a query.
__device__ inline std::uint32_t differing_bits(const std::uint32_t* row, const std::uint32_t* query,
                                               std::uint32_t words)
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

// Scores of rows as bits: a thread for each row.
template <class Group>
struct BitScores {
    Group group;
    const std::uint32_t* rows;
    std::uint32_t words;
    const std::uint32_t* query;  // in shared memory

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        for (std::uint32_t base = 0; base < count; base += group.size()) {
            const std::uint32_t i = base + group.rank();
            const std::uint32_t row = located[min(i, count - 1)];
            const std::uint32_t bits = differing_bits(rows + static_cast<std::size_t>(row) * words, query, words);
            take(i < count ? i : nowhere, i < count ? make_entry(static_cast<float>(bits), row) : no_entry);
        }
    }
};

}  // namespace pgwarp::cuda::graph
