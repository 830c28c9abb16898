// Copies of some queries in slots of their own, for a second search.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace pgwarp::cuda::matchcount
{

// What a slot has, in device memory.
struct SparseSlots {
    __half* halves = nullptr;  // [slots][columns]
    float* factors = nullptr;
    float* units = nullptr;
    std::uint32_t* usable = nullptr;
    std::uint32_t* item_begins = nullptr;
    std::uint32_t* item_counts = nullptr;
};

// Slot i gets query ids[i]; slots from `count` to `padded` find nothing. Asynchronous. Throws CudaError.
void gather_slots(const SparseSlots& from, const std::uint32_t* ids, std::uint32_t count, std::uint32_t padded,
                  std::uint32_t columns, const SparseSlots& to, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
