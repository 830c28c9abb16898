// Selection from one row, or a part of one, by one block. A sample gives a threshold, one pass collects the keys at or
// below it in shared memory, and radix selection and a bitonic sort finish. The pass has no barrier: warps stream
// independently. Where the threshold was too low, or too high for the buffer, a slower pass follows that cannot fail:
// it cuts a full buffer back to about the k smallest keys, which lowers the threshold to the exact one so far.
#include <cuda_runtime.h>

#include "device/error.h"
#include "device/shared_memory.h"
#include "select/block_sort.cuh"
#include "select/kernels.h"
#include "select/pick.cuh"
#include "select/sample.cuh"

namespace pgwarp::cuda
{
namespace
{

constexpr int threads = 256;
constexpr int vectors = 4;  // of four scores, for each thread and tile
constexpr int scores_per_thread = 4 * vectors;
constexpr int tile_vectors = threads * vectors;

struct BlockShared {
    RankShared rank;
    unsigned count;  // candidates offered since the last cut; may exceed the capacity
};

// Cuts a full buffer back to about the k smallest keys and returns their bound.
__device__ __noinline__ SelectKey cut(SelectKey* keys, unsigned capacity, unsigned k, BlockShared& shared)
{
    const unsigned most = k + k / 4;
    const RankBound ranked = find_rank<threads>(shared.rank, k, most, [&](auto visit) {
        for (unsigned i = threadIdx.x; i < capacity; i += threads) visit(keys[i]);
    });
    const unsigned kept = keep_ranked<threads>(keys, capacity, ranked, most, &shared.count);
    if (threadIdx.x == 0) shared.count = kept;
    __syncthreads();
    return ranked.bound;
}

// The candidates of a block in shared memory.
template <bool with_ids>
class Candidates
{
public:
    __device__ Candidates(SelectKey* keys, unsigned capacity, unsigned k, BlockShared& shared)
        : keys_(keys), capacity_(capacity), k_(k), shared_(shared)
    {
    }

    // Called by all threads. threshold: inclusive.
    __device__ void start(SelectKey threshold)
    {
        set_threshold(threshold);
        __syncthreads();
        if (threadIdx.x == 0) shared_.count = 0;
        __syncthreads();
    }

    // Offers the scores at `position` + 4 * threads * i + j of the row. Called by all threads.
    __device__ __forceinline__ void offer(const float (&scores)[scores_per_thread], const RowSpan<with_ids>& row,
                                          std::uint32_t position)
    {
        unsigned dropped = 0;
        float nearest = scores[0];
#pragma unroll
        for (int i = 1; i < scores_per_thread; i++) nearest = fminf(nearest, scores[i]);
        if (nearest <= bound_) dropped = append(scores, row, position, 0xffff);
        while (__syncthreads_or(dropped != 0)) {
            set_threshold(cut(keys_, capacity_, k_, shared_));
            if (dropped != 0) dropped = append(scores, row, position, dropped);
        }
    }

    __device__ unsigned count() const
    {
        return min(shared_.count, capacity_);
    }

private:
    __device__ void set_threshold(SelectKey threshold)
    {
        threshold_ = threshold;
        bound_ = key_bound(threshold);
    }

    // Appends those of `offered` that pass. Returns those that found no room.
    __device__ __forceinline__ unsigned append(const float (&scores)[scores_per_thread], const RowSpan<with_ids>& row,
                                               std::uint32_t position, unsigned offered)
    {
        unsigned below = 0, equal = 0;
#pragma unroll
        for (int i = 0; i < scores_per_thread; i++) {
            below |= scores[i] < bound_ ? 1u << i : 0u;
            equal |= scores[i] == bound_ ? 1u << i : 0u;
        }
        const unsigned passing = (below | equal) & offered;
        if (passing == 0) return 0;
        if ((equal & offered) != 0) return append_exactly(scores, row, position, passing);
        unsigned slot = atomicAdd(&shared_.count, static_cast<unsigned>(__popc(passing)));
        unsigned dropped = 0;
#pragma unroll
        for (int i = 0; i < scores_per_thread; i++) {
            if ((passing & (1u << i)) == 0) continue;
            if (slot < capacity_)
                keys_[slot] = make_key(scores[i], row.id(place(position, i)));
            else
                dropped |= 1u << i;
            slot++;
        }
        return dropped;
    }

