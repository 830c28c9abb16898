// Figures 3 and 6: the order of bins, and the rows of the nearest bins.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <set>

#include "../gpu/harness.h"
#include "bin_orders.h"
#include "experiments.h"
#include "methods/pqtree/build_steps.h"
#include "numeric/kmeans.h"
#include "numeric/sample.h"
#include "tree_arrays.h"

namespace pgwarp::bench::pqtree
{

namespace
{

using Ranks = std::pair<std::uint16_t, std::uint16_t>;

constexpr std::size_t order_queries = 200;
constexpr std::size_t most_bins = 4000;  // of an order
constexpr std::size_t drawn_bins = 300;  // of the query that is drawn

// Squared distances of a query to the leaves of a part, of the `width` nearest centroids; the others are infinite.
std::vector<float> leaf_scores(const ProductTree& tree, std::size_t part, const float* query, std::size_t width)
{
    const TreeShape& shape = tree.shape;
    const auto distance = [&](const float* to) {
        float sum = 0;
        for (std::size_t d = 0; d < shape.width(part); ++d) {
            const float off = query[shape.begin(part) + d] - to[d];
            sum += off * off;
        }
        return sum;
    };
    std::vector<std::pair<float, std::size_t>> nearest;
    for (std::size_t c = 0; c < shape.k1; ++c) nearest.push_back({distance(tree.centroid(part, c)), c});
    std::ranges::sort(nearest);
    nearest.resize(std::min(width, nearest.size()));
    std::vector<float> scores(shape.leaves(), std::numeric_limits<float>::infinity());
    for (const auto& [_, c] : nearest)
        for (std::size_t leaf = c * shape.k2; leaf < (c + 1) * shape.k2; ++leaf)
            scores[leaf] = distance(tree.leaf(part, leaf));
    return scores;
}

RankedParts ranked_parts(const ProductTree& tree, const float* query)
{
    RankedParts parts(tree.shape.parts);
    for (std::size_t part = 0; part < parts.size(); ++part) {
        const std::vector<float> scores = leaf_scores(tree, part, query, tree.shape.k1);
        for (std::uint32_t leaf = 0; leaf < scores.size(); ++leaf) parts[part].push_back({scores[leaf], leaf});
        std::ranges::stable_sort(parts[part], {}, &RankedLeaf::score);
    }
    return parts;
}

// Pairs of ranks by i^2 + j^2: the paper's order without slopes.
std::vector<Ranks> by_distance(std::size_t ranks, std::size_t length)
{
    std::vector<std::pair<std::size_t, Ranks>> keyed;
    for (std::size_t i = 0; i < ranks; ++i)
        for (std::size_t j = 0; j < ranks; ++j)
            keyed.push_back({i * i + j * j, {static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(j)}});
    std::ranges::sort(keyed);
    keyed.resize(std::min(keyed.size(), length));
    std::vector<Ranks> order;
    for (const auto& one : keyed) order.push_back(one.second);
    return order;
}

std::vector<Ranks> exact_order(const RankedParts& parts, std::size_t length)
{
    std::vector<Ranks> order;
    for (const BinRanks& ranks : dijkstra_order(parts, length)) order.push_back({ranks[0], ranks[1]});
    return order;
}

double shared(std::span<const Ranks> order, const std::set<Ranks>& wanted)
{
    std::size_t count = 0;
    for (const Ranks& ranks : order.first(std::min(order.size(), wanted.size()))) count += wanted.count(ranks);
    return static_cast<double>(count) / static_cast<double>(wanted.size());
}

// The first bins of an order, for the figure: for each rank of the first part, the number of ranks of the second.
void write_ranks(Table& table, const Plan& plan, const DataSet& data, const char* name, std::span<const Ranks> order)
{
    std::vector<std::size_t> depth;
    for (const auto& [i, j] : order.first(std::min(order.size(), drawn_bins))) {
        depth.resize(std::max<std::size_t>(depth.size(), i + 1U));
        depth[i] = std::max<std::size_t>(depth[i], j + 1U);
    }
    for (std::size_t i = 0; i < depth.size(); ++i) table.row(plan.device.name(), name, data.name, i, depth[i]);
}

// Of each query and part the scores of all leaves, one after the other.
class ScoredQueries
{
public:
    ScoredQueries(const ProductTree& tree, const DataSet& data, std::size_t queries, std::size_t width)
        : leaves_(tree.shape.leaves()), parts_(tree.shape.parts), queries_(queries)
    {
        for (std::size_t q = 0; q < queries; ++q) {
            for (std::size_t part = 0; part < parts_; ++part) {
                const std::vector<float> scores = leaf_scores(tree, part, data.query(q).data(), width);
                scores_.insert(scores_.end(), scores.begin(), scores.end());
            }
        }
    }
    std::size_t queries() const { return queries_; }
    float score(std::size_t query, const std::uint16_t* leaves) const
    {
        const float* scores = scores_.data() + query * parts_ * leaves_;
        float sum = 0;
        for (std::size_t part = 0; part < parts_; ++part) sum += scores[part * leaves_ + leaves[part]];
        return sum;
    }

private:
    std::size_t leaves_;
    std::size_t parts_;
    std::size_t queries_;
    std::vector<float> scores_;  // [queries][parts][leaves]
};

// Of each query, the number of rows in bins that are no farther than that of its nearest row; 0: the width misses it.
// leaves [rows][parts].
std::vector<std::size_t> rows_until_nearest(const ScoredQueries& queries, std::span<const std::uint16_t> leaves,
                                            std::size_t parts, const DataSet& data, ThreadPool& pool)
{
    std::vector<float> limit(queries.queries());
    for (std::size_t q = 0; q < limit.size(); ++q)
        limit[q] = queries.score(q, leaves.data() + data.truth[q].front() * parts);
    std::vector<std::size_t> count(limit.size(), 0);
    std::mutex mutex;
    pool.parallel_for(leaves.size() / parts, 16384, [&](std::size_t begin, std::size_t end) {
        std::vector<std::size_t> some(limit.size(), 0);
        for (std::size_t q = 0; q < limit.size(); ++q) {
            for (std::size_t row = begin; std::isfinite(limit[q]) && row < end; ++row)
                some[q] += queries.score(q, leaves.data() + row * parts) <= limit[q] ? 1 : 0;
        }
        const std::lock_guard lock(mutex);
        for (std::size_t q = 0; q < some.size(); ++q) count[q] += some[q];
    });
    return count;
}

std::vector<std::uint16_t> leaves_of(const TreeArrays& arrays, ThreadPool& pool)
{
    const std::size_t parts = arrays.options.parts;
    std::vector<std::uint16_t> leaves(arrays.rows * parts);
    pool.parallel_for(arrays.rows, 16384, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            const std::uint8_t* code = arrays.codes.data() + row * arrays.options.code_bytes();
            for (std::size_t part = 0; part < parts; ++part) leaves[row * parts + part] = leaf_of(code, part);
        }
    });
    return leaves;
}

