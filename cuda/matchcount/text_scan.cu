#include <algorithm>

#include "device/error.h"
#include "matchcount/edit_band.cuh"
#include "matchcount/edit_blocks.cuh"
#include "matchcount/text_bounds.cuh"
#include "matchcount/text_results.cuh"
#include "matchcount/text_scan.h"
#include "matchcount/text_tiles.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t block_threads = 256;
constexpr std::uint32_t block_warps = block_threads / 32;
constexpr std::uint32_t blocks_at_a_time = 3;  // of a multiprocessor
constexpr std::uint32_t block_waves = 4;       // of a launch: blocks of one query take different times
constexpr std::uint32_t most_slices = 512;
constexpr std::uint32_t surveyed_share = 7;  // of the tiles; odd, so that it meets both sides

// A query as a block reads it.
struct Query {
    std::uint32_t number;
    std::uint32_t length;
    const std::uint8_t* ids;

    __device__ Query(const TextQueries& queries, std::uint32_t number)
        : number(number), length(queries.lengths[number]), ids(queries.ids + std::size_t{number} * queries.stride)
    {
    }
};

// Returns the tiles of a warp, one of those of all slices and parts.
__device__ TextTiles tiles_of_warp(const TextsView& texts, const Query& query, std::uint32_t gap, std::uint32_t part,
                                   std::uint32_t parts)
{
    const std::uint32_t warp = (part * gridDim.x + blockIdx.x) * block_warps + threadIdx.x / 32;
    return {texts, query.length, gap, warp, parts * gridDim.x * block_warps};
}

__device__ bool is_dead(const TextsView& texts, std::uint32_t place)
{
    return texts.dead != nullptr && (texts.dead[place / 64] >> place % 64 & 1) != 0;
}

__global__ void __launch_bounds__(block_threads) survey_kernel(const TextsView texts, const TextQueries queries)
{
    __shared__ std::uint32_t bins[33];
    __shared__ std::uint32_t counted[TextQueries::bounds];
    const Query query(queries, blockIdx.y);
    if (threadIdx.x < TextQueries::bounds) counted[threadIdx.x] = 0;
    count_characters(texts, query.ids, query.length, bins);
    __syncthreads();
    const QueryCounts counts = read_counts(bins);
    const std::uint32_t most = most_near_bound(query.length);
    const TextTiles tiles = tiles_of_warp(texts, query, most, 0, 1);
    for (std::uint32_t tile = tiles.begin(); tile * surveyed_share < tiles.end(); tile += tiles.step()) {
        const std::uint32_t place = tiles.place(tile * surveyed_share, threadIdx.x % 32);
        if (place == TextTiles::no_place) continue;
        const std::uint32_t length = texts.lengths[place] & ~text_is_ambiguous;
        const std::uint32_t bound = least_distance(counts, query.length, load_counts(texts, place), length);
        if (bound <= most && !is_dead(texts, place)) atomicAdd(&counted[bound], 1U);
    }
    __syncthreads();
    if (threadIdx.x < TextQueries::bounds && counted[threadIdx.x] > 0) {
        atomicAdd(queries.of_bound + std::size_t{query.number} * TextQueries::bounds + threadIdx.x,
                  counted[threadIdx.x]);
    }
}

// Returns the largest bound of the step `near`: enough texts have it or a smaller one.
__device__ std::uint32_t near_bound(const TextQueries& queries, const Query& query)
{
    const std::uint32_t most = most_near_bound(query.length);
    if (queries.reach[query.number] <= most) return queries.reach[query.number];
    const std::uint32_t wanted = queries.near_texts / surveyed_share;
    std::uint32_t sum = 0;
    for (std::uint32_t bound = 0; bound < most; ++bound) {
        sum += __ldg(queries.of_bound + std::size_t{query.number} * TextQueries::bounds + bound);
        if (sum >= wanted) return bound;
    }
    return most;
}

// The comparison of a query with texts, one a lane.
class Comparison
{
public:
    __device__ Comparison(const TextsView& texts, const TextQueries& queries, const Query& query,
                          const std::uint32_t* table)
        : texts_(texts), queries_(queries), query_(query), table_(table), results_(queries, query.number)
    {
    }

