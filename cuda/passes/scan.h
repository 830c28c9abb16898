// The answer by canonical distances to all rows: for queries that nothing else can prove, for k beyond the limit of
// wide_search.h, and for continuations.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "passes/rank.h"

namespace pgwarp::cuda
{

// Admits rows strictly after (value, row) in the order of (value, row).
struct ScanCursor {
    double value = -std::numeric_limits<double>::infinity();
    std::uint32_t row = 0;
};

struct ScanJob {
    Metric metric = Metric::l2;
    const float* vectors = nullptr;  // [rows][dimensions]
    std::uint32_t rows = 0;
    std::uint32_t dimensions = 0;
    const std::uint64_t* dead = nullptr;  // one bit for each row, or null
    const float* query = nullptr;
    ScanCursor cursor;
    std::uint32_t id = 0;  // index of the query in the answer
    ExactAnswer answer;
};

std::size_t scan_workspace_bytes(std::uint32_t rows);

// Asynchronous. workspace: scan_workspace_bytes(rows) bytes of device memory. Throws CudaError.
void scan_rows(const ScanJob& job, std::byte* workspace, cudaStream_t stream);

}  // namespace pgwarp::cuda
