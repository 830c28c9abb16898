// The steps of a build of ivfadc, as the CPU makes them, for a device to override.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"

namespace pgwarp
{

// The input of every step.
struct IvfadcBuildInput {
    const IndexShape& shape;
    RowBuffer& rows;
    const BuildProgress& progress;
    ThreadPool& pool;

    Metric metric() const { return static_cast<Metric>(shape.metric); }
    // The metric by which rows are assigned to lists. For inner product it is l2: a list holds rows that are near each
    // other.
    Metric list_metric() const { return metric() == Metric::cosine ? Metric::inner_product : Metric::l2; }
    std::span<const float> vectors() const { return rows.vectors(); }
    // Reports progress; throws Cancelled where the build was cancelled.
    void report(const char* phase, std::uint64_t done, std::uint64_t total) const
    {
        progress.advance(phase, done, total);
    }
};

// Called in this order, each at most once; the options decide which. A device throws std::bad_alloc where its memory is
// short.
class IvfadcBuildSteps
{
public:
    virtual ~IvfadcBuildSteps() = default;
    // Brings rows to a device.
    virtual void begin(const IvfadcBuildInput&) {}
    // Makes the centroids.
    virtual void train_lists(const IvfadcBuildInput& input, IvfadcArrays& arrays);
    // Makes list_of_row.
    virtual void assign_rows(const IvfadcBuildInput& input, IvfadcArrays& arrays);
    // Makes the rotation, with opq, and the quantizer.
    virtual void train_quantizer(const IvfadcBuildInput& input, IvfadcArrays& arrays);
    // Makes product codes.
    virtual void encode_products(const IvfadcBuildInput& input, IvfadcArrays& arrays);
    // Makes codes of bytes and their scales.
    virtual void encode_bytes(const IvfadcBuildInput& input, IvfadcArrays& arrays);
    // Makes the codec of half vectors and their largest error.
    virtual void train_half(const IvfadcBuildInput& input, IvfadcArrays& arrays);
    // As calibration_truth() (methods/recall/truth.h).
    virtual std::vector<std::vector<std::uint32_t>> truth(const IvfadcBuildInput& input,
                                                          const std::vector<std::uint32_t>& sample);
    // Makes the searcher of the calibration, where codes alone rank.
    virtual std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                                    std::span<const ArrayShape> arrays);
    // Makes the half vectors in the memory of the rows, whose floats are gone afterwards.
    virtual void keep_halves(const IvfadcBuildInput& input, IvfadcArrays& arrays);
};

// device: the steps of a device, or null. Where its memory is too small, the CPU makes all steps.
std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options,
                                             std::unique_ptr<IvfadcBuildSteps> device);

}  // namespace pgwarp