    __device__ std::uint32_t limit() const { return results_.limit(); }
    // Compares the texts at places other than no_place. Called by all lanes of a warp.
    __device__ void compare(std::uint32_t place)
    {
        LaneText text;
        std::uint32_t length = 0;
        const std::uint32_t limit = results_.limit();
        if (place != TextTiles::no_place) {
            length = texts_.lengths[place];
            text.length = length & ~text_is_ambiguous;
            text.ids = texts_.ids + texts_.begins[place];
            const std::uint32_t gap = max(text.length, query_.length) - min(text.length, query_.length);
            text.compared = gap <= limit;
        }
        if (__ballot_sync(all_lanes, text.compared) == 0) return;
        // No distance is larger than the longer length.
        const std::uint32_t longest = warp_largest(text.compared ? text.length : 0);
        const std::uint32_t most = min(limit, max(longest, query_.length));
        std::uint32_t distance = distance_to(text, most);
        bool offers = text.compared && distance <= most;
        if (offers && (length & text_is_ambiguous) != 0) {
            distance = distance_by_characters(place, text.length);
            offers = distance <= most;
        }
        results_.take(offers, distance, offers ? texts_.rows[place] : 0);
    }

private:
    __device__ std::uint32_t distance_to(const LaneText& text, std::uint32_t most) const
    {
        if (most <= band_reach(1)) return distance_in_band<1>(table_, query_.length, text, most);
        if (most <= band_reach(2)) return distance_in_band<2>(table_, query_.length, text, most);
        if (most <= band_reach(3)) return distance_in_band<3>(table_, query_.length, text, most);
        if (most <= band_reach(4)) return distance_in_band<4>(table_, query_.length, text, most);
        if (most <= band_reach(8)) return distance_in_band<8>(table_, query_.length, text, most);
        if (!text.compared) return 0;
        const auto* ids = reinterpret_cast<const std::uint8_t*>(text.ids);
        return distance_in_blocks(query_.length, text.length, [&](std::uint32_t block, std::uint32_t column) {
            return table_[(mask_rows_before + block) * mask_ids + ids[column]];
        });
    }
    __device__ std::uint32_t distance_by_characters(std::uint32_t place, std::uint32_t length) const
    {
        const std::uint32_t* const own = queries_.wide + std::size_t{query_.number} * queries_.stride;
        const std::uint32_t* const others = texts_.wide + texts_.wide_begins[place];
        return distance_in_blocks(query_.length, length, [&](std::uint32_t block, std::uint32_t column) {
            const std::uint32_t end = min(32 * block + 32, query_.length);
            std::uint32_t matches = 0;
            for (std::uint32_t i = 32 * block; i < end; ++i) matches |= (own[i] == others[column] ? 1U : 0U) << i % 32;
            return matches;
        });
    }

    const TextsView& texts_;
    const TextQueries& queries_;
    const Query& query_;
    const std::uint32_t* table_;
    TextResults results_;
};

// Compares the texts of the warp's tiles whose bounds are in a range and at most the limit. waiting: [64], of the warp.
__device__ void compare_tiles(const TextsView& texts, const Query& query, const QueryCounts& counts,
                              std::uint32_t least, std::uint32_t most, const TextTiles& tiles, Comparison& comparison,
                              std::uint32_t* waiting)
{
    const std::uint32_t lane = threadIdx.x % 32;
    std::uint32_t waits = 0;  // places
    std::uint32_t end = tiles.end();
    for (std::uint32_t tile = tiles.begin(); tile < end || waits > 0; tile += tiles.step()) {
        if (tile < end) {
            const std::uint32_t limit = min(comparison.limit(), most);
            const std::uint32_t place = tiles.place(tile, lane);
            std::uint32_t gap = all_lanes;
            bool kept = false;
            if (place != TextTiles::no_place) {
                const std::uint32_t length = texts.lengths[place] & ~text_is_ambiguous;
                const std::uint32_t bound = least_distance(counts, query.length, load_counts(texts, place), length);
                gap = max(length, query.length) - min(length, query.length);
                kept = bound >= least && bound <= limit && !is_dead(texts, place);
            }
            // The texts behind are as far as the nearest one of this tile.
            if (__shfl_sync(all_lanes, gap, 0) > limit) end = 0;
            const std::uint32_t who = __ballot_sync(all_lanes, kept);
            if (kept) waiting[waits + __popc(who & ((1U << lane) - 1))] = place;
            waits += __popc(who);
            __syncwarp();
            if (waits < 32 && end > 0) continue;
        }
        // The last ones may be fewer than the lanes.
        const std::uint32_t taken = min(waits, 32U);
        waits -= taken;
        const std::uint32_t place = lane < taken ? waiting[waits + lane] : TextTiles::no_place;
        __syncwarp();
        if (taken > 0) comparison.compare(place);
    }
}

