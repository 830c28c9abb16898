// The device pointers to a mirror and to the probes of a batch that kernels take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ivfadc/layout.h"
#include "rows/view.h"

namespace pgwarp::cuda::ivfadc
{

// Rows in lists, list-major. Codes and bytes are residuals from the centroid of the row's list.
struct MirrorView : ResidentRows {
    std::uint32_t lists = 0;
    const std::uint32_t* list_begin = nullptr;   // [lists]
    const std::uint32_t* list_length = nullptr;  // [lists]
    const float* centroids = nullptr;            // [lists][dimensions]
    HalfTable centres;                           // the centroids as halves
    bool scans_codes = false;                    // rows are scanned as product codes
    bool scans_bytes = false;                    // rows are scanned as bytes; where neither is set, as halves

    // Whether scanned rows are relative to the centroids of their lists.
    PGWARP_HOST_DEVICE bool scans_residuals() const { return scans_codes || scans_bytes; }
    // Whether values are computed from residuals, as the index keeps no vectors.
    PGWARP_HOST_DEVICE bool values_of_residuals() const
    {
        return full == nullptr && half.rows == nullptr && remote.halves == nullptr && remote.full == nullptr;
    }
};

// The lists that each query probes, nearest first. Slots number the positions of a query's lists consecutively.
struct ProbeView {
    std::uint32_t probes = 0;
    const std::uint32_t* list = nullptr;   // [count][probes]
    const std::uint32_t* slot = nullptr;   // [count][probes]: first slot of the list
    const float* constant = nullptr;       // [count][probes]: added to the scores of the list's rows
    const std::uint32_t* slots = nullptr;  // [count]: number of slots of the query
    // Of each group of 32 slots [count][group_stride], or null: its first position, and the constant of its list.
    const std::uint32_t* group_position = nullptr;
    const float* group_constant = nullptr;
    std::size_t group_stride = 0;
};

// Output for the groups of probes; shapes as in ProbeView. Not written where `position` is null.
struct GroupArrays {
    std::uint32_t* position = nullptr;
    float* constant = nullptr;
    std::size_t stride = 0;
};

}  // namespace pgwarp::cuda::ivfadc
