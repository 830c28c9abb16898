// The proposal of bins by a whole block: the bins with the smallest scores until they hold enough rows, as
// nearest_bins() of methods/pqtree/bin_order.h gives them.
//
// Bins are pairs of two sorted lists, and the score of a bin is a sum. They come in shells: all pairs whose sums lie
// between two limits. Within a shell bins need no order, because their rows are ranked again. In the last shell bins
// are counted by score in buckets, those of buckets behind the wanted number of rows are left out, and the bucket of
// the cut is divided again.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "pqtree/block.cuh"
#include "pqtree/descent.cuh"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

inline constexpr std::uint32_t most_bin_rows = 1U << 20;  // rows of one bin that a search looks at
static_assert(cut_buckets <= batch_threads);

namespace detail
{

// For each of some scores, the number of the list's scores whose sums with it are up to `limit`, by searches side by
// side. Sums are compared, as rounded ones grow with their terms: all pairs have sums up to the last sum.
template <int Scores>
__device__ void sums_upto(const RankedList& list, float limit, const float (&scores)[Scores],
                          std::uint32_t (&numbers)[Scores])
{
#pragma unroll
    for (int s = 0; s < Scores; ++s) numbers[s] = 0;
    for (std::uint32_t step = list.largest_step(); step > 0; step /= 2) {
#pragma unroll
        for (int s = 0; s < Scores; ++s) {
            const std::uint32_t next = numbers[s] + step;
            if (scores[s] + list.scores[min(next, list.count) - 1] <= limit && next <= list.count) numbers[s] = next;
        }
    }
}

// The number of pairs of the i-th entry of `a` with sums up to `limit`.
__device__ inline std::uint32_t pairs_of(const RankedList& a, const RankedList& b, std::uint32_t i, float limit)
{
    const float scores[1] = {a.scores[i]};
    std::uint32_t pairs[1];
    sums_upto(b, limit, scores, pairs);
    return pairs[0];
}

// The number of pairs with sums up to `limit` of every Sharing-th 32 entries of `a`, by a warp.
template <std::uint32_t Sharing>
__device__ std::uint32_t count_pairs(const RankedList& a, const RankedList& b, float limit, std::uint32_t share)
{
    constexpr int together = 4;
    std::uint32_t pairs = 0;
    for (std::uint32_t base = 32 * share + threadIdx.x % 32; base < a.count; base += 32 * Sharing * together) {
        if (a.scores[base] + b.scores[0] > limit) break;  // the scores of `a` only grow
        float scores[together];
        std::uint32_t own[together];
#pragma unroll
        for (std::uint32_t j = 0; j < together; ++j) {
            const std::uint32_t i = base + 32 * Sharing * j;
            scores[j] = i < a.count ? a.scores[i] : NAN;  // of no pairs
        }
        sums_upto(b, limit, scores, own);
#pragma unroll
        for (int j = 0; j < together; ++j) pairs += own[j];
    }
    return warp_sum(pairs);
}

__device__ inline float last_sum(const RankedList& a, const RankedList& b)
{
    return a.scores[a.count - 1] + b.scores[b.count - 1];
}

// A sum that `wanted` pairs do not exceed, beyond `low`: all pairs of ranks up to the root of `wanted`.
__device__ inline float sum_with(const RankedList& a, const RankedList& b, std::uint32_t wanted, float low)
{
    const auto rank = static_cast<std::uint32_t>(sqrtf(static_cast<float>(wanted))) + 1;
    if (rank >= a.count || rank >= b.count) return last_sum(a, b);
    const float sum = a.scores[rank] + b.scores[rank];
    return sum > low ? sum : last_sum(a, b);
}

// Finds a limit with at least `wanted` pairs, and at most a quarter more where sums differ enough; the last sum where
// there are fewer. Warps count the pairs of some limits between `low` and a sum with enough pairs, then between the
// nearest two. Begins and ends with a barrier.
template <int Threads>
__device__ float find_limit(const RankedList& a, const RankedList& b, float low, std::uint32_t wanted,
                            BlockState& state)
{
    constexpr int rounds = 6;
    constexpr int points = 8;  // whatever the size of the block: an answer does not depend on the batch
    constexpr int sharing = Threads / 32 / points;  // warps that count the pairs of a limit
    static_assert(sharing * points * 32 == Threads);
    float high = sum_with(a, b, wanted, low);
    for (int round = 0; round < rounds; ++round) {
        const float step = (high - low) / static_cast<float>(points + 1);
        const auto own = static_cast<int>(threadIdx.x / 32);
        __syncthreads();
        const std::uint32_t pairs =
            count_pairs<sharing>(a, b, fmaf(step, static_cast<float>(own / sharing + 1), low), own % sharing);
        if (threadIdx.x % 32 == 0) state.warp_sums[own] = pairs;
        __syncthreads();
        // The numbers of pairs only grow.
        const std::uint32_t lane = threadIdx.x % 32;
        std::uint32_t of_point = 0;
        for (std::uint32_t i = 0; lane < points && i < sharing; ++i) of_point += state.warp_sums[lane * sharing + i];
        const int point = __popc(__ballot_sync(~0U, lane < points && of_point < wanted));
        const bool enough = point < points && __shfl_sync(~0U, of_point, point) <= wanted + wanted / 4;
        const float from = low;
        if (point < points) high = fmaf(step, static_cast<float>(point + 1), from);
        low = fmaf(step, static_cast<float>(point), from);
        if (enough) break;
    }
    __syncthreads();
    return high;
}

// A shell: pair x of [0, pairs) belongs to the last entry i of `a` with sums[i] <= x.
struct Shell {
    float limit;
    std::uint32_t pairs;
};

// Finds the pairs with sums up to `limit` that were not visited: visited[i], sums[i] for entries of `a`. Ends with a
// barrier.
template <int Threads>
__device__ Shell open_shell(const RankedList& a, const RankedList& b, float limit, const std::uint32_t* visited,
                            std::uint32_t* sums, BlockState& state)
{
    Shell shell{limit, 0};
    for (std::uint32_t base = 0; base < a.count; base += Threads) {
        const std::uint32_t i = base + threadIdx.x;
        std::uint32_t fresh = 0;
        if (i < a.count) {
            const std::uint32_t upto = pairs_of(a, b, i, limit);
            fresh = upto > visited[i] ? upto - visited[i] : 0;
        }
        std::uint32_t total;
        const std::uint32_t before = sum_before<Threads>(fresh, state, total);
        if (i < a.count) sums[i] = shell.pairs + before;
        shell.pairs += total;
    }
    if (threadIdx.x == 0) sums[a.count] = shell.pairs;
    __syncthreads();
    return shell;
}

__device__ inline std::uint32_t entry_of(const std::uint32_t* sums, std::uint32_t count, std::uint32_t pair)
{
    std::uint32_t low = 0;
    std::uint32_t high = count;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        if (sums[middle] <= pair) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// The buckets of the sums of a shell.
struct Buckets {
    float origin;
    float width;  // of a bucket
    __device__ std::uint32_t of(float sum) const
    {
        const float bucket = (sum - origin) / width;
        return static_cast<std::uint32_t>(fminf(fmaxf(bucket, 0.0F), static_cast<float>(cut_buckets - 1)));
    }
    // The buckets of the sums of one bucket.
    __device__ Buckets within(std::uint32_t bucket) const
    {
        return {fmaf(static_cast<float>(bucket), width, origin), fmaxf(width / cut_buckets, FLT_MIN)};
    }
};

// Rows of a listed bin, with a mark while its place before or behind the cut is open.
inline constexpr std::uint32_t undecided = 1U << 31;

// The scores of listed bins lie behind the histogram of buckets.
__device__ inline float* bin_scores(const BlockSpace& space)
{
    return reinterpret_cast<float*>(space.scratch + cut_buckets);
}

// Lists the bins of pairs [first, last) that have rows: space.bins = {begin, rows | undecided}, and their scores; adds
// their rows to those of their buckets, space.scratch. Ends with a barrier.
template <int Threads>
__device__ void list_bins(const MirrorView& mirror, const BlockSpace& space, const RankedList& a, const RankedList& b,
                          std::uint64_t combinations, const std::uint32_t* visited, const std::uint32_t* sums,
                          std::uint32_t first, std::uint32_t last, const Buckets& buckets, BlockState& state)
{
    for (std::uint32_t base = first; base < last; base += Threads) {
        const std::uint32_t pair = base + threadIdx.x;
        std::uint32_t begin = 0;
        std::uint32_t rows = 0;
        float score = 0;
        if (pair < last) {
            const std::uint32_t i = entry_of(sums, a.count, pair);
            const std::uint32_t j = visited[i] + pair - sums[i];
            const BinRows found = mirror.lists.rows_of(a.numbers[i] * combinations + b.numbers[j]);
            begin = found.begin;
            rows = min(found.rows, most_bin_rows);
            score = a.scores[i] + b.scores[j];
        }
        const std::uint32_t place = take_place(rows > 0, &state.listed);
        if (rows == 0) continue;
        space.bins[place] = make_uint2(begin, rows | undecided);
        bin_scores(space)[place] = score;
        atomicAdd(&space.scratch[buckets.of(score)], rows);
    }
    __syncthreads();
}

// Decides which of the listed bins are taken: the nearest that hold `wanted` rows. The rows of the others become 0.
// Each round decides the bins before and behind the bucket of the cut, and divides that bucket. Ends with a barrier.
template <int Threads>
__device__ void decide_bins(const BlockSpace& space, std::uint32_t wanted, Buckets buckets, BlockState& state)
{
    constexpr int rounds = 2;
    const std::uint32_t listed = state.listed;
    for (int round = 0;; ++round) {
        const std::uint32_t own = threadIdx.x < cut_buckets ? space.scratch[threadIdx.x] : 0;
        std::uint32_t total;
        const std::uint32_t before = sum_before<Threads>(own, state, total);
        if (total <= wanted) return;  // all that are undecided are taken
        if (before < wanted && before + own >= wanted) {
            state.cut = threadIdx.x;
            state.before_cut = before;
            state.at_cut = own;
        }
        __syncthreads();
        const std::uint32_t cut = state.cut;
        const bool divides = round + 1 < rounds && state.before_cut + state.at_cut > wanted + wanted / 32;
        wanted -= state.before_cut;
        if (threadIdx.x < cut_buckets) space.scratch[threadIdx.x] = 0;
        __syncthreads();
        const Buckets finer = buckets.within(cut);
        for (std::uint32_t i = threadIdx.x; i < listed; i += Threads) {
            const std::uint32_t rows = space.bins[i].y;
            if (rows < undecided) continue;
            const float score = bin_scores(space)[i];
            const std::uint32_t bucket = buckets.of(score);
            if (bucket > cut) space.bins[i].y = 0;
            if (bucket < cut) space.bins[i].y = rows - undecided;
            if (bucket == cut && divides) atomicAdd(&space.scratch[finer.of(score)], rows - undecided);
        }
        __syncthreads();
        if (!divides) return;
        buckets = finer;
    }
}

// The share of a block in the bins of a query: by where they begin, as the order of listed bins varies.
struct BinShare {
    std::uint32_t own = 0;
    std::uint32_t blocks = 1;  // a power of two
    __device__ bool has(std::uint32_t begin) const { return (begin * 0x9e3779b1U >> 16 & (blocks - 1)) == own; }
};

struct CutRows {
    std::uint32_t all;
    std::uint32_t own;  // of the block's share
};

// Turns the listed bins into {begin, rows of the share before}; leaves out those behind the wanted number of rows.
// Returns the rows that stay. Ends with a barrier.
template <int Threads>
__device__ CutRows cut_bins(const BlockSpace& space, std::uint32_t wanted, const Buckets& buckets,
                            const BinShare& share, BlockState& state)
{
    decide_bins<Threads>(space, wanted, buckets, state);
    const std::uint32_t listed = state.listed;
    CutRows rows{0, 0};
    for (std::uint32_t base = 0; base < listed; base += Threads) {
        const std::uint32_t i = base + threadIdx.x;
        const std::uint32_t taken = i < listed ? space.bins[i].y & (undecided - 1) : 0;
        const std::uint32_t own = taken > 0 && share.has(space.bins[i].x) ? taken : 0;
        const std::uint32_t of_warp = warp_sum(taken);
        if (threadIdx.x % 32 == 0 && of_warp > 0) atomicAdd(&state.taken, of_warp);
        std::uint32_t total;
        const std::uint32_t before = sum_before<Threads>(own, state, total);
        if (i < listed) space.bins[i].y = rows.own + before;
        rows.own += total;
    }
    __syncthreads();
    rows.all = state.taken;
    return rows;
}

}  // namespace detail

// Visits bins of pairs of `a` and `b` until they hold `candidates` rows: calls scan(bins, rows of the share), by all
// threads, for bins listed in space.bins as {begin, rows before}. The number of a bin is number of a * combinations +
// number of b. first_pairs: of the first shell. room: of space.bins. A shell with more bins than room is visited in
// pieces, in order of `a`; only then are the bins not quite the nearest. Overwrites space.scratch; scan may, too, and
// begins with a barrier.
template <int Threads, class Scan>
__device__ void visit_bins(const MirrorView& mirror, const BlockSpace& space, const RankedList& a, const RankedList& b,
                           std::uint64_t combinations, std::uint32_t candidates, std::uint32_t first_pairs,
                           std::uint32_t room, const detail::BinShare& share, BlockState& state, const Scan& scan)
{
    std::uint32_t* visited = space.offsets;
    std::uint32_t* sums = visited + a.count;
    for (std::uint32_t i = threadIdx.x; i < a.count; i += Threads) visited[i] = 0;
    float low = a.scores[0] + b.scores[0];
    std::uint32_t rows = 0;
    std::uint32_t pairs = 0;
    std::uint32_t bins = 0;
    std::uint32_t wanted_pairs = first_pairs;
    while (true) {
        const float limit = detail::find_limit<Threads>(a, b, low, wanted_pairs, state);
        const detail::Shell shell = detail::open_shell<Threads>(a, b, limit, visited, sums, state);
        const detail::Buckets buckets{low, fmaxf((limit - low) / cut_buckets, FLT_MIN)};
        for (std::uint32_t first = 0; first < shell.pairs;) {
            if (threadIdx.x < cut_buckets) space.scratch[threadIdx.x] = 0;
            if (threadIdx.x == 0) {
                state.listed = 0;
                state.taken = 0;
            }
            __syncthreads();
            // Pairs without rows take no room, so more pairs may follow.
            for (std::uint32_t listed = 0; first < shell.pairs && listed < room / 2;) {
                const std::uint32_t last = min(first + room - listed, shell.pairs);
                detail::list_bins<Threads>(mirror, space, a, b, combinations, visited, sums, first, last, buckets,
                                           state);
                listed = state.listed;
                first = last;
                if (first < shell.pairs) __syncthreads();
            }
            bins += state.listed;
            const detail::CutRows found = detail::cut_bins<Threads>(space, candidates - rows, buckets, share, state);
            scan(state.listed, found.own);
            rows += found.all;
            if (rows >= candidates) return;
        }
        if (limit >= detail::last_sum(a, b)) return;
        for (std::uint32_t i = threadIdx.x; i < a.count; i += Threads) visited[i] += sums[i + 1] - sums[i];
        pairs += shell.pairs;
        const float missing = static_cast<float>(candidates - rows) / static_cast<float>(rows + 1);
        const float more = static_cast<float>(pairs) * fminf(fmaxf(1.2F * missing, 0.5F), 4.0F);
        // Where pairs have rows as often as so far, those of a shell fill half the room.
        const float pairs_of_bin = fmaxf(static_cast<float>(pairs) / static_cast<float>(2 * bins + 1), 1.0F);
        const float most = pairs_of_bin * static_cast<float>(room / 5 * 4);
        wanted_pairs = pairs + static_cast<std::uint32_t>(fminf(more + 1, most));
        low = limit;
    }
}

}  // namespace pgwarp::cuda::pqtree