__global__ void __launch_bounds__(block_threads, blocks_at_a_time)
    compare_kernel(const TextStep step, const TextsView texts, const TextQueries queries, const TextLaunch launch)
{
    extern __shared__ __align__(1024) std::uint32_t table[];
    __shared__ std::uint32_t bins[33];
    __shared__ std::uint32_t waiting[block_warps][64];
    const bool is_near = step == TextStep::near;
    const std::uint32_t at = launch.first + blockIdx.y;
    const Query query(queries, is_near || queries.rest == nullptr ? at : queries.rest[at]);
    Comparison comparison(texts, queries, query, table);
    const std::uint32_t near = is_near ? near_bound(queries, query) : queries.near[query.number];
    // Blocks share the tiles of a window, which therefore does not follow the limit.
    const std::uint32_t window = is_near ? near : queries.windows[query.number];
    if (is_near && threadIdx.x == 0) queries.near[query.number] = near;
    // Every text within the limit was near.
    if (!is_near && window <= near) return;
    count_characters(texts, query.ids, query.length, bins);
    fill_masks(query.ids, query.length, table);
    __syncthreads();
    const TextTiles tiles = tiles_of_warp(texts, query, window, launch.part, launch.parts);
    compare_tiles(texts, query, read_counts(bins), is_near ? 0 : near + 1, is_near ? near : all_lanes, tiles,
                  comparison, waiting[threadIdx.x / 32]);
}

// Finds the digit at which the sum of counts reaches `rank`, which becomes the rank among the keys with that digit. By
// the first warp, eight digits a lane.
__device__ std::uint32_t find_digit(const std::uint32_t* of_digit, std::uint32_t& rank)
{
    const std::uint32_t lane = threadIdx.x;
    std::uint32_t own = 0;
    for (std::uint32_t i = 0; i < 8; ++i) own += of_digit[8 * lane + i];
    std::uint32_t sum = own;
    for (std::uint32_t step = 1; step < 32; step *= 2) {
        const std::uint32_t lower = __shfl_up_sync(all_lanes, sum, step);
        if (lane >= step) sum += lower;
    }
    const std::uint32_t finder = __ffs(__ballot_sync(all_lanes, sum >= rank)) - 1;
    std::uint32_t digit = 8 * lane;
    std::uint32_t left = rank - (sum - own);
    if (lane == finder) {
        for (; of_digit[digit] < left; ++digit) left -= of_digit[digit];
    }
    rank = __shfl_sync(all_lanes, left, finder);
    return __shfl_sync(all_lanes, digit, finder);
}

// Finds the k-th of `count` different keys by their digits of 8 bits, from the first on. Called by all threads of a
// block.
__device__ std::uint64_t find_kth_key(const std::uint64_t* keys, std::uint32_t count, std::uint32_t k)
{
    __shared__ std::uint32_t of_digit[256];
    __shared__ std::uint32_t chosen;
    std::uint64_t prefix = 0;
    std::uint32_t rank = k;  // in the first warp: among the keys that begin with `prefix`
    for (int shift = 40; shift >= 0; shift -= 8) {
        of_digit[threadIdx.x] = 0;
        __syncthreads();
        for (std::uint32_t i = threadIdx.x; i < count; i += block_threads) {
            const std::uint64_t key = __ldcg(keys + i);
            if (key >> (shift + 8) == prefix) atomicAdd(&of_digit[key >> shift & 255], 1U);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            const std::uint32_t digit = find_digit(of_digit, rank);
            if (threadIdx.x == 0) chosen = digit;
        }
        __syncthreads();
        prefix = prefix << 8 | chosen;
    }
    return prefix;
}

