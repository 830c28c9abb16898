// The order of postings within a list. Those of each section of 2^14 rows are together, so that a part of the range can
// be cut out. Counting reads them in vectors of eight, a vector a lane; so within a section the vectors of 32 lanes get
// rows whose counters lie in different banks of shared memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace pgwarp::cuda::matchcount
{

inline constexpr std::uint32_t vector_postings = 8;
inline constexpr std::uint32_t section_rows = 1U << 14;

// Writes the postings of lists [0, lists) of a range from rows[], which is in the order of keyword and row, to
// list_array + start. List i is [positions[i], positions[i + 1]) of both. All device memory; list_array is aligned to
// 512 bytes. The order depends only on the input. Asynchronous.
void order_by_banks(const std::uint16_t* rows, const std::uint32_t* positions, std::uint32_t lists,
                    std::uint16_t* list_array, std::uint64_t start, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