// The columns of a part of rows [count][dimensions].
std::vector<float> columns_of(const TreeShape& shape, std::span<const float> rows, std::size_t part, ThreadPool& pool)
{
    const std::size_t width = shape.width(part);
    std::vector<float> columns(rows.size() / shape.dimensions * width);
    pool.parallel_for(rows.size() / shape.dimensions, 65536, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            std::copy_n(rows.data() + i * shape.dimensions + shape.begin(part), width, columns.data() + i * width);
    });
    return columns;
}

// The inverted multi-index with as many centroids of a part as the tree has leaves: as a tree of one centroid, whose
// leaves k-means makes.
ProductTree multi_index(const TreeShape& like, const DataSet& data, std::vector<std::uint16_t>& leaves,
                        ThreadPool& pool)
{
    ProductTree flat{{like.dimensions, like.parts, 1, like.leaves()}, {}, {}};
    flat.level1.resize(like.dimensions);
    flat.level2.resize(like.leaves() * like.dimensions);
    leaves.resize(data.rows * like.parts);
    const auto sample = gather_rows(data.base.data(), data.dimensions,
                                    sample_rows(data.rows, rows_per_leaf * like.leaves(), tree_seed));
    for (std::size_t part = 0; part < like.parts; ++part) {
        const std::size_t width = like.width(part);
        KMeansOptions options;
        options.clusters = like.leaves();
        const std::vector<float> centroids = train_kmeans(columns_of(like, sample, part, pool), width, options, pool);
        for (std::size_t leaf = 0; leaf < like.leaves(); ++leaf)
            std::copy_n(centroids.data() + leaf * width, width,
                        flat.level2.data() + leaf * like.dimensions + like.begin(part));
        std::vector<std::uint32_t> nearest(data.rows);
        assign_to_centroids(Metric::l2, columns_of(like, data.base, part, pool), width, centroids, nearest, pool);
        for (std::size_t row = 0; row < data.rows; ++row)
            leaves[row * like.parts + part] = static_cast<std::uint16_t>(nearest[row]);
    }
    return flat;
}