__global__ void __launch_bounds__(block_threads) finish_kernel(const TextQueries queries, const Answers answers)
{
    static_assert(block_threads == 256);
    __shared__ std::uint32_t written;
    const std::uint32_t query = blockIdx.x;
    const std::uint64_t* const keys = queries.keys + std::size_t{query} * queries.capacity;
    const std::uint32_t count = queries.found[query];
    if (count > queries.capacity) {
        if (threadIdx.x == 0) answers.found[query] = no_answer;
        return;
    }
    if (threadIdx.x == 0) {
        written = 0;
        answers.found[query] = min(count, queries.k);
    }
    const std::uint64_t last = count > queries.k ? find_kth_key(keys, count, queries.k) : ~std::uint64_t{0};
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count; i += block_threads) {
        const std::uint64_t key = __ldcg(keys + i);
        if (key > last) continue;
        const std::size_t at = std::size_t{query} * queries.k + atomicAdd(&written, 1U);
        answers.values[at] = static_cast<double>(key >> 32);
        answers.rows[at] = static_cast<std::uint32_t>(key);
    }
}

// Slices of each of `count` queries, for a launch of some waves of blocks.
std::uint32_t slices_of(const Context& context, const TextsView& texts, std::uint32_t count)
{
    const std::uint32_t blocks = static_cast<std::uint32_t>(context.multiprocessors()) * blocks_at_a_time * block_waves;
    const std::uint32_t most = std::min(most_slices, texts.count / (32 * block_warps) + 1);
    return std::clamp((blocks + count - 1) / count, 1U, most);
}

}  // namespace

void prepare_text_queries(const TextQueries& queries, cudaStream_t stream)
{
    const std::size_t count = queries.count;
    const auto clear = [&](void* memory, int value, std::size_t bytes) {
        check(cudaMemsetAsync(memory, value, bytes, stream), "clearing results");
    };
    clear(queries.found, 0, count * sizeof(queries.found[0]));
    clear(queries.of_distance, 0, count * TextQueries::distances * sizeof(queries.of_distance[0]));
    clear(queries.of_bound, 0, count * TextQueries::bounds * sizeof(queries.of_bound[0]));
    clear(queries.last_keys, 0xff, count * sizeof(queries.last_keys[0]));
    clear(queries.keys, 0xff, count * queries.capacity * sizeof(queries.keys[0]));
    check(cudaMemcpyAsync(queries.limits, queries.reach, count * sizeof(queries.limits[0]), cudaMemcpyDeviceToDevice,
                          stream),
          "setting limits");
}

void set_windows(const TextQueries& queries, cudaStream_t stream)
{
    check(cudaMemcpyAsync(queries.windows, queries.limits, queries.count * sizeof(queries.limits[0]),
                          cudaMemcpyDeviceToDevice, stream),
          "setting windows");
}

void survey_texts(const Context& context, const TextsView& texts, const TextQueries& queries, cudaStream_t stream)
{
    const dim3 grid(std::min(slices_of(context, texts, queries.count), 16U), queries.count);
    survey_kernel<<<grid, block_threads, 0, stream>>>(texts, queries);
    check_launch("survey_texts");
}

void compare_texts(const Context& context, TextStep step, const TextsView& texts, const TextQueries& queries,
                   const TextLaunch& launch, std::uint32_t longest, cudaStream_t stream)
{
    const dim3 grid(slices_of(context, texts, launch.count), launch.count);
    compare_kernel<<<grid, block_threads, mask_bytes(longest), stream>>>(step, texts, queries, launch);
    check_launch("compare_texts");
}

void finish_texts(const TextQueries& queries, const Answers& answers, cudaStream_t stream)
{
    finish_kernel<<<queries.count, block_threads, 0, stream>>>(queries, answers);
    check_launch("finish_texts");
}

}  // namespace pgwarp::cuda
