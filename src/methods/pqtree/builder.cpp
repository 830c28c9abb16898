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

constexpr float enough_recall = 0.95F;

// Returns the recall of the last effort that does not take all rows: of ten rows, or of one in a very small index.
float recall_of_candidates(const Calibration& curve)
{
    if (curve.count < 2) return 1;
    const float* recall = curve.points[curve.count - 2].recall;
    return recall[1] >= 0 ? recall[1] : recall[0];
}

class TreeBuilder : public SteppedBuilder<TreeArrays, TreeBuildSteps, TreeBuildInput>
{
public:
    using SteppedBuilder::SteppedBuilder;

private:
    void run_steps(TreeBuildSteps& steps, const TreeBuildInput& input) override;
    void calibrate(TreeBuildSteps& steps, const TreeBuildInput& input);
};

void TreeBuilder::run_steps(TreeBuildSteps& steps, const TreeBuildInput& input)
{
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
    const auto measure = [&](const TreeOptions& options) {
        return TreeCalibration{options, *proposer, made_.rows, queried}.run(input.progress, input.pool);
    };
    calibration_ = measure(made_.options);
    if (!made_.options.keeps_vectors() || recall_of_candidates(calibration_) >= enough_recall) return;
    // Vectors may order the rows that line codes do not.
    TreeOptions ranking = made_.options;
    ranking.ranked_share = 1;
    const Calibration ranked = measure(ranking);
    if (recall_of_candidates(ranked) <= recall_of_candidates(calibration_)) return;
    made_.options = ranking;
    calibration_ = ranked;
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
