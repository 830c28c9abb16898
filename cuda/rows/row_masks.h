// Masks of the rows that live and pass predicates, as the matrix kernels read them (RowMasks, distance/proposals.h).
// All rows are tested by 32 predicates at a time: a row's answers are a word, and the words of 32 rows are turned into
// those of 32 masks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/carver.h"
#include "distance/row_order.h"
#include "numeric/host_device.h"
#include "rows/distinct_filters.h"

namespace pgwarp::cuda::rows
{

// The rows whose masks are made: padded_positions is a multiple of 128, and dead has a bit for each row, or is null.
struct MaskedRows {
    RowOrder order;
    std::uint32_t padded_positions = 0;
    const std::uint64_t* dead = nullptr;

    // Words of a mask.
    PGWARP_HOST_DEVICE std::uint32_t width() const { return padded_positions / 32; }
};

// The first five are written on the host, and lie at the front of the memory.
struct MaskSpace {
    std::byte* filters;
    std::uint32_t* ranged;   // [groups]
    std::uint32_t* tested;   // [groups]
    RangeTerm* ranges;       // [predicates]
    std::uint32_t* of_slot;  // [slots]
    std::size_t written;     // bytes of these
    std::uint32_t* live;     // [width]
    std::uint16_t* codes;    // [tables][padded_positions], in the order of the masks' bits
    std::uint32_t* answers;  // [groups][entries]
    std::uint32_t* words;    // [predicates][width]
};

// slots: the queries, padded. sent_alone: only what the host writes.
MaskSpace take_mask_space(Carver& memory, const DistinctFilters& filters, std::uint32_t padded_positions,
                          std::uint32_t slots, bool sent_alone);
// Writes what is sent. Slots behind the queries get the first mask.
void write_masks(const DistinctFilters& filters, std::uint32_t slots, const MaskSpace& host, ThreadPool& pool);
// Makes the masks, in launches of less than 2 ms of an H100 each. Asynchronous. Throws CudaError.
void make_masks(const MaskedRows& rows, const AttributeView& attributes, const DistinctFilters& filters,
                const MaskSpace& space, int multiprocessors, cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
