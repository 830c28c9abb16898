// The steps of a pqtree build on the device, over rows that are uploaded once, while they are encoded.
#include "pqtree/builder.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "cluster/assign.h"
#include "cluster/kmeans.h"
#include "cluster/vector_steps.h"
#include "methods/pqtree/build_steps.h"
#include "numeric/sample.h"
#include "pqtree/device_tree.h"
#include "pqtree/encode.h"
#include "pqtree/pqtree.h"
#include "rows/gather.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr std::size_t level1_iterations = 10;  // they cost little on a device
constexpr std::size_t level2_iterations = 8;
// Larger samples than the CPU's make leaves and lines fit better, in a few milliseconds.
constexpr std::size_t sample_factor = 4;
constexpr std::size_t most_sampled = 200000;  // unless the CPU takes more

// Proposes by a searcher without vectors.
class SearchingProposer : public TreeProposer
{
public:
    // codes: those of `arrays` on the device, all written.
    SearchingProposer(Context& context, const IndexShape& shape, const TreeArrays& arrays,
                      DeviceArray<std::uint8_t> codes, ThreadPool& pool)
        : dimensions_(arrays.dimensions)
    {
        TreeArrays bare;
        bare.options = arrays.options;
        bare.options.refine = TreeRefine::none;
        bare.dimensions = arrays.dimensions;
        bare.rows = arrays.rows;
        searcher_ = make_searcher(shape, bare.options.as_parameters(), bare.shapes(), context, std::move(codes));
        for (const ArrayShape& array : arrays.quantizer_shapes()) {
            std::vector<std::byte> bytes(array.bytes());
            arrays.read(array.name, 0, bytes);
            searcher_->write(array.name, 0, bytes);
        }
        searcher_->finish_load(pool);
    }

    void propose(std::span<const float> queries, const SearchPlan& plan, RowBitmap dead,
                 std::vector<std::vector<Candidate>>& proposed, ThreadPool& pool,
                 const CancelToken* cancel) const override
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / dimensions_;
        batch.k = static_cast<std::uint32_t>(std::min<std::size_t>(plan.ranked, most_proposed));
        batch.settings.set("width", static_cast<std::int64_t>(plan.width));
        batch.settings.set("candidates", static_cast<std::int64_t>(plan.candidates));
        batch.settings.set(setting_proposed, batch.k);
        batch.dead = dead;
        batch.dead_version = dead.empty() ? 0 : new_bitmap_version();
        batch.proposals_will_do = true;
        batch.cancel = cancel;
        std::vector<std::vector<RowResult>> results;
        searcher_->search(batch, results, pool);
        proposed.assign(batch.count, {});
        for (std::size_t q = 0; q < batch.count; ++q) {
            for (const RowResult& one : results[q]) proposed[q].push_back({static_cast<float>(one.distance), one.row});
        }
    }
    std::uint64_t memory_bytes() const override { return searcher_->memory_bytes(); }

private:
    std::size_t dimensions_;
    std::unique_ptr<Searcher> searcher_;
};

class DeviceSteps : public DeviceVectorSteps<TreeBuildSteps, TreeArrays>
{
public:
    DeviceSteps(Context& context, const ParameterList& options) : DeviceVectorSteps(context), options_(options) {}

    void begin(const TreeBuildInput& input) override;
    void train_tree(const TreeBuildInput& input, TreeArrays& arrays) override;
    std::size_t line_rows() const override { return 2 * line_sample_rows; }
    void encode_rows(const TreeBuildInput& input, TreeArrays& arrays) override;
    std::unique_ptr<TreeProposer> make_proposer(const TreeBuildInput& input, const TreeArrays& arrays) override;

private:
    void train_part(const TreeBuildInput& input, TreeArrays& arrays, std::size_t part, const DeviceArray<float>& sample,
                    std::size_t count);
    DeviceArray<float> train_leaves(const std::vector<std::uint32_t>& nearest, const DeviceArray<float>& columns,
                                    const DeviceArray<float>& centroids, const TreeShape& shape,
                                    std::size_t width) const;

