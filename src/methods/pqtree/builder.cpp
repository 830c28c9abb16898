// The build of pqtree: of gathered rows the sequence of its steps, on any device; on the CPU also of rows that stream,
// of which codes and halves alone are kept. And its calibration.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "methods/pqtree/build_steps.h"
#include "methods/pqtree/calibration.h"
#include "methods/pqtree/pqtree.h"
#include "methods/recall/streamed_truth.h"
#include "methods/row_stream.h"
#include "methods/rows/packed_rows.h"
#include "methods/stepped_builder.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

// The sample of a stream is at most this part of the rows: reading it twice costs little.
constexpr std::size_t least_rows_per_sampled = 8;
// A stream's halves have room for rows this power of two times as far from the mean as those of the sample.
constexpr int room_of_halves = 8;

class TreeBuilder : public SteppedBuilder<TreeArrays, TreeBuildSteps, TreeBuildInput>, public RowStream
{
public:
    TreeBuilder(const IndexShape& shape, const ParameterList& options, std::unique_ptr<TreeBuildSteps> device)
        : SteppedBuilder(shape, options, std::move(device)), on_device_(has_device())
    {
    }

    RowStream* row_stream() override { return this; }
    std::size_t wanted_sample(std::uint64_t rows) const override;
    void train(RowBuffer& sample, std::uint64_t rows, const BuildProgress& progress, ThreadPool& pool) override;
    void append(std::size_t first, std::span<const Tid> tids, std::span<float> rows, const CancelToken* cancel,
                ThreadPool& pool) override;
    void finish(std::span<const std::uint32_t> order, const BuildProgress& progress, ThreadPool& pool) override;

private:
    void run_steps(TreeBuildSteps& steps, const TreeBuildInput& input) override;
    void calibrate(TreeBuildSteps& steps, const TreeBuildInput& input);
    void calibrate(const TreeProposer& proposer, const CalibrationSample& sample, const BuildProgress& progress,
                   ThreadPool& pool);

    void train_on(RowBuffer& sample, const BuildProgress& progress, ThreadPool& pool);
    void keep_halves(std::size_t first, std::span<const float> rows, ThreadPool& pool);
    void order_rows(std::span<const std::uint32_t> order, ThreadPool& pool);

    bool on_device_;
    // Of a stream, by the numbers of its rows.
    std::optional<PackedRows> codes_;   // [options.code_bytes()]
    std::optional<PackedRows> halves_;  // u16 [dimensions]
    std::optional<StreamedTruth> truth_;
    std::mutex mutex_;  // of the largest error of the halves
};

void TreeBuilder::run_steps(TreeBuildSteps& steps, const TreeBuildInput& input)
{
    made_.options.bound_leaves(made_.rows);
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
    calibrate(*proposer, {sample, queries, truth}, input.progress, input.pool);
}

void TreeBuilder::calibrate(const TreeProposer& proposer, const CalibrationSample& sample,
                            const BuildProgress& progress, ThreadPool& pool)
{
    const TreeMeasurement measured = measure_tree(made_.options, proposer, made_.rows, sample, progress, pool);
    calibration_ = measured.curve;
    made_.options.ranked_share = measured.ranked_share;
}

std::size_t TreeBuilder::wanted_sample(std::uint64_t rows) const
{
    TreeOptions options = TreeOptions::resolve(asked_, rows, shape_.dimensions);
    options.bound_leaves(rows);
    if (on_device_ || options.keeps_full()) return 0;
    const std::size_t wanted = tree_training_sample(options.tree(shape_.dimensions)) + tree_calibration_sample(rows);
    return least_rows_per_sampled * wanted <= rows ? wanted : 0;
}

