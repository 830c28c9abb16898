// The build of a graph: edges from a k-NN graph, calibration with rows held out, and the insertion of these.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "methods/arrays.h"
#include "methods/description.h"
#include "methods/graph/build_steps.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/lent_searcher.h"
#include "methods/graph/nearest_rows.h"
#include "methods/graph/space.h"
#include "methods/graph/stored_rows.h"
#include "methods/recall/searches.h"
#include "methods/recall/truth.h"
#include "methods/rows/half_rows.h"
#include "numeric/sample.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t build_seed = 0x67726170;
constexpr std::size_t piece_rows = 4096;
constexpr std::size_t compared_rows = 4096;  // with each row of a large index
constexpr std::size_t most_compared_with_all = 2 * compared_rows;

// Subtracts from a vector its projection on a direction of length 1.
void make_orthogonal(float* vector, const float* direction, std::size_t dimensions)
{
    const double product = canonical_dot(vector, direction, dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) vector[d] = static_cast<float>(vector[d] - product * direction[d]);
}

class GraphBuilder : public Builder
{
public:
    GraphBuilder(const IndexShape& shape, const ParameterList& options, std::unique_ptr<GraphBuildSteps> steps)
        : shape_(shape),
          metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          asked_(options),
          steps_(std::move(steps))
    {
        // Invalid options are refused before rows come.
        options_ = GraphOptions::resolve(asked_, dimensions_);
        if (is_of_bits(metric_) && options_.vectors != GraphVectors::full) throw BadRequest("bits are kept in full");
    }

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override;
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override;
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return options_.as_parameters(); }

private:
    void hold_out();
    void draw_graph(const GraphSpace& space, ThreadPool& pool);
    ReachRows reach() const;
    void connect(RowBitmap left_out);
    std::vector<std::vector<std::uint32_t>> nearest_of_held_out(Metric metric, std::span<const float> rows,
                                                                std::size_t dimensions, ThreadPool& pool);
    void find_truth(std::span<const float> vectors, const GraphSpace& space, ThreadPool& pool);
    void project(std::span<const float> vectors, ThreadPool& pool);
    void keep_rows(RowBuffer& rows, ThreadPool& pool);
    void calibrate(ThreadPool& pool);
    void take_in();

    IndexShape shape_;
    Metric metric_;
    std::size_t dimensions_;
    ParameterList asked_;
    std::unique_ptr<GraphBuildSteps> steps_;  // of a device, or none
    GraphOptions options_;
    std::size_t rows_ = 0;
    const BuildProgress* progress_ = nullptr;
    std::vector<std::uint32_t> seeds_;
    GraphEdges edges_;
    HalfRows half_;
    std::span<const std::uint16_t> halves_;
    std::span<const float> vectors_;
    std::vector<float> projection_;
    BulkVector<std::uint32_t> bits_;
    Calibration calibration_;
    // Rows that are inserted last.
    std::vector<std::uint32_t> held_out_;
    std::vector<std::uint64_t> held_out_bits_;
    std::vector<float> queries_;                      // these rows
    std::vector<std::vector<std::uint32_t>> truth_;   // the nearest of those not held out, by the metric
    std::vector<std::vector<double>> distances_;      // of truth_, for rows of bits
    std::vector<std::vector<std::uint32_t>> nearby_;  // the nearest of all, in the space of the graph
};

void GraphBuilder::run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    rows_ = rows.size();
    progress_ = &progress;
    progress.report("comparing rows", 0, rows_);
    if (rows_ > 0) {
        hold_out();
        const GraphSpace space(metric_, rows.vectors(), dimensions_, pool);
        draw_graph(space, pool);
        find_truth(rows.vectors(), space, pool);
    }
    keep_rows(rows, pool);
    if (held_out_.empty()) return;
    calibrate(pool);
    take_in();
}

void GraphBuilder::hold_out()
{
    if (asked_.get(option_part, 0) == 0) held_out_ = sample_rows(rows_, held_out_sample(rows_), build_seed);
    held_out_bits_.assign((rows_ + 63) / 64, 0);
    for (const std::uint32_t row : held_out_) set_bit(held_out_bits_, row);
}

