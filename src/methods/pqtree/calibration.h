// Calibration of pqtree: recall along a schedule of candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/pqtree/proposer.h"
#include "methods/recall/curve.h"
#include "methods/recall/recalibration.h"

namespace pgwarp
{

// Recall is the share of true neighbours among the proposals that vectors rank again, the index's own or, with refine =
// none, the heap's: ranking itself loses none. The curve ends with all rows; with refine = none, where more candidates
// gain nothing.
struct TreeCalibration {
    const TreeOptions& options;
    const TreeProposer& proposer;
    std::size_t rows;
    const CalibrationSample& sample;

    Calibration run(const BuildProgress& progress, ThreadPool& pool) const;

private:
    RecallCurve::Shares shares_at(std::int64_t effort, ThreadPool& pool, const CancelToken* cancel) const;
    std::vector<std::uint32_t> measured_queries(std::int64_t effort) const;
    std::vector<std::size_t> places_of(std::size_t query, std::span<const Candidate> proposed) const;
    std::vector<float> worst_shares(std::size_t column, std::int64_t effort,
                                    std::span<const std::vector<std::size_t>> places) const;
    RecallCurve::Shares all_found() const;
};

// A curve, and the share of the candidates that vectors rank in the searches that it was measured with.
struct TreeMeasurement {
    Calibration curve;
    std::size_t ranked_share = usual_ranked_share;
};

// Measures the curve with the usual share. Where vectors are kept and line codes order rows too badly for that, also
// with the share 1; returns that with which searches find more. `options`: their share is not read.
TreeMeasurement measure_tree(const TreeOptions& options, const TreeProposer& proposer, std::size_t rows,
                             const CalibrationSample& sample, const BuildProgress& progress, ThreadPool& pool);

// Returns the number of sample rows of a calibration.
std::size_t tree_calibration_sample(std::size_t rows);

}  // namespace pgwarp
