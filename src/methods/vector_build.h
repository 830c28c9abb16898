// The input of builds of vectors that are kept as floats or halves beside codes, and their common steps, as the CPU
// makes them, for a device to override.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/recall/truth.h"

namespace pgwarp
{

// The input of every step.
struct VectorBuildInput {
    const IndexShape& shape;
    RowBuffer& rows;
    const BuildProgress& progress;
    ThreadPool& pool;

    Metric metric() const { return static_cast<Metric>(shape.metric); }
    std::span<const float> vectors() const { return rows.vectors(); }
    // Reports progress; throws Cancelled where the build was cancelled.
    void report(const char* phase, std::uint64_t done, std::uint64_t total) const
    {
        progress.advance(phase, done, total);
    }
};

// Each step is called at most once. A device throws std::bad_alloc where its memory is short. Arrays has `rows`, `half`
// (HalfRows) and `halves`.
template <class Arrays>
class VectorBuildSteps
{
public:
    virtual ~VectorBuildSteps() = default;
    // Brings rows to a device. The first step.
    virtual void begin(const VectorBuildInput&) {}
    // Makes the codec of half vectors and their largest error.
    virtual void train_half(const VectorBuildInput& input, Arrays& arrays)
    {
        input.report("measuring half vectors", 0, arrays.rows);
        arrays.half.train(input.shape, input.vectors(), input.pool, input.progress.cancel);
    }
    // As calibration_truth().
    virtual std::vector<std::vector<std::uint32_t>> truth(const VectorBuildInput& input,
                                                          const std::vector<std::uint32_t>& sample)
    {
        return calibration_truth(input.metric(), input.vectors(), input.shape.dimensions, sample, input.pool,
                                 input.progress.cancel);
    }
    // Makes the half vectors in the memory of the rows, whose floats are gone afterwards. The last step.
    virtual void keep_halves(const VectorBuildInput& input, Arrays& arrays)
    {
        input.report("writing half vectors", 0, arrays.rows);
        arrays.halves = arrays.half.compact(input.rows);
    }
};

}  // namespace pgwarp
