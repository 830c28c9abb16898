// Scores of a query and located rows, in bulk (SONG section 6): teams of threads share a row and read 16 bytes each.
// The score of a row depends on the query, the row and the size of the team alone.
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

// What a score is: the smaller the nearer.
enum class ScoreKind : std::uint8_t {
    dot,     // halves: term of the row - factor * (query . row): L2, inner product, cosine
    l1,      // halves: sum of |query - row|
    bytes,   // the same as dot, of bytes
    floats,  // squared distances and products
    bits,    // bits that differ
};

// Where the teams stand among those of a group.
struct Teams {
    std::uint32_t size;   // threads of a team, 2^bits
    std::uint32_t own;    // number of the calling thread's team
    std::uint32_t count;  // of all
    std::uint32_t bits;
};

template <class Group>
__device__ inline Teams teams_of(const Group& group, std::uint32_t size)
{
    const std::uint32_t bits = 31 - __clz(static_cast<int>(size));
    return {size, group.rank() >> bits, group.size() >> bits, bits};
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
template <class Group, ScoreKind kind>
struct HalfScores {
    Group group;
    Teams teams;
    const __half* rows;
    const float* terms;  // [rows], or none
    std::uint32_t pieces;
    float factor;
    StagedQuery query;

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
            const bool has = lane < together && number(lane) < count;
            const Entry entry = make_entry(kind == ScoreKind::l1 ? sum : term - factor * sum, own);
            take(has ? number(lane) : nowhere, has ? entry : no_entry);
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

// What a score of bytes goes by: row i of a batch is the one at place(i) of these, and has a number.
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

// Rows as bytes: the CPU's scores (ByteRows of index/graph), to the last bit where the mean is the same. A group
// that is alone reads rows ahead.
template <class Group>
struct ByteScores {
    static constexpr std::uint32_t least_team = 4;
    static constexpr std::uint32_t piece_elements = 32;  // of 128 bytes

    Group group;
    Teams teams;
    ByteView bytes;
    std::uint32_t pieces;
    float factor;          // of the query's step
    const float* vectors;  // full ones, or none
    std::uint32_t dimensions;
    const StagedBytes* query;

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        const LocatedBytes source{bytes.rows, bytes.terms, located};
        // Twice as many registers are enough for rows that would else be read one after the other.
        if constexpr (Group::alone) {
            if (count > 4 * teams.count) return score<8>(source, count, take);
        }
        score<4>(source, count, take);
    }
    // Seeds from `begin` on; numbers: their rows.
    template <class Take>
    __device__ void seeds(const std::uint32_t* numbers, std::uint32_t begin, std::uint32_t count,
                          const Take& take) const requires(Group::alone)
    {
        const std::size_t offset = begin;
        score<8>(SeedBytes{bytes.seeds + offset * bytes.stride, bytes.seed_terms + offset, numbers}, count, take);
    }
    __device__ void prefetch(std::uint32_t row) const requires(Group::alone)
    {
        group.prefetch(bytes.rows + static_cast<std::size_t>(row) * bytes.stride, bytes.stride);
        group.prefetch(bytes.terms + row, 1);
    }
    // Of the full vector of a row, which is ranked by it: pieces that are read ahead, and one of them.
    __device__ std::uint32_t vector_pieces() const requires(Group::alone)
    {
        return vectors != nullptr ? (dimensions + piece_elements - 1) / piece_elements : 0;
    }
    __device__ void prefetch_vector(std::uint32_t row, std::uint32_t piece) const requires(Group::alone)
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

    // Sums over a team of what its threads have of some rows. Each step halves the rows of a thread: in the end it has
    // all of row lane * together / size of the team, and of those behind it that no other thread has.
    template <std::uint32_t together>
    __device__ void share_sums(int (&sums)[together], std::uint32_t lane) const
    {
        std::uint32_t bit = teams.size / 2;
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

    // `together`: rows of a team that are under way at a time.
    template <std::uint32_t together, class Source, class Take>
    __device__ void score(const Source& source, std::uint32_t count, const Take& take) const
    {
        const std::uint32_t lane = group.rank() & (teams.size - 1);
        const std::uint32_t mine = (lane * together) >> teams.bits;  // of the rows that are under way
        const bool reports = mine * teams.size == lane * together;
        for (std::uint32_t base = 0; base < count; base += together * teams.count) {
            const auto number = [&](std::uint32_t i) { return base + i * teams.count + teams.own; };
            const auto place = [&](std::uint32_t i) { return source.place(min(number(i), count - 1)); };
            float2 term = __ldg(source.terms + place(mine));
            int sums[together] = {};
#pragma unroll(together > 4 ? 1 : 2)
            for (std::uint32_t piece = lane; piece < pieces; piece += teams.size) {
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
            for (std::uint32_t i = 0; i < together / least_team; ++i) {
                if (i * teams.size >= together) break;
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

// Rows in full: for what bytes don't tell apart.
template <class Group>
struct FloatScores {
    Group group;
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
            const bool has = lane == 0 && number < count;
            take(has ? number : nowhere, has ? make_entry(sum, own) : no_entry);
        }
    }
};

// Of a row and a query as bits.
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

// Rows as bits: a thread a row.
template <class Group>
struct BitScores {
    Group group;
    const std::uint32_t* rows;
    std::uint32_t words;
    const std::uint32_t* query;  // shared

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
