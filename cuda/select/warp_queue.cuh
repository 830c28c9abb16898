// The k smallest candidates of a stream, kept in the registers of one warp: WarpSelect of "Billion-scale similarity
// search with GPUs", section 4, with one buffer for the warp in place of one queue for each lane. Candidates below the
// k-th best are appended to the buffer; 32 of them are sorted and merged into the sorted queue by a bitonic network. So
// a push mostly costs a comparison and a vote, and a full buffer never waits for its emptiest lane.
//
//     __shared__ WarpQueue<32>::Shared shared[warps];
//     WarpQueue<32> queue(shared[warp], k);
//     for (...) queue.push(score, id);            // one candidate a lane, all 32 lanes together; or push_each
//     queue.write(scores, ids);                   // k values, ascending; +infinity and padding_id where fewer came
//
// Order: score, ties by smaller id; the order of pushes does not matter. NaN and +infinity never enter, so a lane
// without a candidate pushes +infinity. All 32 lanes must call every member function, converged. Registers: two for
// each 32 of capacity in each lane, and about ten more.
#pragma once

#include <cmath>
#include <cstdint>

#include "select/key.cuh"
#include "select/pick.cuh"

namespace pgwarp::cuda
{

namespace detail
{

constexpr unsigned full_warp = 0xffffffffu;

// Keeps the smaller of the lane's key and its partner's where `low`, else the larger.
__device__ __forceinline__ void compare_exchange(SelectKey& key, int distance, bool low)
{
    const SelectKey other = __shfl_xor_sync(full_warp, key, distance);
    if ((other < key) == low) key = other;
}

__device__ __forceinline__ void sort_warp_descending(SelectKey& key, int lane)
{
#pragma unroll
    for (int run = 2; run <= 32; run *= 2) {
#pragma unroll
        for (int distance = run / 2; distance > 0; distance /= 2) {
            const bool descending = run == 32 || (lane & run) == 0;
            compare_exchange(key, distance, ((lane & distance) == 0) != descending);
        }
    }
}

}  // namespace detail

// capacity: 32, 64, 128 or 256. k <= capacity.
template <int capacity>
class WarpQueue
{
    static constexpr int registers = capacity / 32;
    static_assert(capacity >= 32 && (capacity & (capacity - 1)) == 0, "a bitonic network needs a power of two");

public:
    struct Shared {
        SelectKey buffer[64];
    };

    __device__ __forceinline__ WarpQueue(Shared& shared, int k)
        : buffer_(shared.buffer), k_(k), lane_(static_cast<int>(threadIdx.x) % 32)
    {
#pragma unroll
        for (int i = 0; i < registers; i++) queue_[i] = padding_key;
    }

    // Candidates with a larger score cannot enter, so callers may skip push where no lane has a score at or below it.
    // Equal in all lanes; FLT_MAX until k candidates were merged.
    __device__ __forceinline__ float bound() const
    {
        return bound_;
    }

    // Optional, before several candidates are pushed by each lane: `smallest` is the lane's smallest score. The k-th
    // smallest of the 32 lanes bounds the result from above, so most of a first tile is never merged. Does nothing for
    // k > 32.
    __device__ __forceinline__ void prime(float smallest)
    {
        if (k_ > 32) return;
        SelectKey key = smallest <= FLT_MAX ? make_key(smallest, padding_id) : padding_key;
        detail::sort_warp_descending(key, lane_);
        // One above, so that ties of any id can enter.
        threshold_ = min(threshold_, __shfl_sync(detail::full_warp, key, 32 - k_) + 1);
        bound_ = key_bound(threshold_);
    }

    __device__ __forceinline__ void push(float score, std::uint32_t id)
    {
        const bool near = score <= bound_;
        if (!__any_sync(detail::full_warp, near)) return;
        append(near, make_key(score, id));
    }