void GraphBuilder::draw_graph(const GraphSpace& space, ThreadPool& pool)
{
    if (steps_ != nullptr && steps_->draw(space, options_, held_out_bits_, *progress_, pool, seeds_, edges_)) {
        add_seeds(edges_, rows_outside(held_out_bits_, rows_), most_seeds(rows_), seeds_, reach());
        return connect(held_out_bits_);
    }
    const RowGroups groups = group_rows(space, seed_count(rows_), held_out_bits_, *progress_, pool);
    seeds_ = central_rows(space, groups, pool);
    const std::size_t compared = rows_ <= most_compared_with_all ? rows_ : compared_rows;
    const NearestRows nearest = grouped_nearest_rows(space, groups, options_.build_degree, compared, *progress_, pool);
    edges_ = draw_edges(nearest, options_.degree, groups.rows, *progress_, pool);
    add_seeds(edges_, groups.rows, most_seeds(rows_), seeds_);
    connect(held_out_bits_);
}

ReachRows GraphBuilder::reach() const
{
    if (steps_ == nullptr) return {};
    return [this](const GraphEdges& edges, std::span<const std::uint32_t> from) { return steps_->reach(edges, from); };
}

void GraphBuilder::connect(RowBitmap left_out)
{
    connect_rows(edges_, seeds_, left_out, *progress_, reach());
}

std::vector<std::vector<std::uint32_t>> GraphBuilder::nearest_of_held_out(Metric metric, std::span<const float> rows,
                                                                          std::size_t dimensions, ThreadPool& pool)
{
    if (steps_ != nullptr) {
        auto truth = steps_->truth(metric, rows, dimensions, held_out_, pool, progress_->cancel);
        if (truth) return std::move(*truth);
    }
    // Some of the nearest rows are held out themselves.
    const std::size_t depth = Calibration::ks[3] + held_out_.size();
    return calibration_truth(metric, rows, dimensions, held_out_, pool, progress_->cancel, {}, depth);
}

void GraphBuilder::find_truth(std::span<const float> vectors, const GraphSpace& space, ThreadPool& pool)
{
    progress_->report("calibrating", 0, 1);
    if (held_out_.empty()) return;
    queries_ = gather_rows(vectors.data(), dimensions_, held_out_);
    truth_ = nearest_of_held_out(metric_, vectors, dimensions_, pool);
    nearby_ = metric_ != Metric::inner_product
                  ? truth_
                  : nearest_of_held_out(space.metric(), space.rows(), space.dimensions(), pool);
    for (std::vector<std::uint32_t>& near : nearby_) near.resize(std::min(near.size(), options_.build_degree));
    for (std::vector<std::uint32_t>& truth : truth_) {
        std::erase_if(truth, [this](std::uint32_t row) { return bit_is_set(held_out_bits_, row); });
        truth.resize(std::min<std::size_t>(truth.size(), Calibration::ks[3]));
    }
    distances_ = distances_of_truth(metric_, vectors, dimensions_, queries_, truth_);
}

