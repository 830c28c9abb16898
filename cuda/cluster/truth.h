// Calibration's truth on the device: the nearest rows of each sample row, by fp32 scores, as calibration_truth()
// (src/methods/recall/truth.h) has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/context.h"
#include "numeric/metric.h"
#include "numeric/parallel.h"

namespace pgwarp::cuda
{

// rows: device [count][dimensions]; sample: row numbers. For each sample row its nearest others, nearest first, at most
// 1,000. Waits for the device.
std::vector<std::vector<std::uint32_t>> calibration_truth(Context& context, Metric metric, const float* rows,
                                                          std::size_t count, std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, cudaStream_t stream);

}  // namespace pgwarp::cuda
