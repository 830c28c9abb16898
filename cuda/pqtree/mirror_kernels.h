// The kernels that lay out the rows of a mirror while it loads. All are asynchronous and throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

// Stored codes on the device (methods/pqtree/pqtree.h): [rows][stride].
struct StoredCodes {
    const std::uint8_t* codes;
    std::size_t rows;
    std::size_t stride;  // 2 * parts + 2 * line_parts
};

struct RowOrder {
    std::uint32_t* row_at;       // [rows]
    std::uint32_t* position_of;  // [rows]
    std::uint32_t* begin;        // [slots + 1]
    std::uint64_t* bin_at;       // [rows] where bins are hashed
};

// Orders rows as BinSlots says (methods/pqtree/tree.h). Sets *fault for a leaf or a line that does not exist.
// slots < 2^32.
void order_rows(Context& context, const TreeView& tree, const BinSlots& slots, const StoredCodes& stored,
                const RowOrder& order, std::uint32_t* fault, cudaStream_t stream);

// Writes the codes and the biases of all positions (view.h). bias_step: of ListsView; lowest_bias is 0.
void place_codes(const TreeView& tree, const StoredCodes& stored, const std::uint32_t* row_at, float bias_step,
                 uint4* codes, std::uint16_t* biases, cudaStream_t stream);

}  // namespace pgwarp::cuda::pqtree