// Directions are orthogonal in groups of `dimensions`, so that bits repeat each other less (super-bits: Ji, Li, Yan,
// Zhang, Tian, NIPS 2012). Thresholds of l2 are the products of random rows, so that they are dense where rows are;
// those of cosine are the products of the mean row. The order by inner product does not depend on the query's length,
// and with thresholds of 0 the bits do not either.
void GraphBuilder::project(std::span<const float> vectors, ThreadPool& pool)
{
    progress_->report("projecting rows", 0, rows_);
    std::mt19937_64 generator(build_seed);
    std::normal_distribution<float> normal;
    const std::vector<std::uint32_t> sample = sample_rows(rows_, 10000, build_seed + 2);
    std::vector<float> mean(dimensions_, 0);
    for (const std::uint32_t row : sample) {
        for (std::size_t d = 0; d < dimensions_; ++d)
            mean[d] += vectors[row * dimensions_ + d] / static_cast<float>(sample.size());
    }
    projection_.resize(options_.bits * (dimensions_ + 1));
    for (std::size_t b = 0; b < options_.bits; ++b) {
        float* direction = projection_.data() + b * (dimensions_ + 1);
        for (std::size_t d = 0; d < dimensions_; ++d) direction[d] = normal(generator);
        for (std::size_t earlier = b / dimensions_ * dimensions_; earlier < b; ++earlier)
            make_orthogonal(direction, projection_.data() + earlier * (dimensions_ + 1), dimensions_);
        const double norm = canonical_norm(direction, dimensions_);
        for (std::size_t d = 0; d < dimensions_ && norm > 0; ++d)
            direction[d] = static_cast<float>(direction[d] / norm);
        const float* threshold = mean.data();
        if (metric_ == Metric::l2 && !sample.empty())
            threshold = vectors.data() + std::size_t{sample[generator() % sample.size()]} * dimensions_;
        direction[dimensions_] =
            metric_ == Metric::inner_product ? 0 : static_cast<float>(canonical_dot(direction, threshold, dimensions_));
    }
    const std::size_t words = options_.bits / 32;
    bits_.resize(rows_ * words);
    pool.parallel_for(rows_, 256, [&](std::size_t begin, std::size_t end) {
        progress_->check_cancel();
        for (std::size_t i = begin; i < end; ++i)
            project_row(projection_, vectors.data() + i * dimensions_, dimensions_, bits_.data() + i * words);
    });
}

void GraphBuilder::keep_rows(RowBuffer& rows, ThreadPool& pool)
{
    switch (options_.vectors) {
        case GraphVectors::full:
            vectors_ = rows.vectors();
            return;
        case GraphVectors::half:
            progress_->report("measuring half vectors", 0, rows_);
            half_.train(shape_, rows.vectors(), pool, progress_->cancel);
            progress_->report("writing half vectors", 0, rows_);
            halves_ = half_.compact(rows);
            return;
        case GraphVectors::bits:
            return project(rows.vectors(), pool);
    }
}

void GraphBuilder::calibrate(ThreadPool& pool)
{
    std::unique_ptr<Searcher> searcher;
    if (steps_ != nullptr) {
        searcher = steps_->make_searcher(shape_, effective_options(), arrays());
        if (searcher != nullptr) feed_searcher(*this, *searcher, pool);
    }
    if (searcher == nullptr)
        searcher = make_lent_graph_searcher(shape_, *this, {edges_, vectors_, halves_, bits_}, pool);
    const std::size_t held = rows_ - held_out_.size();
    const RecallInput input{
        .searcher = *searcher, .rows = held, .queries = queries_, .truth = truth_, .distances = distances_};
    calibration_ = measure_recall(input, graph_recall_rules(held), *progress_, pool);
}

void GraphBuilder::take_in()
{
    for (std::size_t i = 0; i < held_out_.size(); ++i) insert_row(edges_, held_out_[i], nearby_[i]);
    connect({});
    queries_ = {};
    truth_ = {};
    distances_ = {};
    nearby_ = {};
}

std::vector<ArrayShape> GraphBuilder::arrays() const
{
    return graph_arrays(shape_, options_, rows_, seeds_.size());
}

void GraphBuilder::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (array == array_seeds) return read_piece(std::span<const std::uint32_t>(seeds_), offset, out);
    if (array == array_half_mean) return read_piece(std::span<const float>(half_.codec.mean), offset, out);
    if (array == array_half_scale) return read_piece(std::span<const float>(half_.scale), offset, out);
    if (array == array_projection) return read_piece(std::span<const float>(projection_), offset, out);
    if (array == array_neighbours) return read_piece(std::span<const std::uint32_t>(edges_.neighbours), offset, out);
    if (array == array_bits) return read_piece(std::span<const std::uint32_t>(bits_), offset, out);
    if (array == array_half) return read_piece(halves_, offset, out);
    if (array == array_vectors) return read_piece(vectors_, offset, out);
    throw BadRequest("unknown array of a graph build");
}

}  // namespace

std::unique_ptr<Builder> make_graph_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_graph_builder(shape, options, nullptr);
}

std::unique_ptr<Builder> make_graph_builder(const IndexShape& shape, const ParameterList& options,
                                            std::unique_ptr<GraphBuildSteps> steps)
{
    return std::make_unique<GraphBuilder>(shape, options, std::move(steps));
}

}  // namespace pgwarp
