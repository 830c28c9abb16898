// The build of pqtree: the sequence of its steps, on any device, and its calibration.
#include "methods/pqtree/build_steps.h"
#include "methods/pqtree/calibration.h"
#include "methods/pqtree/pqtree.h"
#include "methods/stepped_builder.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

class TreeBuilder : public SteppedBuilder<TreeArrays, TreeBuildSteps, TreeBuildInput>
{
public:
    TreeBuilder(const IndexShape& shape, const ParameterList& options, std::unique_ptr<TreeBuildSteps> device)
        : SteppedBuilder(shape, std::move(device)), asked_(options)
    {
        if (static_cast<Metric>(shape.metric) == Metric::l1) throw BadRequest("pqtree knows no L1 distance");
        // Invalid options are refused before rows come.
        made_.options = TreeOptions::resolve(asked_, 0, shape.dimensions);
    }

private:
    void run_steps(TreeBuildSteps& steps, const TreeBuildInput& input) override;
    void calibrate(TreeBuildSteps& steps, const TreeBuildInput& input);

    ParameterList asked_;
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
    const TreeMeasurement measured =
        measure_tree(made_.options, *proposer, made_.rows, {sample, queries, truth}, input.progress, input.pool);
    calibration_ = measured.curve;
    made_.options.ranked_share = measured.ranked_share;
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