    ParameterList options_;
    DeviceArray<std::uint8_t> codes_;  // of all rows, until searches take them
};

void DeviceSteps::begin(const TreeBuildInput& input)
{
    const std::size_t rows = input.rows.size();
    const TreeOptions options = TreeOptions::resolve(options_, rows, input.shape.dimensions);
    begin_rows(input, "pqtree build", options.keeps_half(), rows * options.code_bytes());
}

void DeviceSteps::train_tree(const TreeBuildInput& input, TreeArrays& arrays)
{
    if (arrays.rows == 0) return TreeBuildSteps::train_tree(input, arrays);
    input.report("training tree", 0, 1);
    const TreeShape shape = arrays.options.tree(arrays.dimensions);
    const std::size_t usual = tree_training_sample(shape);
    const std::vector<std::uint32_t> chosen =
        sample_rows(arrays.rows, std::max(usual, std::min(sample_factor * usual, most_sampled)), tree_seed);
    const DeviceArray<float> sample = device_->sample_of_host(chosen, input.pool, input.progress.cancel);
    arrays.tree.shape = shape;
    arrays.tree.level1.resize(shape.k1 * arrays.dimensions);
    arrays.tree.level2.resize(shape.leaves() * arrays.dimensions);
    for (std::size_t part = 0; part < shape.parts; ++part) {
        input.report("training tree", part, shape.parts);
        train_part(input, arrays, part, sample, chosen.size());
    }
}

// Copies vectors [count][width] to the columns of a part in rows [count][dimensions].
void put_columns(const TreeShape& shape, std::size_t part, const std::vector<float>& vectors, std::vector<float>& rows)
{
    const std::size_t width = shape.width(part);
    for (std::size_t i = 0; i * width < vectors.size(); ++i)
        std::copy_n(vectors.data() + i * width, width, rows.data() + i * shape.dimensions + shape.begin(part));
}

void DeviceSteps::train_part(const TreeBuildInput& input, TreeArrays& arrays, std::size_t part,
                             const DeviceArray<float>& sample, std::size_t count)
{
    const TreeShape& shape = arrays.tree.shape;
    const std::size_t width = shape.width(part);
    DeviceArray<float> columns = device_->array<float>(count * width);
    rows::copy_columns(sample.data(), count, shape.dimensions, shape.begin(part), width, columns.data(),
                       device_->stream());
    KMeansOptions training;
    training.clusters = shape.k1;
    training.iterations = level1_iterations;
    training.seed = tree_seed + part;
    training.balanced = true;
    training.cancel = input.progress.cancel;
    DeviceArray<float> centroids = device_->array<float>(shape.k1 * width);
    train_kmeans(context_, columns.data(), count, width, training, centroids.data(), device_->stream());
    DeviceArray<std::uint32_t> labels = device_->array<std::uint32_t>(count);
    assign_to_centroids(context_, Metric::l2, columns.data(), count, width, centroids.data(), shape.k1, labels.data(),
                        input.progress.cancel, device_->stream());
    std::vector<std::uint32_t> nearest(count);
    device_->read(labels.data(), std::span(nearest));
    const DeviceArray<float> leaves = train_leaves(nearest, columns, centroids, shape, width);
    std::vector<float> vectors(centroids.size());
    device_->read(centroids.data(), std::span(vectors));
    put_columns(shape, part, vectors, arrays.tree.level1);
    vectors.resize(leaves.size());
    device_->read(leaves.data(), std::span(vectors));
    put_columns(shape, part, vectors, arrays.tree.level2);
}

