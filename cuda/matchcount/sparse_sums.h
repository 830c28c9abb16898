// The part of scores that comes from lists: for each pair of a query and a position a byte, rounded upwards
// (sparse_form.h). A warp adds up the postings of one query in one slice, in shared memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/context.h"
#include "matchcount/sparse_form.h"

namespace pgwarp::cuda::matchcount
{

// In device memory.
struct SparseListsView {
    std::uint32_t lists = 0;
    std::uint32_t slice = 0;                // positions
    std::uint32_t slices = 0;               // of the index
    const std::uint32_t* starts = nullptr;  // [slices][lists + 1], of quads
    const uint4* quads = nullptr;           // of postings, see sparse_form.h
};

// The lists of queries, in device memory. The query of a slot has the items [begins[slot], begins[slot] +
// counts[slot]).
struct SparseItems {
    std::uint32_t slots = 0;
    const std::uint32_t* begins = nullptr;
    const std::uint32_t* counts = nullptr;
    const ListItem* items = nullptr;
};

// Shared memory of a block.
std::size_t sum_shared_bytes(std::uint32_t slice);

// bytes[slot][place]: of slices [first, first + count) of the index. width: of a slot in `bytes`. Asynchronous. Throws
// CudaError.
void sum_lists(const SparseListsView& lists, const SparseItems& items, std::uint32_t first, std::uint32_t count,
               std::uint8_t* bytes, std::uint32_t width, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
