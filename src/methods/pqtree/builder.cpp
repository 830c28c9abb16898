// The build of pqtree: the sequence of its steps, on any device, and its calibration.
#include <new>

#include "methods/pqtree/build_steps.h"
#include "methods/pqtree/calibration.h"
#include "methods/pqtree/pqtree.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

class TreeBuilder : public Builder
{
public:
    TreeBuilder(const IndexShape& shape, const ParameterList& options, std::unique_ptr<TreeBuildSteps> device)
        : shape_(shape), asked_(options), device_(std::move(device))
    {
        if (static_cast<Metric>(shape.metric) == Metric::l1) throw BadRequest("pqtree knows no L1 distance");
        // Invalid options are refused before rows come.
        made_.options = TreeOptions::resolve(asked_, 0, shape.dimensions);
    }

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        const TreeBuildInput input{shape_, rows, progress, pool};
        if (const std::unique_ptr<TreeBuildSteps> device = std::move(device_)) {
            try {
                return run_steps(*device, input);
            } catch (const std::bad_alloc&) {
                // The CPU takes over while the rows are there.
                if (rows.size() > 0 && rows.vectors().empty()) throw;
            }
        }
        TreeBuildSteps steps;
        run_steps(steps, input);
    }
    std::vector<ArrayShape> arrays() const override { return made_.shapes(); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made_.read(array, offset, out);
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return made_.options.as_parameters(); }

private:
    void run_steps(TreeBuildSteps& steps, const TreeBuildInput& input);
    void calibrate(TreeBuildSteps& steps, const TreeBuildInput& input);

    IndexShape shape_;
    ParameterList asked_;
    std::unique_ptr<TreeBuildSteps> device_;
    TreeArrays made_;
    Calibration calibration_;
};

void TreeBuilder::run_steps(TreeBuildSteps& steps, const TreeBuildInput& input)
{
    made_ = {};
    made_.rows = input.rows.size();
    made_.dimensions = shape_.dimensions;
    made_.options = TreeOptions::resolve(asked_, made_.rows, made_.dimensions);
    steps.begin(input);
    steps.train_tree(input, made_);
    steps.choose_lines(input, made_);
    steps.encode_rows(input, made_);
    if (made_.options.keeps_half()) steps.train_half(input, made_);
    calibrate(steps, input);
    // Last, because the floats may be given up.
    if (made_.options.keeps_full()) made_.vectors = input.vectors();
    if (made_.options.keeps_half()) steps.keep_halves(input, made_);
}

void TreeBuilder::calibrate(TreeBuildSteps& steps, const TreeBuildInput& input)
{
    input.report("calibrating", 0, 1);
    if (made_.rows < 2) return;
    const std::vector<std::uint32_t> sample =
        sample_rows(made_.rows, tree_calibration_sample(made_.rows), tree_seed + 2);
    const auto truth = steps.truth(input, sample);
    const std::vector<float> queries = gather_rows(input.vectors().data(), made_.dimensions, sample);
    const std::unique_ptr<TreeProposer> proposer = steps.make_proposer(input, made_);
    const CalibrationSample queried{sample, queries, truth};
    calibration_ = TreeCalibration{made_.options, *proposer, made_.rows, queried}.run(input.progress, input.pool);
}

}  // namespace

std::unique_ptr<Builder> make_pqtree_builder(const IndexShape& shape, const ParameterList& options,
                                             std::unique_ptr<TreeBuildSteps> device)
{
    return std::make_unique<TreeBuilder>(shape, options, std::move(device));
}

std::unique_ptr<Builder> make_pqtree_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_pqtree_builder(shape, options, nullptr);
}

}  // namespace pgwarp