// k-means of the sample rows of each centroid, of all centroids at once. nearest: the centroid of each row.
DeviceArray<float> DeviceSteps::train_leaves(const std::vector<std::uint32_t>& nearest,
                                             const DeviceArray<float>& columns, const DeviceArray<float>& centroids,
                                             const TreeShape& shape, std::size_t width) const
{
    std::vector<std::uint32_t> begin(shape.k1 + 1, 0);
    for (const std::uint32_t c : nearest) ++begin[c + 1];
    CentroidRows groups;
    groups.most_rows = *std::ranges::max_element(begin);
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::uint32_t> members(nearest.size());
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t row = 0; row < nearest.size(); ++row) members[next[nearest[row]]++] = row;
    const auto device_members = device_->copy_of(std::span<const std::uint32_t>(members));
    const auto device_begin = device_->copy_of(std::span<const std::uint32_t>(begin));
    groups.rows = columns.data();
    groups.members = device_members.data();
    groups.begin = device_begin.data();
    groups.width = width;
    groups.k1 = static_cast<std::uint32_t>(shape.k1);
    DeviceArray<float> leaves = device_->array<float>(shape.leaves() * width);
    DeviceArray<std::uint32_t> labels = device_->array<std::uint32_t>(members.size());
    const auto k2 = static_cast<std::uint32_t>(shape.k2);
    start_leaves(groups, centroids.data(), k2, leaves.data(), device_->stream());
    for (std::size_t i = 0; i < level2_iterations; ++i)
        improve_leaves(groups, k2, labels.data(), leaves.data(), device_->stream());
    return leaves;
}

void DeviceSteps::encode_rows(const TreeBuildInput& input, TreeArrays& arrays)
{
    const TreeShape& shape = arrays.tree.shape;
    const TreeOptions& options = arrays.options;
    const std::size_t stride = options.code_bytes();
    arrays.codes.resize(arrays.rows * stride);
    if (arrays.rows == 0) return;
    const cudaStream_t stream = device_->stream();
    const DeviceTree tree(context_, Metric::l2, arrays, stream);
    std::vector<DeviceArray<float>> leaves;
    for (std::size_t part = 0; part < shape.parts; ++part) {
        const std::size_t width = shape.width(part);
        const auto level2 = device_->copy_of(std::span<const float>(arrays.tree.level2));
        leaves.push_back(device_->array<float>(shape.leaves() * width));
        rows::copy_columns(level2.data(), shape.leaves(), shape.dimensions, shape.begin(part), width,
                           leaves[part].data(), stream);
    }
    const std::size_t most = std::min(BuildRows::piece_rows, arrays.rows);
    DeviceArray<float> columns = device_->array<float>(most * shape.width(0));
    DeviceArray<std::uint32_t> labels = device_->array<std::uint32_t>(most);
    codes_ = device_->array<std::uint8_t>(arrays.rows * stride);
    device_->upload("encoding rows", input.progress, input.pool, [&](std::size_t first, std::size_t count) {
        const float* rows = device_->row(first);
        const CodeOutput out{codes_.data() + first * stride, stride};
        for (std::size_t part = 0; part < shape.parts; ++part) {
            const std::size_t width = shape.width(part);
            rows::copy_columns(rows, count, shape.dimensions, shape.begin(part), width, columns.data(), stream);
            assign_to_centroids(context_, Metric::l2, columns.data(), count, width, leaves[part].data(), shape.leaves(),
                                labels.data(), input.progress.cancel, stream);
            write_leaves(labels.data(), count, static_cast<std::uint32_t>(part), out, stream);
        }
        encode_lines(tree.view(), rows, count, out, context_.shared_bytes_per_block(), stream);
    });
    device_->download(codes_, arrays.codes.data(), input.pool, input.progress.cancel);
}

std::unique_ptr<TreeProposer> DeviceSteps::make_proposer(const TreeBuildInput& input, const TreeArrays& arrays)
{
    try {
        return std::make_unique<SearchingProposer>(context_, input.shape, arrays, std::move(codes_), input.pool);
    } catch (const std::bad_alloc&) {
        // Searches take shared memory for each line part; the rest of the build does not.
        return TreeBuildSteps::make_proposer(input, arrays);
    }
}

}  // namespace

std::unique_ptr<Builder> make_builder(Context& context, const IndexShape& shape, const ParameterList& options)
{
    return pgwarp::make_pqtree_builder(shape, options, std::make_unique<DeviceSteps>(context, options));
}

}  // namespace pgwarp::cuda::pqtree