void write_curve(Table& table, const Plan& plan, const DataSet& data, const std::string& name,
                 const ScoredQueries& queries, std::span<const std::uint16_t> leaves, std::size_t parts,
                 ThreadPool& pool)
{
    const std::vector<std::size_t> needed = rows_until_nearest(queries, leaves, parts, data, pool);
    for (double limit = 1; limit <= static_cast<double>(data.rows); limit *= std::sqrt(10.0)) {
        const auto found = std::ranges::count_if(
            needed, [&](std::size_t rows) { return rows > 0 && static_cast<double>(rows) <= limit; });
        table.row(plan.device.name(), name, data.name, data.rows, queries.queries(), std::round(limit),
                  static_cast<double>(found) / static_cast<double>(needed.size()));
    }
}

}  // namespace

void run_order(const Plan& plan, ThreadPool& pool)
{
    const auto data = plan.load("sift", Metric::l2, 100000, pool);
    if (!data) return;
    const TreeShape shape{data->dimensions, 2, 64, 16};
    const ProductTree tree = train_tree(shape,
                                        gather_rows(data->base.data(), data->dimensions,
                                                    sample_rows(data->rows, rows_per_leaf * shape.leaves(), tree_seed)),
                                        tree_seed, pool);
    const std::size_t asked = std::min(order_queries, data->asked());
    const SlopeOrder slopes(shape.leaves(), most_bins);
    const std::vector<Ranks> distance = by_distance(shape.leaves(), most_bins);
    Table table(plan.output, "figure3", "device order data bins share queries");
    Table drawn(plan.output, "figure3-ranks", "device order data first_rank ranks_of_second");
    std::vector<RankedParts> parts;
    std::vector<std::vector<Ranks>> exact;
    for (std::size_t q = 0; q < asked; ++q) {
        parts.push_back(ranked_parts(tree, data->query(q).data()));
        exact.push_back(exact_order(parts.back(), most_bins));
    }
    for (std::size_t bins : {10, 30, 100, 300, 1000, 4000}) {
        double chosen = 0;
        double best = 0;
        double by_ranks = 0;
        for (std::size_t q = 0; q < asked; ++q) {
            const auto first = std::span(exact[q]).first(std::min(bins, exact[q].size()));
            const std::set<Ranks> wanted(first.begin(), first.end());
            std::array<double, SlopeOrder::slopes> shares;
            for (std::size_t slope = 0; slope < shares.size(); ++slope)
                shares[slope] = shared(slopes.order(slope), wanted);
            chosen += shares[SlopeOrder::choose(parts[q][0], parts[q][1])];
            best += *std::ranges::max_element(shares);
            by_ranks += shared(distance, wanted);
        }
        const auto write = [&](const char* order, double sum) {
            table.row(plan.device.name(), order, data->name, bins, sum / static_cast<double>(asked), asked);
        };
        write("ten slopes", chosen);
        write("best of ten slopes", best);
        write("distance of ranks", by_ranks);
    }
    // The query whose slope is the farthest from 1 shows the difference.
    std::size_t shown = 0;
    for (std::size_t q = 0; q < asked; ++q)
        if (SlopeOrder::choose(parts[q][0], parts[q][1]) < SlopeOrder::choose(parts[shown][0], parts[shown][1]))
            shown = q;
    write_ranks(drawn, plan, *data, "exact", exact[shown]);
    write_ranks(drawn, plan, *data, "ten slopes", slopes.order(SlopeOrder::choose(parts[shown][0], parts[shown][1])));
    write_ranks(drawn, plan, *data, "distance of ranks", distance);
}

namespace
{

// An index's options, and the width of its descent; 0: all centroids.
struct ProposingTree {
    const char* options;
    std::size_t width;
};

// width: of the descent; 0: all centroids.
void write_tree(Table& table, const Plan& plan, const DataSet& data, std::size_t asked, const ProductTree& tree,
                std::span<const std::uint16_t> leaves, std::size_t width, ThreadPool& pool)
{
    const TreeShape& shape = tree.shape;
    if (width == 0) width = shape.k1;
    const std::string name = std::to_string(shape.parts) + " parts, " + std::to_string(shape.k1) + " x " +
                             std::to_string(shape.k2) + ", width " + std::to_string(width);
    write_curve(table, plan, data, name, ScoredQueries(tree, data, asked, width), leaves, shape.parts, pool);
}

// Recall by the rows proposed, of trees that are built by the method.
void write_trees(Table& table, const Plan& plan, const DataSet& data, std::size_t asked,
                 std::span<const ProposingTree> trees, ThreadPool& pool)
{
    std::string built;
    std::vector<std::uint16_t> leaves;
    ProductTree tree;
    for (const ProposingTree& one : trees) {
        if (built != one.options) {
            const Index index = build_index(std::string("pqtree,refine=0,") + one.options, data, plan.device, pool);
            const TreeArrays arrays = arrays_of(index);
            leaves = leaves_of(arrays, pool);
            tree = arrays.tree;
            built = one.options;
        }
        write_tree(table, plan, data, asked, tree, leaves, one.width, pool);
    }
}

// A tree, and the leaves of the rows that have passed.
struct PassedTree {
    std::string options;
    ProductTree tree;
    std::vector<std::uint16_t> leaves{};  // [rows][parts]

