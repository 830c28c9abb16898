// The results of a query while it is searched, which the warps of several blocks append to. The limits only fall, and
// never below the k-th result.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "matchcount/text_view.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t all_lanes = 0xffffffff;

class TextResults
{
public:
    __device__ TextResults(const TextQueries& queries, std::uint32_t query) : queries_(queries), query_(query) {}

    // The same for all lanes of a warp, which call it.
    __device__ std::uint32_t limit() const { return __shfl_sync(all_lanes, __ldcg(queries_.limits + query_), 0); }

    // Takes the results of the lanes that offer one. Called by all lanes of a warp.
    __device__ void take(bool offers, std::uint32_t distance, std::uint32_t row)
    {
        const std::uint64_t key = std::uint64_t{distance} << 32 | row;
        const std::uint32_t most = limit();
        const bool taken =
            offers && distance <= most && key >= queries_.first_keys[query_] && key <= __ldcg(last_key());
        const std::uint32_t who = __ballot_sync(all_lanes, taken);
        if (who == 0) return;
        const std::uint32_t lane = threadIdx.x % 32;
        std::uint32_t before = 0;
        if (lane == 0) before = atomicAdd(queries_.found + query_, static_cast<std::uint32_t>(__popc(who)));
        before = __shfl_sync(all_lanes, before, 0);
        const std::uint32_t at = before + __popc(who & ((1U << lane) - 1));
        if (taken) {
            if (at < queries_.capacity) __stcg(keys() + at, key);
            if (distance < TextQueries::distances) atomicAdd(of_distance() + distance, 1U);
        }
        __syncwarp();
        const std::uint32_t within = lower_limit();
        const std::uint32_t step = queries_.capacity / 4;
        const bool many_equal = within > step && before / step != (before + __popc(who)) / step;
        if (many_equal && queries_.k <= most_k_of_warp) lower_last_key();
    }

private:
    static constexpr std::uint32_t most_k_of_warp = 1024;

    __device__ std::uint64_t* keys() const { return queries_.keys + std::size_t{query_} * queries_.capacity; }
    __device__ std::uint32_t* of_distance() const
    {
        return queries_.of_distance + std::size_t{query_} * TextQueries::distances;
    }
    __device__ unsigned long long* last_key() const
    {
        return reinterpret_cast<unsigned long long*>(queries_.last_keys + query_);
    }

    // To the least distance that k results have at most. Returns the number of those results.
    __device__ std::uint32_t lower_limit()
    {
        const std::uint32_t lane = threadIdx.x % 32;
        const std::uint32_t now = limit();
        std::uint32_t before = 0;
        for (std::uint32_t first = 0; first < TextQueries::distances && first <= now; first += 32) {
            std::uint32_t sum = __ldcg(of_distance() + first + lane);
#pragma unroll
            for (std::uint32_t step = 1; step < 32; step *= 2) {
                const std::uint32_t lower = __shfl_up_sync(all_lanes, sum, step);
                if (lane >= step) sum += lower;
            }
            const std::uint32_t enough = __ballot_sync(all_lanes, before + sum >= queries_.k);
            if (enough != 0) {
                const std::uint32_t least = first + __ffs(enough) - 1;
                if (lane == 0 && least < now) atomicMin(queries_.limits + query_, least);
                return before + __shfl_sync(all_lanes, sum, __ffs(enough) - 1);
            }
            before += __shfl_sync(all_lanes, sum, 31);
        }
        return 0;
    }

    // To the k-th key of those that were written: where very many results have one distance, only the first rows count.
    __device__ void lower_last_key()
    {
        std::uint64_t least = 0;  // the k-th key is at least this, and less than `most`
        std::uint64_t most = std::uint64_t{1} << 48;
        while (most - least > 1) {
            const std::uint64_t middle = (least + most) / 2;
            std::uint32_t smaller = 0;
            for (std::uint32_t i = threadIdx.x % 32; i < queries_.capacity; i += 32)
                smaller += __ldcg(keys() + i) < middle;
            smaller = warp_sum(smaller);
            (smaller >= queries_.k ? most : least) = middle;
        }
        if (threadIdx.x % 32 == 0) atomicMin(last_key(), static_cast<unsigned long long>(least));
    }

    const TextQueries& queries_;
    std::uint32_t query_;
};

}  // namespace pgwarp::cuda
