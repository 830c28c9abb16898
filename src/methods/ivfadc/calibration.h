// Calibration of ivfadc: recall along a schedule of probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"
#include "methods/recall/recalibration.h"

namespace pgwarp
{

// The input of a calibration: the state of a build after its lists and codes.
struct IvfadcCalibration {
    const IvfOptions& options;
    Metric metric;
    std::span<const float> centroids;
    const std::vector<std::uint32_t>& list_of_row;
    const CalibrationSample& sample;
    const Searcher* searcher = nullptr;  // loaded, where product codes alone rank; else null

    // Where stored vectors rank, recall is the share of true neighbours whose lists are probed, counted for all numbers
    // of probes at once. The same holds for bytes, which the backend ranks again by the heap's rows: it asks for enough
    // of them to lose next to none. Where product codes alone rank, real searches are made.
    Calibration run(const BuildProgress& progress, ThreadPool& pool) const;

private:
    std::int64_t gains_from() const;
};

}  // namespace pgwarp
