// Training of the two levels, and the descent of rows.
#include "methods/pqtree/tree.h"

#include <algorithm>

#include "numeric/kmeans.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t level1_iterations = 8;
constexpr std::size_t level2_iterations = 6;
constexpr std::size_t tree_rows_at_a_time = 4096;

// Copies the columns of a part: [count][width].
std::vector<float> columns_of(const TreeShape& shape, std::span<const float> rows, std::size_t part)
{
    const std::size_t width = shape.width(part);
    const std::size_t count = rows.size() / shape.dimensions;
    std::vector<float> columns(count * width);
    for (std::size_t i = 0; i < count; ++i)
        std::copy_n(rows.data() + i * shape.dimensions + shape.begin(part), width, columns.data() + i * width);
    return columns;
}

// Copies centroids [count][width] to the columns of a part in rows [count][dimensions].
void put_columns(const TreeShape& shape, std::size_t part, std::span<const float> centroids, float* rows)
{
    const std::size_t width = shape.width(part);
    for (std::size_t i = 0; i * width < centroids.size(); ++i)
        std::copy_n(centroids.data() + i * width, width, rows + i * shape.dimensions + shape.begin(part));
}

// The centroids or leaves of a part one after the other: [count][width].
std::vector<float> packed_part(const TreeShape& shape, std::size_t part, const std::vector<float>& level,
                               std::size_t first, std::size_t count)
{
    return columns_of(shape, std::span(level).subspan(first * shape.dimensions, count * shape.dimensions), part);
}

// The rows of each of `lists` lists, in their order.
struct Groups {
    std::vector<std::size_t> begin;
    std::vector<std::uint32_t> members;

    Groups(std::span<const std::uint32_t> list_of_row, std::size_t lists)
        : begin(lists + 1, 0), members(list_of_row.size())
    {
        for (const std::uint32_t list : list_of_row) ++begin[list + 1];
        for (std::size_t list = 0; list < lists; ++list) begin[list + 1] += begin[list];
        std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t i = 0; i < list_of_row.size(); ++i)
            members[next[list_of_row[i]]++] = static_cast<std::uint32_t>(i);
    }
    // Copies the rows [width] of a list.
    std::vector<float> gather(std::size_t list, std::span<const float> rows, std::size_t width) const
    {
        std::vector<float> gathered((begin[list + 1] - begin[list]) * width);
        for (std::size_t i = begin[list]; i < begin[list + 1]; ++i)
            std::copy_n(rows.data() + members[i] * width, width, gathered.data() + (i - begin[list]) * width);
        return gathered;
    }
};

// Trains the tree of a part: its centroids, then the leaves of each of them.
void train_part(ProductTree& tree, std::size_t part, std::span<const float> rows, std::uint64_t seed, ThreadPool& pool,
                const CancelToken* cancel)
{
    const TreeShape& shape = tree.shape;
    const std::size_t width = shape.width(part);
    const std::vector<float> columns = columns_of(shape, rows, part);
    KMeansOptions training;
    training.clusters = shape.k1;
    training.iterations = level1_iterations;
    training.seed = seed;
    training.balanced = true;
    training.cancel = cancel;
    const std::vector<float> centroids = train_kmeans(columns, width, training, pool);
    put_columns(shape, part, centroids, tree.level1.data());
    std::vector<std::uint32_t> nearest(columns.size() / width);
    assign_to_centroids(Metric::l2, columns, width, centroids, nearest, pool, cancel);
    const Groups groups(nearest, shape.k1);
    training.clusters = shape.k2;
    training.iterations = level2_iterations;
    training.balanced = false;
    pool.parallel_for(shape.k1, 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t c = first; c < last; ++c) {
            if (cancel != nullptr) cancel->check();
            std::vector<float> members = groups.gather(c, columns, width);
            // A centroid without rows has leaves at its own place.
            if (members.empty()) members.assign(&centroids[c * width], &centroids[c * width] + width);
            KMeansOptions own = training;
            own.seed = seed + 1 + c;
            put_columns(shape, part, train_kmeans(members, width, own, caller_alone()),
                        tree.level2.data() + c * shape.k2 * shape.dimensions);
        }
    });
}

// The tree in the layout of assignment: for each part its centroids, and the leaves of each of them.
struct PackedTree {
    std::vector<std::vector<float>> centroids;            // [parts]
    std::vector<std::vector<std::vector<float>>> leaves;  // [parts][k1]

    explicit PackedTree(const ProductTree& tree)
    {
        const TreeShape& shape = tree.shape;
        leaves.resize(shape.parts);
        for (std::size_t part = 0; part < shape.parts; ++part) {
            centroids.push_back(packed_part(shape, part, tree.level1, 0, shape.k1));
            for (std::size_t c = 0; c < shape.k1; ++c)
                leaves[part].push_back(packed_part(shape, part, tree.level2, c * shape.k2, shape.k2));
        }
    }
};

// Finds the leaves of a part for rows [count][dimensions], on the caller's thread.
void descend(const TreeShape& shape, const PackedTree& packed, std::size_t part, std::span<const float> rows,
             std::uint16_t* leaves)
{
    const std::size_t width = shape.width(part);
    const std::vector<float> columns = columns_of(shape, rows, part);
    std::vector<std::uint32_t> nearest(columns.size() / width);
    assign_to_centroids(Metric::l2, columns, width, packed.centroids[part], nearest, caller_alone());
    const Groups groups(nearest, shape.k1);
    std::vector<std::uint32_t> leaf;
    for (std::size_t c = 0; c < shape.k1; ++c) {
        leaf.resize(groups.begin[c + 1] - groups.begin[c]);
        const std::vector<float> members = groups.gather(c, columns, width);
        assign_to_centroids(Metric::l2, members, width, packed.leaves[part][c], leaf, caller_alone());
        for (std::size_t i = 0; i < leaf.size(); ++i)
            leaves[groups.members[groups.begin[c] + i] * shape.parts + part] =
                static_cast<std::uint16_t>(c * shape.k2 + leaf[i]);
    }
}

}  // namespace

ProductTree train_tree(const TreeShape& shape, std::span<const float> rows, std::uint64_t seed, ThreadPool& pool,
                       const CancelToken* cancel, const TreeProgress& progress)
{
    ProductTree tree{shape, std::vector<float>(shape.k1 * shape.dimensions, 0.0F),
                     std::vector<float>(shape.leaves() * shape.dimensions, 0.0F)};
    if (rows.empty()) return tree;
    for (std::size_t part = 0; part < shape.parts; ++part) {
        if (progress) progress(part, shape.parts);
        train_part(tree, part, rows, seed + part * (most_level1 + 1), pool, cancel);
    }
    if (progress) progress(shape.parts, shape.parts);
    return tree;
}

void assign_leaves(const ProductTree& tree, std::span<const float> rows, std::span<std::uint16_t> leaves,
                   ThreadPool& pool, const CancelToken* cancel)
{
    const TreeShape& shape = tree.shape;
    const PackedTree packed(tree);
    pool.parallel_for(rows.size() / shape.dimensions, tree_rows_at_a_time, [&](std::size_t first, std::size_t last) {
        if (cancel != nullptr) cancel->check();
        for (std::size_t part = 0; part < shape.parts; ++part)
            descend(shape, packed, part, rows.subspan(first * shape.dimensions, (last - first) * shape.dimensions),
                    leaves.data() + first * shape.parts);
    });
}

}  // namespace pgwarp
