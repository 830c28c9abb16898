// The device pointers to resident rows and prepared queries that kernels take.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "numeric/metric.h"
#include "rows/layout.h"

namespace pgwarp::cuda::rows
{

// Rows as halves: fp16 of (x - mean) * scale (numeric/half_codec.h).
struct HalfView {
    const __half* rows = nullptr;  // [positions][half_stride]
    const float* mean = nullptr;   // [dimensions]
    float scale = 1;
    float error = 0;  // largest distance of a row from its half form
};

// Rows as product-quantized residuals.
struct CodeView {
    const std::uint8_t* codes = nullptr;     // interleaved, by code_offset()
    const float* codebooks = nullptr;        // part after part, [256][width of the part]
    const __half* half_codebooks = nullptr;  // the codebooks times half_scale
    const std::uint16_t* part_of = nullptr;  // [dimensions]: the part of each dimension
    const float* rotation = nullptr;         // [dimensions][dimensions] or none
    const std::uint8_t* signs = nullptr;     // of a rotation by numeric/hadamard.h, or none
    float half_scale = 1;
    std::uint32_t subquantizers = 0;
    std::uint32_t code_groups = 0;
};

// Rows in page-locked host memory, read over the bus, from which values are computed. At most one of the two is not
// null.
struct RemoteView {
    const __half* halves = nullptr;  // [rows][stride] in row order, encoded as in HalfView
    const float* full = nullptr;     // [rows][stride] in row order
    std::uint32_t stride = 0;        // elements; rows are padded to 16 bytes
};

// Rows as residuals in bytes: scale of the row * (byte - 128).
struct ByteView {
    const std::uint8_t* rows = nullptr;  // [positions][stride], by byte_place()
    const float* scales = nullptr;       // [positions], 0 in padding
    std::uint32_t stride = 0;            // byte_stride(dimensions)
};

// The rows of an index in the forms that its mirror keeps. The pointers of other forms are null.
struct ResidentRows {
    Metric metric = Metric::l2;
    std::uint32_t dimensions = 0;
    std::uint32_t stride = 0;  // half_stride(dimensions)
    std::uint32_t positions = 0;
    const std::uint32_t* row_at = nullptr;  // [positions]
    const float* row_terms = nullptr;       // [positions]; the row's summand of its scores, infinite in padding
    HalfView half;
    CodeView code;
    ByteView byte;
    const float* full = nullptr;  // [rows][dimensions] in row order; null where not kept on the device
    RemoteView remote;
};

// A few rows as halves, such as centroids or seeds, that are compared with all queries.
struct HalfTable {
    HalfView half;
    const float* terms = nullptr;  // [whole_groups(rows)]; infinite in padding
    std::uint32_t rows = 0;
};

// Queries prepared for a scan. score = row_term - multiplier * (query half . row half), up to a summand common to all
// rows.
struct QueryView {
    const float* original = nullptr;     // [count][dimensions]
    const float* moved = nullptr;        // [count][dimensions] in the space of the scanned rows
    const __half* halves = nullptr;      // [count][stride]: the moved query times a power of two of its own
    const float* multipliers = nullptr;  // [count]
    const double* norms = nullptr;       // [count], canonical
};

// The largest batch for which chained launches (chained_launch.cuh) pay off: measured on an H200.
inline constexpr std::uint32_t chained_queries = 2;

}  // namespace pgwarp::cuda::rows
