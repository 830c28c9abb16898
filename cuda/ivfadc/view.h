// What kernels see of a mirror and of the probes of a batch: plain pointers to device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ivfadc/layout.h"
#include "rows/view.h"

namespace pgwarp::cuda::ivfadc
{

// Rows in lists, list-major. Codes and bytes are residuals to the centroid of the row's list.
struct MirrorView : ResidentRows {
    std::uint32_t lists = 0;
    const std::uint32_t* list_begin = nullptr;   // [lists]
    const std::uint32_t* list_length = nullptr;  // [lists]
    const float* centroids = nullptr;            // [lists][dimensions]
    HalfTable centres;                           // the centroids as halves
    bool scans_codes = false;                    // rows are scanned as codes ...
    bool scans_bytes = false;                    // ... or as bytes, else as halves

    // What is scanned is relative to the lists' centroids.
    PGWARP_HOST_DEVICE bool scans_residuals() const { return scans_codes || scans_bytes; }
    // Values are computed from residuals too: there is nothing better.
    PGWARP_HOST_DEVICE bool values_of_residuals() const
    {
        return full == nullptr && half.rows == nullptr && remote.halves == nullptr && remote.full == nullptr;
    }
};

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

// Where the groups of probes are written; shapes as in ProbeView. Without positions they are not.
struct GroupArrays {
    std::uint32_t* position = nullptr;
    float* constant = nullptr;
    std::size_t stride = 0;
};

}  // namespace pgwarp::cuda::ivfadc