    // Appends with a comparison of ids where scores equal the bound.
    __device__ __forceinline__ unsigned append_exactly(const float (&scores)[scores_per_thread],
                                                       const RowSpan<with_ids>& row, std::uint32_t position,
                                                       unsigned passing)
    {
        unsigned dropped = 0;
#pragma unroll
        for (int i = 0; i < scores_per_thread; i++) {
            if ((passing & (1u << i)) == 0) continue;
            const SelectKey key = make_key(scores[i], row.id(place(position, i)));
            if (key > threshold_) continue;
            const unsigned slot = atomicAdd(&shared_.count, 1u);
            if (slot < capacity_)
                keys_[slot] = key;
            else
                dropped |= 1u << i;
        }
        return dropped;
    }

    static __device__ __forceinline__ std::uint32_t place(std::uint32_t position, int i)
    {
        return position + i / 4 * (4 * threads) + i % 4;
    }

    SelectKey* keys_;
    const unsigned capacity_, k_;
    BlockShared& shared_;
    SelectKey threshold_;
    float bound_;
};

template <bool with_ids>
__device__ void collect(Candidates<with_ids>& candidates, const RowSpan<with_ids>& row)
{
    const std::uint32_t all = (row.end() + 3) / 4;
    for (std::uint32_t first = 0; first < all; first += tile_vectors) {
        float scores[scores_per_thread];
        row.load_tile(scores, first + threadIdx.x, threads);
        candidates.offer(scores, row, 4 * (first + threadIdx.x));
    }
}

// Appends those of `passing` whose ids are at most the threshold's id. All of them have the threshold's score. False
// when the buffer is full.
template <bool with_ids, class KeyAt>
__device__ __forceinline__ bool append_ties(unsigned passing, SelectKey threshold, KeyAt key_at, SelectKey* keys,
                                            unsigned capacity, unsigned* count)
{
    bool fits = true;
    for (; passing != 0; passing &= passing - 1) {
        const SelectKey key = key_at(__ffs(static_cast<int>(passing)) - 1);
        if (key > threshold) {
            if constexpr (with_ids) continue;
            break;  // columns ascend
        }
        const unsigned slot = atomicAdd(count, 1u);
        if (slot < capacity)
            keys[slot] = key;
        else
            fits = false;
    }
    return fits;
}

// Appends the keys at or below the threshold. False when the buffer is full.
template <bool with_ids>
__device__ __forceinline__ bool append_quickly(const float (&scores)[scores_per_thread], const RowSpan<with_ids>& row,
                                               std::uint32_t position, SelectKey threshold, SelectKey* keys,
                                               unsigned capacity, unsigned* count)
{
    const float bound = key_bound(threshold);
    float nearest = scores[0];
#pragma unroll
    for (int i = 1; i < scores_per_thread; i++) nearest = fminf(nearest, scores[i]);
    if (!(nearest <= bound)) return true;
    unsigned below = 0, equal = 0;
#pragma unroll
    for (int i = 0; i < scores_per_thread; i++) {
        below |= scores[i] < bound ? 1u << i : 0u;
        equal |= scores[i] == bound ? 1u << i : 0u;
    }
    const auto key_at = [&](unsigned i) {
        return make_key(pick(scores, i), row.id(position + i / 4 * (4 * threads) + i % 4));
    };
    // No tie of a larger id passes: the number of keys tells whether the threshold was high enough.
    const bool fits = append_ties<with_ids>(equal, threshold, key_at, keys, capacity, count);
    if (below == 0) return fits;
    unsigned slot = atomicAdd(count, static_cast<unsigned>(__popc(below)));
    if (slot + __popc(below) > capacity) return false;
    for (; below != 0; below &= below - 1) keys[slot++] = key_at(__ffs(static_cast<int>(below)) - 1);
    return fits;
}

// One pass with a fixed threshold. Returns the number of keys that passed, which exceeds the capacity where they did
// not fit. Called by all threads. Each thread loads the next tile while it works on one.
template <bool with_ids>
__device__ unsigned collect_quickly(const RowSpan<with_ids>& row, SelectKey threshold, SelectKey* keys,
                                    unsigned capacity, unsigned* count)
{
    __syncthreads();
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
    const std::uint32_t all = (row.end() + 3) / 4;
    float even[scores_per_thread], odd[scores_per_thread];
    std::uint32_t vector = threadIdx.x;
    row.load_tile(even, vector, threads);
    bool fits = true;
    for (std::uint32_t first = 0; first < all; first += 2 * tile_vectors, vector += 2 * tile_vectors) {
        row.load_tile(odd, vector + tile_vectors, threads);
        fits = append_quickly(even, row, 4 * vector, threshold, keys, capacity, count);
        row.load_tile(even, vector + 2 * tile_vectors, threads);
        fits = append_quickly(odd, row, 4 * (vector + tile_vectors), threshold, keys, capacity, count) && fits;
        if (!__all_sync(0xffffffffu, fits)) break;
    }
    __syncthreads();
    return *count;
}

template <int sectors, bool with_ids>
__global__ void __launch_bounds__(threads, 4)
    block_select_kernel(SelectInput input, std::uint32_t columns, unsigned k, unsigned splits, unsigned capacity,
                        SampleRank rank, std::int64_t first_part, float* selected_values, std::uint32_t* selected_ids)
{
    extern __shared__ SelectKey keys[];
    __shared__ BlockShared shared;
    const std::int64_t part = first_part + blockIdx.x;
    const auto split = static_cast<std::uint32_t>(part % splits);
    const auto begin = static_cast<std::uint32_t>(static_cast<std::uint64_t>(columns) * split / splits);
    const auto end = static_cast<std::uint32_t>(static_cast<std::uint64_t>(columns) * (split + 1) / splits);
    const RowSpan<with_ids> row(input, part / splits, begin, end - begin);

    SelectKey threshold = padding_key;
    if (rank.lowest > 0) {
        threshold = sample_threshold<threads, sectors>(row, static_cast<std::uint32_t>(part), rank, shared.rank);
        const unsigned count = collect_quickly(row, threshold, keys, capacity, &shared.count);
        if (count <= capacity && (count >= k || threshold == padding_key)) {
            finish_row<threads>(keys, count, k, shared.rank, selected_values + part * k, selected_ids + part * k);
            return;
        }
        if (count < k) threshold = padding_key;
    }
    Candidates<with_ids> candidates(keys, capacity, k, shared);
    while (true) {
        candidates.start(threshold);
        collect(candidates, row);
        if (candidates.count() >= k || threshold == padding_key) break;
        // The sample had too many small scores.
        threshold = padding_key;
        __syncthreads();
    }
    finish_row<threads>(keys, candidates.count(), k, shared.rank, selected_values + part * k, selected_ids + part * k);
}

}  // namespace

namespace detail
{

void select_by_blocks(const SelectOperands& operands, int splits, cudaStream_t stream)
{
    const std::int64_t shortest = operands.columns / splits;
    const unsigned capacity = operands.k > 1024 ? 6144 : 4096;
    // A larger sample lets fewer keys pass, which pays off for large k.
    const int sectors = operands.k > 1024 ? 2 : 1;
    const std::uint32_t sample = 8 * threads * sectors;
    SampleRank rank;
    if (shortest >= 4 * sample) rank = sample_rank(shortest, operands.k, sample);
    const std::size_t shared_bytes = capacity * sizeof(SelectKey);
    const bool with_ids = operands.ids != nullptr;
    const auto kernel = sectors == 2 ? (with_ids ? block_select_kernel<2, true> : block_select_kernel<2, false>)
                                     : (with_ids ? block_select_kernel<1, true> : block_select_kernel<1, false>);
    allow_shared_memory(kernel);
    // Launches read about 5 GB, to stay near a millisecond.
    const std::int64_t parts = operands.rows * splits;
    const std::int64_t parts_per_launch = std::max<std::int64_t>(1, (std::int64_t{1} << 32) * 5 / 16 / (shortest + 1));
    for (std::int64_t first = 0; first < parts; first += parts_per_launch) {
        const auto blocks = static_cast<unsigned>(std::min(parts - first, parts_per_launch));
        kernel<<<blocks, threads, shared_bytes, stream>>>(
            {operands.values, operands.ids, operands.stride}, static_cast<std::uint32_t>(operands.columns),
            static_cast<unsigned>(operands.k), static_cast<unsigned>(splits), capacity, rank, first,
            operands.selected_values, operands.selected_ids);
        check_launch("block_select_kernel");
    }
}

}  // namespace detail
}  // namespace pgwarp::cuda