// The queries of the calibration are no rows that the tree was trained on.
void TreeBuilder::train(RowBuffer& sample, std::uint64_t rows, const BuildProgress& progress, ThreadPool& pool)
{
    begin_arrays(rows);
    made_.options.bound_leaves(rows);
    const std::size_t dimensions = made_.dimensions;
    const std::size_t asked = std::min(tree_calibration_sample(rows), sample.size() / 2);
    const std::vector<std::uint32_t> numbers = sample_rows(sample.size(), asked, tree_seed + 2);
    RowBuffer trained(dimensions);
    std::vector<Tid> tids;
    for (std::uint32_t i = 0, next = 0; i < sample.size(); ++i) {
        const bool is_query = next < numbers.size() && numbers[next] == i;
        if (is_query) ++next;
        const std::span<const Tid> tid = sample.tids().subspan(i, 1);
        if (is_query) tids.push_back(tid.front());
        if (!is_query) trained.append(tid, sample.vectors().subspan(i * dimensions, dimensions));
    }
    try {
        train_on(trained, progress, pool);
        truth_.emplace(static_cast<Metric>(shape_.metric), gather_rows(sample.vectors().data(), dimensions, numbers),
                       tids, HalfCodec::train(trained.vectors(), dimensions).mean);
    } catch (...) {
        // Their address space is of use to a build of all rows.
        codes_.reset();
        halves_.reset();
        throw;
    }
}

void TreeBuilder::train_on(RowBuffer& sample, const BuildProgress& progress, ThreadPool& pool)
{
    made_.rows = sample.size();
    const TreeBuildInput input{shape_, sample, progress, pool};
    TreeBuildSteps steps;
    steps.train_tree(input, made_);
    steps.choose_lines(input, made_);
    codes_.emplace(made_.options.code_bytes());
    if (!made_.options.keeps_half()) return;
    steps.train_half(input, made_);
    // Halves have as many bits at any scale, but those of rows that are halves already stay as they are.
    HalfRows& half = made_.half;
    if (!are_halves(shape_)) half.codec.scale = std::max(std::ldexp(half.codec.scale, -room_of_halves), FLT_MIN);
    half.scale[0] = half.codec.scale;
    half.scale[1] = 0;
    halves_.emplace(made_.dimensions * sizeof(half_bits));
}

void TreeBuilder::append(std::size_t first, std::span<const Tid> tids, std::span<float> rows, const CancelToken* cancel,
                         ThreadPool& pool)
{
    codes_->grow(first + tids.size());
    encode_rows(made_, rows, reinterpret_cast<std::uint8_t*>(codes_->row(first)), pool, cancel);
    if (made_.options.keeps_half()) keep_halves(first, rows, pool);
    truth_->compare(first, tids, rows, cancel, pool);
}

void TreeBuilder::keep_halves(std::size_t first, std::span<const float> rows, ThreadPool& pool)
{
    const std::size_t dimensions = made_.dimensions;
    const std::size_t count = rows.size() / dimensions;
    halves_->grow(first + count);
    pool.parallel_for(count, 1024, [&](std::size_t begin, std::size_t end) {
        float worst = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const float* row = rows.data() + i * dimensions;
            made_.half.codec.encode(row, reinterpret_cast<half_bits*>(halves_->row(first + i)));
            worst = std::max(worst, made_.half.codec.error(row));
        }
        const std::lock_guard lock(mutex_);
        made_.half.scale[1] = std::max(made_.half.scale[1], worst);
    });
}

void TreeBuilder::finish(std::span<const std::uint32_t> order, const BuildProgress& progress, ThreadPool& pool)
{
    made_.rows = order.size();
    progress.advance("sorting rows", 0, made_.rows);
    order_rows(order, pool);
    progress.advance("calibrating", 0, 1);
    const SampledQueries sampled = truth_->take(order);
    truth_.reset();
    if (made_.rows < 2 || sampled.rows.empty()) return;
    const auto proposer = make_cpu_proposer(static_cast<Metric>(shape_.metric), made_.options, made_.tree, made_.lines,
                                            made_.codes, pool);
    calibrate(*proposer, {sampled.rows, sampled.queries, sampled.truth}, progress, pool);
}

void TreeBuilder::order_rows(std::span<const std::uint32_t> order, ThreadPool& pool)
{
    const std::size_t stride = made_.options.code_bytes();
    made_.codes.resize(made_.rows * stride);
    pool.parallel_for(made_.rows, 65536, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            std::memcpy(made_.codes.data() + i * stride, codes_->row(order[i]), stride);
    });
    codes_.reset();
    if (!halves_) return;
    halves_->put_in_order(order, pool);
    made_.halves = {reinterpret_cast<const half_bits*>(halves_->row(0)), made_.rows * made_.dimensions};
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
