// Groups by balanced k-means over a sample, and the rows nearest their centroids.
#include "methods/graph/row_groups.h"

#include <algorithm>
#include <numeric>

#include "methods/graph/bit_groups.h"
#include "methods/graph/graph.h"
#include "numeric/distance.h"
#include "numeric/kmeans.h"
#include "numeric/kmeans_rules.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t group_seed = 0x67726f75;
constexpr std::size_t sampled_per_group = 32;
constexpr std::size_t iterations = 6;

std::vector<float> train_centroids(const GraphSpace& space, std::size_t wanted, const BuildProgress& progress,
                                   ThreadPool& pool)
{
    if (space.has_bits()) return choose_bit_centres(space, wanted, group_seed, progress, pool);
    progress.report("grouping rows", 0, space.count());
    const std::vector<float> sample = gather_rows(space.rows().data(), space.dimensions(),
                                                  sample_rows(space.count(), wanted * sampled_per_group, group_seed));
    KMeansOptions training;
    training.clusters = wanted;
    training.iterations = iterations;
    training.seed = group_seed;
    training.balanced = true;
    training.cancel = progress.cancel;
    training.progress = [&](std::size_t done, std::size_t total) { progress.report("grouping rows", done, total); };
    return train_kmeans(sample, space.dimensions(), training, pool);
}

// Returns the group of each row.
std::vector<std::uint32_t> assign_rows(const GraphSpace& space, std::span<const float> centroids,
                                       const BuildProgress& progress, ThreadPool& pool)
{
    if (space.has_bits()) return assign_bits(space, centroids, progress, pool);
    const std::size_t dimensions = space.dimensions();
    const std::size_t groups = centroids.size() / dimensions;
    // A step takes less than 100 ms.
    const std::size_t step = std::clamp<std::size_t>((std::size_t{1} << 31) / (groups * dimensions), 1024, 65536);
    std::vector<std::uint32_t> group_of(space.count());
    for (std::size_t first = 0; first < group_of.size(); first += step) {
        progress.report("assigning rows", first, group_of.size());
        const std::size_t count = std::min(step, group_of.size() - first);
        assign_to_centroids(Metric::l2, space.rows().subspan(first * dimensions, count * dimensions), dimensions,
                            centroids, std::span(group_of).subspan(first, count), pool, progress.cancel);
    }
    return group_of;
}

}  // namespace

RowGroups group_rows(const GraphSpace& space, std::size_t wanted, RowBitmap left_out, const BuildProgress& progress,
                     ThreadPool& pool)
{
    RowGroups groups{space.dimensions(), train_centroids(space, wanted, progress, pool), {}, {}};
    const std::vector<std::uint32_t> group_of = assign_rows(space, groups.centroids, progress, pool);
    groups.begin.assign(wanted + 1, 0);
    for (std::size_t row = 0; row < group_of.size(); ++row)
        groups.begin[group_of[row] + 1] += bit_is_set(left_out, row) ? 0 : 1;
    std::partial_sum(groups.begin.begin(), groups.begin.end(), groups.begin.begin());
    groups.rows.resize(groups.begin.back());
    std::vector<std::uint32_t> next(groups.begin.begin(), groups.begin.end() - 1);
    for (std::size_t row = 0; row < group_of.size(); ++row)
        if (!bit_is_set(left_out, row)) groups.rows[next[group_of[row]]++] = static_cast<std::uint32_t>(row);
    return groups;
}

std::vector<std::uint32_t> central_rows(const GraphSpace& space, const RowGroups& groups, ThreadPool& pool)
{
    std::vector<std::uint32_t> central(groups.count(), no_neighbour);
    pool.parallel_for(groups.count(), 8, [&](std::size_t begin, std::size_t end) {
        std::vector<float> found;
        for (std::size_t group = begin; group < end; ++group) {
            const std::span<const std::uint32_t> rows = groups.of(group);
            if (rows.empty()) continue;
            found.resize(rows.size());
            scores_gather(space.grouping(), groups.centroid(group), space.rows().data(), rows.data(), rows.size(),
                          space.dimensions(), found.data());
            central[group] =
                rows[static_cast<std::size_t>(std::min_element(found.begin(), found.end()) - found.begin())];
        }
    });
    std::vector<std::uint32_t> drawn;
    for (const std::uint32_t group : draw_rows(central.size(), central.size(), group_seed))
        if (central[group] != no_neighbour) drawn.push_back(central[group]);
    return drawn;
}

}  // namespace pgwarp
