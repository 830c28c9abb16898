// The steps of a build of ivfadc, as the CPU makes them, for a device to override.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/vector_build.h"

namespace pgwarp
{

using IvfadcBuildInput = VectorBuildInput;

// The metric by which rows are assigned to lists. For inner product it is l2: a list holds rows that are near each
// other.
inline Metric list_metric(const IvfadcBuildInput& input)
{
    return input.metric() == Metric::cosine ? Metric::inner_product : Metric::l2;
}

// Called in this order between begin() and train_half(); the options decide which.
class IvfadcBuildSteps : public VectorBuildSteps<IvfadcArrays>
{
public:
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
    // Makes the searcher of the calibration, where codes alone rank.
    virtual std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                                    std::span<const ArrayShape> arrays);
};

// device: the steps of a device, or null. Where its memory is too small, the CPU makes all steps.
std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options,
                                             std::unique_ptr<IvfadcBuildSteps> device);

}  // namespace pgwarp
