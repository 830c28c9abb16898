// The build of ivfadc: the sequence of its steps, on any device, and its calibration.
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/build_steps.h"
#include "methods/ivfadc/calibration.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/recall/searches.h"
#include "methods/stepped_builder.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

class IvfadcBuilder : public SteppedBuilder<IvfadcArrays, IvfadcBuildSteps, IvfadcBuildInput>
{
public:
    using SteppedBuilder::SteppedBuilder;

private:
    void run_steps(IvfadcBuildSteps& steps, const IvfadcBuildInput& input) override;
    void calibrate(IvfadcBuildSteps& steps, const IvfadcBuildInput& input);
};

void IvfadcBuilder::run_steps(IvfadcBuildSteps& steps, const IvfadcBuildInput& input)
{
    steps.begin(input);
    steps.train_lists(input, made_);
    steps.assign_rows(input, made_);
    if (made_.options.product_codes) {
        steps.train_quantizer(input, made_);
        steps.encode_products(input, made_);
    }
    if (made_.options.byte_codes) steps.encode_bytes(input, made_);
    if (made_.options.keeps_half()) steps.train_half(input, made_);
    calibrate(steps, input);
    // Last, because the floats may be given up.
    if (made_.options.keeps_full()) made_.vectors = input.vectors();
    if (made_.stores_half()) steps.keep_halves(input, made_);
}

void IvfadcBuilder::calibrate(IvfadcBuildSteps& steps, const IvfadcBuildInput& input)
{
    input.report("calibrating", 0, 1);
    if (made_.rows < 2) return;
    const std::vector<std::uint32_t> sample =
        sample_rows(made_.rows, calibration_sample(made_.options, made_.rows), build_seed + 2);
    const auto truth = steps.truth(input, sample);
    const std::vector<float> queries = gather_rows(input.vectors().data(), made_.dimensions, sample);
    std::unique_ptr<Searcher> searcher;
    if (made_.options.product_codes && made_.options.refine == IvfRefine::none) {
        searcher = steps.make_searcher(shape_, effective_options(), arrays());
        feed_searcher(*this, *searcher, input.pool);
    }
    const CalibrationSample queried{sample, queries, truth};
    const IvfadcCalibration calibration{made_.options,     input.metric(), made_.centroids,
                                        made_.list_of_row, queried,        searcher.get()};
    calibration_ = calibration.run(input.progress, input.pool);
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options,
                                             std::unique_ptr<IvfadcBuildSteps> device)
{
    return std::make_unique<IvfadcBuilder>(shape, options, std::move(device));
}

std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_ivfadc_builder(shape, options, nullptr);
}

}  // namespace pgwarp
