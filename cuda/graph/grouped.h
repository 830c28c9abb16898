// The k-NN graph of rows that are too many to compare all pairs. Rows are grouped around centres, each row belongs to
// its groups_of_row nearest groups, and it is compared with all rows of these groups.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "device/context.h"
#include "methods/method.h"
#include "numeric/metric.h"

namespace pgwarp::cuda::graph
{

inline constexpr std::uint32_t groups_of_row = 3;

struct GroupedJob {
    Metric metric = Metric::l2;      // l2 or l1
    const float* vectors = nullptr;  // device, [rows][dimensions]
    std::uint32_t rows = 0;
    std::uint32_t dimensions = 0;
    RowBitmap left_out;            // on the host: rows without neighbours that are no neighbours either; may be empty
    std::uint32_t groups = 0;      // 0: by the number of rows
    std::uint32_t width = 0;       // at most 256
    std::uint32_t* out = nullptr;  // device, [rows][width]: nearest first, then no_neighbour
    const CancelToken* cancel = nullptr;
    std::function<void(std::uint64_t rows)> progress;
};

// Waits for the device. Throws std::bad_alloc, CudaError, and the exception of job.cancel.
void grouped_nearest_rows(Context& context, const GroupedJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