    void add(std::span<const float> rows, const Device& device, ThreadPool& pool)
    {
        const TreeShape& shape = tree.shape;
        const std::size_t count = rows.size() / shape.dimensions;
        const std::size_t before = leaves.size();
        leaves.resize(before + count * shape.parts);
        std::vector<std::uint32_t> nearest(count);
        for (std::size_t part = 0; part < shape.parts; ++part) {
            device.assign(columns_of(shape, rows, part, pool), shape.width(part),
                          columns_of(shape, tree.level2, part, pool), nearest, pool);
            for (std::size_t i = 0; i < count; ++i)
                leaves[before + i * shape.parts + part] = static_cast<std::uint16_t>(nearest[i]);
        }
    }
};

// Rows that are too many to be kept pass once. Trees for that many rows are built over the first of them, more than the
// sample that trains a tree.
void write_passed_trees(Table& table, const Plan& plan, std::size_t rows, std::span<const ProposingTree> trees,
                        ThreadPool& pool)
{
    constexpr std::size_t most_asked = 256;
    DataRequest request = plan.request("generated", Metric::l2, rows);
    request.queries = std::min(request.queries, most_asked);
    std::vector<PassedTree> passed;
    const auto begin = [&](std::span<const float> first_rows) {
        DataSet some;
        some.name = request.name;
        some.dimensions = request.dimensions;
        some.rows = first_rows.size() / some.dimensions;
        some.base.assign(first_rows.begin(), first_rows.end());
        for (const ProposingTree& one : trees) {
            if (!passed.empty() && passed.back().options == one.options) continue;
            const IndexChoice choice(std::string("pqtree,refine=0,") + one.options);
            const TreeOptions options = TreeOptions::resolve(choice.options, rows, some.dimensions);
            const std::string leaves =
                choice.text + ",k1=" + std::to_string(options.k1) + ",k2=" + std::to_string(options.k2);
            const Index index = build_index(leaves, some, plan.device, pool);
            passed.push_back({one.options, arrays_of(index).tree});
        }
    };
    const auto start = Clock::now();
    const DataSet data =
        pass_generated(request, plan.device, pool, [&](std::span<const float> piece, std::size_t first) {
            if (first == 0) begin(piece);
            for (PassedTree& one : passed) one.add(piece, plan.device, pool);
        });
    std::printf("# %zu rows passed in %.1f s\n", data.rows, seconds_since(start));
    for (const ProposingTree& one : trees) {
        const auto of = std::ranges::find(passed, one.options, &PassedTree::options);
        write_tree(table, plan, data, data.asked(), of->tree, of->leaves, one.width, pool);
    }
}

}  // namespace

void run_proposals(const Plan& plan, ThreadPool& pool)
{
    // As the paper's for a billion rows, and the product's defaults; then the paper's for SIFT1M.
    constexpr ProposingTree trees[] = {{"parts=4,k1=32,k2=16", 8}, {"parts=4,k1=32,k2=16", 0}, {"parts=2", 0}};
    constexpr ProposingTree hashed[] = {{"parts=4,k1=64,k2=8", 16}, {"parts=2,k1=64,k2=8", 16}};
    Table table(plan.output, "figure6", "device order data rows queries proposed recall");
    if (const auto sift = plan.load("sift", Metric::l2, plan.on_gpu() ? plan.rows : 100000, pool))
        write_trees(table, plan, *sift, std::min<std::size_t>(sift->asked(), 1000), hashed, pool);
    if (are_many(plan.generated.back())) return write_passed_trees(table, plan, plan.generated.back(), trees, pool);
    const auto data = plan.load("generated", Metric::l2, plan.generated.back(), pool);
    // Each query is compared with all rows.
    const std::size_t asked = std::min<std::size_t>(data->asked(), 1000);
    write_trees(table, plan, *data, asked, trees, pool);
    const TreeShape like{data->dimensions, 4, 32, 16};
    std::vector<std::uint16_t> leaves;
    const ProductTree flat = multi_index(like, *data, leaves, pool);
    write_curve(table, plan, *data, "multi-index, 4 parts, " + std::to_string(like.leaves()),
                ScoredQueries(flat, *data, asked, 1), leaves, like.parts, pool);
}

}  // namespace pgwarp::bench::pqtree