    // Pushes several candidates of each lane (a power of two, at most 32), of which few enter. Separate calls of push
    // would repeat the code of the merge as often. id_of(i) gives the id of scores[i]; it is called only where
    // scores[i] may enter.
    template <int count, class IdOf>
    __device__ __forceinline__ void push_each(const float (&scores)[count], IdOf id_of)
    {
        unsigned near = 0;
#pragma unroll
        for (int i = 0; i < count; i++)
            if (scores[i] <= bound_) near |= 1u << i;
        while (__any_sync(detail::full_warp, near != 0)) {
            float score = INFINITY;
            std::uint32_t id = padding_id;
            if (near != 0) {
                const unsigned i = __ffs(static_cast<int>(near)) - 1;
                score = pick(scores, i);
                id = id_of(i);
                near &= near - 1;
            }
            append(score <= bound_, make_key(score, id));
        }
    }

    // Pushes a packed candidate, for merging the queues of a block's warps. padding_key: no candidate.
    __device__ __forceinline__ void push_key(SelectKey key)
    {
        if (!__any_sync(detail::full_warp, key < threshold_)) return;
        append(true, key);
    }

    // Merges the buffered candidates. bound() is then the k-th best score so far.
    __device__ __forceinline__ void flush()
    {
        if (count_ > 0) merge(count_);
    }

    // Writes the k smallest, ascending.
    __device__ __forceinline__ void write(float* scores, std::uint32_t* ids)
    {
        for_each([&](int rank, SelectKey key) {
            scores[rank] = key_score(key);
            ids[rank] = key_id(key);
        });
    }

    __device__ __forceinline__ void write_keys(SelectKey* keys)
    {
        for_each([&](int rank, SelectKey key) { keys[rank] = key; });
    }

    // Flushes, then calls visit(rank, key) for every rank below k, in the lane that holds it.
    template <class Visit>
    __device__ __forceinline__ void for_each(Visit visit)
    {
        flush();
#pragma unroll
        for (int i = 0; i < registers; i++)
            if (32 * i + lane_ < k_) visit(32 * i + lane_, queue_[i]);
    }

private:
    // `near` excludes NaN and +infinity, whose keys are not valid.
    __device__ __forceinline__ void append(bool near, SelectKey key)
    {
        const bool enters = near && key < threshold_;
        const unsigned mask = __ballot_sync(detail::full_warp, enters);
        if (enters) buffer_[count_ + __popc(mask & ((1u << lane_) - 1u))] = key;
        count_ += __popc(mask);
        if (count_ >= 32) merge(32);
    }

    // Merges the last `taken` keys of the buffer into the queue.
    __device__ __forceinline__ void merge(int taken)
    {
        __syncwarp();
        count_ -= taken;
        SelectKey key = lane_ < taken ? buffer_[count_ + lane_] : padding_key;
        __syncwarp();
        detail::sort_warp_descending(key, lane_);
        // An ascending run of `capacity` meets a descending one that is padding except for its last 32 keys: the
        // smaller keys of the pairs are the smallest of both, as a bitonic sequence.
        queue_[registers - 1] = min(queue_[registers - 1], key);
        sort_bitonic();
        update_threshold();
    }

    __device__ __forceinline__ void sort_bitonic()
    {
#pragma unroll
        for (int distance = registers / 2; distance > 0; distance /= 2) {
#pragma unroll
            for (int i = 0; i < registers; i++) {
                if ((i & distance) != 0) continue;
                const SelectKey low = min(queue_[i], queue_[i + distance]);
                queue_[i + distance] = max(queue_[i], queue_[i + distance]);
                queue_[i] = low;
            }
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
            for (int i = 0; i < registers; i++) detail::compare_exchange(queue_[i], distance, (lane_ & distance) == 0);
        }
    }

    __device__ __forceinline__ void update_threshold()
    {
        SelectKey last = queue_[0];  // the lane's last key of a rank below k, without indexing of registers
#pragma unroll
        for (int i = 1; i < registers; i++)
            if (32 * i + lane_ <= k_ - 1) last = queue_[i];
        threshold_ = min(threshold_, __shfl_sync(detail::full_warp, last, (k_ - 1) % 32));
        bound_ = key_bound(threshold_);
    }

    SelectKey* buffer_;
    SelectKey queue_[registers];  // ascending: rank 32 * i + lane is in queue_[i]
    SelectKey threshold_ = padding_key;
    float bound_ = FLT_MAX;
    int count_ = 0;
    int k_;
    int lane_;
};

}  // namespace pgwarp::cuda
