// What kernels see of resident rows and of prepared queries: plain pointers to device memory.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "numeric/metric.h"
#include "rows/layout.h"

namespace pgwarp::cuda::rows
{

// Rows as halves: fp16 of (x - mean) * scale, as numeric/half_codec.h stores them.
struct HalfView {
    const __half* rows = nullptr;  // [positions][half_stride]
    const float* mean = nullptr;   // [dimensions]
    float scale = 1;
    float error = 0;  // largest distance of a row from its half form
};

// Rows as product-quantized residuals.
struct CodeView {
    const std::uint8_t* codes = nullptr;     // interleaved, see code_offset()
    const float* codebooks = nullptr;        // part after part, [256][width of the part]
    const __half* half_codebooks = nullptr;  // the same times half_scale
    const std::uint16_t* part_of = nullptr;  // [dimensions]: the part that a dimension is in
    const float* rotation = nullptr;         // [dimensions][dimensions] or none
    const std::uint8_t* signs = nullptr;     // of a rotation by numeric/hadamard.h, or none
    float half_scale = 1;
    std::uint32_t subquantizers = 0;
    std::uint32_t code_groups = 0;
};

// Rows whose values are computed from page-locked host memory, read over the bus: at most one of the two.
struct RemoteView {
    const __half* halves = nullptr;  // [rows][stride] in row order, as HalfView has them
    const float* full = nullptr;     // [rows][stride] in row order
    std::uint32_t stride = 0;        // elements, whole pieces of 16 bytes
};

// Rows as residuals in bytes: scale of the row * (byte - 128).
struct ByteView {
    const std::uint8_t* rows = nullptr;  // [positions][stride], see byte_place()
    const float* scales = nullptr;       // [positions], 0 in padding
    std::uint32_t stride = 0;            // byte_stride(dimensions)
};

// The rows of an index in the forms that its mirror keeps; the pointers of other forms are null.
struct ResidentRows {
    Metric metric = Metric::l2;
    std::uint32_t dimensions = 0;
    std::uint32_t stride = 0;  // half_stride(dimensions)
    std::uint32_t positions = 0;
    const std::uint32_t* row_at = nullptr;  // [positions]
    const float* row_terms = nullptr;       // [positions]; a row's part of its score, infinite in padding
    HalfView half;
    CodeView code;
    ByteView byte;
    const float* full = nullptr;  // [rows][dimensions] in row order, where kept on the device
    RemoteView remote;
};

// A few rows as halves, such as centroids or seeds, that all queries are compared with.
struct HalfTable {
    HalfView half;
    const float* terms = nullptr;  // [whole_groups(rows)]; infinite in padding
    std::uint32_t rows = 0;
};

// Score of a query and a row: row_term - multiplier * (query half . row half), up to a summand that all rows share.
struct QueryView {
    const float* original = nullptr;     // [count][dimensions]
    const float* moved = nullptr;        // [count][dimensions] in the space of the scanned rows
    const __half* halves = nullptr;      // [count][stride]: moved times a power of two of its own
    const float* multipliers = nullptr;  // [count]
    const double* norms = nullptr;       // [count], canonical
};

// Batches so small that the kernels of a search are worth chaining (chained_launch.cuh): measured on an H200.
inline constexpr std::uint32_t chained_queries = 2;

}  // namespace pgwarp::cuda::rows
