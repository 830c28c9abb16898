// What kernels see of a mirror, of prepared queries and of the probes of a batch: plain pointers to device memory.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/layout.h"
#include "numeric/metric.h"

namespace pgwarp::cuda::ivfadc
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
    const float* vectors = nullptr;  // [rows][stride] in row order
    std::uint32_t stride = 0;        // elements, whole pieces of 16 bytes
};

// Rows as residuals in bytes: scale of the row * (byte - 128).
struct ByteView {
    const std::uint8_t* rows = nullptr;  // [positions][stride], see byte_place()
    const float* scales = nullptr;       // [positions], 0 in padding
    std::uint32_t stride = 0;            // byte_stride(dimensions)
};

struct MirrorView {
    Metric metric = Metric::l2;
    std::uint32_t dimensions = 0;
    std::uint32_t stride = 0;  // half_stride(dimensions)
    std::uint32_t lists = 0;
    std::uint32_t positions = 0;
    const std::uint32_t* list_begin = nullptr;   // [lists]
    const std::uint32_t* list_length = nullptr;  // [lists]
    const std::uint32_t* row_at = nullptr;       // [positions]
    const float* row_terms = nullptr;            // [positions]; a row's part of its score, infinite in padding
    const float* centroids = nullptr;            // [lists][dimensions]
    HalfView centre;                             // the centroids as halves
    const float* centre_terms = nullptr;         // [whole_groups(lists)]
    bool scans_codes = false;                    // rows are scanned as codes ...
    bool scans_bytes = false;                    // ... or as bytes, else as halves
    HalfView half;
    CodeView code;
    ByteView byte;
    const float* vectors = nullptr;  // [rows][dimensions] in row order, where kept on the device
    RemoteView remote;

    // What is scanned is relative to the lists' centroids.
    PGWARP_HOST_DEVICE bool scans_residuals() const { return scans_codes || scans_bytes; }
    // Values are computed from residuals too: there is nothing better.
    PGWARP_HOST_DEVICE bool values_of_residuals() const
    {
        return vectors == nullptr && half.rows == nullptr && remote.halves == nullptr && remote.vectors == nullptr;
    }
};

// Score of a query and a row: row_term - multiplier * (query half . row half), up to what is the same for all rows.
struct QueryView {
    const float* original = nullptr;     // [count][dimensions]
    const float* moved = nullptr;        // [count][dimensions] in the space of the scanned rows
    const __half* halves = nullptr;      // [count][stride]: moved times a power of two of its own
    const float* multipliers = nullptr;  // [count]
    const double* norms = nullptr;       // [count], canonical
};

// Batches so small that the kernels of a search are worth chaining (chained_launch.cuh): measured on an H200.
inline constexpr std::uint32_t chained_queries = 2;

// The lists that each query probes, nearest first. Slots number the positions of a query's lists one after the other.
struct ProbeView {
    std::uint32_t probes = 0;
    const std::uint32_t* list = nullptr;   // [count][probes]
    const std::uint32_t* slot = nullptr;   // [count][probes]: first slot of the list
    const float* constant = nullptr;       // [count][probes]: to be added to the scores of the list's rows
    const std::uint32_t* slots = nullptr;  // [count]: all slots of the query
    // Of each group of 32 slots [count][group_stride], where wanted: its first position, the constant of its list.
    const std::uint32_t* group_position = nullptr;
    const float* group_constant = nullptr;
    std::size_t group_stride = 0;
};

}  // namespace pgwarp::cuda::ivfadc
