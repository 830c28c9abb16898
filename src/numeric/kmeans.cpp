// Lloyd's iterations: assignment in a frame that keeps it precise, updates by segmented sums, moves of small clusters.
#include "numeric/kmeans.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "numeric/distance.h"
#include "numeric/kmeans_rules.h"
#include "numeric/nearest.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t tile_rows = 240;  // rows assigned at a time; a multiple of the kernel's group of rows
constexpr float largest = 1e15F;        // magnitude to which values are scaled down: squares and their sums stay finite

// A space in which assignment is precise: translated so that the centroids surround the origin, scaled down if huge.
struct Frame {
    std::vector<float> origin;
    float scale = 1.0F;

    void apply(const float* in, std::size_t dimensions, float* out) const
    {
        for (std::size_t d = 0; d < dimensions; ++d) {
            const float value = in[d] * scale - origin[d];
            out[d] = std::min(std::max(value, -largest), largest);
        }
    }
};

Frame make_frame(std::span<const float> centroids, std::size_t dimensions, bool centred)
{
    Frame frame;
    frame.origin.assign(dimensions, 0.0F);
    float highest = 0;
    for (const float value : centroids) highest = std::max(highest, std::fabs(value));
    if (highest > largest) frame.scale = std::ldexp(1.0F, -std::ilogb(highest / largest) - 2);
    const std::size_t count = centroids.size() / dimensions;
    if (!centred || count == 0) return frame;
    std::vector<double> sum(dimensions, 0.0);
    for (std::size_t i = 0; i < centroids.size(); ++i) sum[i % dimensions] += centroids[i];
    for (std::size_t d = 0; d < dimensions; ++d)
        frame.origin[d] = static_cast<float>(sum[d] / static_cast<double>(count)) * frame.scale;
    return frame;
}

// Assign rows in the frame by smallest |c|^2/2 - c.row.
void assign_l2(std::span<const float> rows, std::size_t dimensions, std::span<const float> centroids,
               std::span<std::uint32_t> assignment, ThreadPool& pool, const CancelToken* cancel)
{
    const Frame frame = make_frame(centroids, dimensions, true);
    std::vector<float> moved(centroids.size());
    for (std::size_t i = 0; i < centroids.size(); i += dimensions)
        frame.apply(centroids.data() + i, dimensions, moved.data() + i);
    const PackedCentroids packed(moved, dimensions);
    pool.parallel_for(assignment.size(), tile_rows, [&](std::size_t begin, std::size_t end) {
        if (cancel != nullptr) cancel->check();
        thread_local std::vector<float> tile;
        tile.resize(tile_rows * dimensions);
        for (std::size_t i = begin; i < end; ++i)
            frame.apply(rows.data() + i * dimensions, dimensions, tile.data() + (i - begin) * dimensions);
        find_nearest(packed, tile.data(), end - begin, dimensions, assignment.data() + begin);
    });
}

// Assign by largest inner product: the same search with the centroids' norms set to 0.
void assign_dot(Metric metric, std::span<const float> rows, std::size_t dimensions, std::span<const float> centroids,
                std::span<std::uint32_t> assignment, ThreadPool& pool, const CancelToken* cancel)
{
    const std::size_t count = centroids.size() / dimensions;
    pool.parallel_for(assignment.size(), 64, [&](std::size_t begin, std::size_t end) {
        if (cancel != nullptr) cancel->check();
        std::vector<float> tile((end - begin) * count);
        score_tile(metric, rows.data() + begin * dimensions, end - begin, centroids.data(), nullptr, count, dimensions,
                   tile.data());
        for (std::size_t i = begin; i < end; ++i) {
            const float* values = tile.data() + (i - begin) * count;
            const auto best = static_cast<std::size_t>(std::min_element(values, values + count) - values);
            assignment[i] = static_cast<std::uint32_t>(best);
        }
    });
}

// One training run: rows, moving centroids, and the assignment of rows to clusters.
class Trainer
{
public:
    Trainer(std::span<const float> rows, std::size_t dimensions, const KMeansOptions& options, ThreadPool& pool)
        : rows_(rows),
          dimensions_(dimensions),
          count_(rows.size() / dimensions),
          options_(options),
          pool_(pool),
          centroids_(options.clusters * dimensions, 0.0F),
          assignment_(count_, std::numeric_limits<std::uint32_t>::max())
    {
    }

    std::vector<float> run()
    {
        choose_first();
        if (count_ > options_.clusters) iterate();
        return std::move(centroids_);
    }

private:
    const float* row(std::size_t i) const { return rows_.data() + i * dimensions_; }
    float* centroid(std::size_t c) { return centroids_.data() + c * dimensions_; }

    void choose_first()
    {
        if (count_ == 0) return;
        const std::vector<std::uint32_t> chosen = choose_first_rows(
            count_, options_.clusters, options_.seed, [this](auto numbers) { return hashes_of(numbers); });
        for (std::size_t c = 0; c < options_.clusters; ++c) std::copy_n(row(chosen[c]), dimensions_, centroid(c));
        if (options_.spherical) normalise();
    }

    std::vector<std::uint64_t> hashes_of(std::span<const std::uint32_t> numbers) const
    {
        std::vector<std::uint64_t> hashes(numbers.size(), 0);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            for (std::size_t d = 0; d < dimensions_; ++d)
                hashes[i] += row_hash_term(std::bit_cast<std::uint32_t>(row(numbers[i])[d] + 0.0F), d);
        }
        return hashes;
    }

    void iterate()
    {
        std::vector<std::uint32_t> previous(count_);
        for (std::size_t iteration = 0; iteration < options_.iterations; ++iteration) {
            if (options_.progress) options_.progress(iteration, options_.iterations);
            previous = assignment_;
            assign_l2(rows_, dimensions_, centroids_, assignment_, pool_, options_.cancel);
            group();
            update();
            fill_small(iteration + 1 == options_.iterations);
            if (options_.spherical) normalise();
            if (settled(previous)) break;
        }
        if (options_.progress) options_.progress(options_.iterations, options_.iterations);
    }

    bool settled(const std::vector<std::uint32_t>& previous) const
    {
        std::size_t changed = 0;
        for (std::size_t i = 0; i < count_; ++i) changed += static_cast<std::size_t>(previous[i] != assignment_[i]);
        return changed * 1000 < count_ && !moved_;
    }

    // Sort rows by cluster, and by row number within a cluster.
    void group()
    {
        begin_.assign(options_.clusters + 1, 0);
        for (const std::uint32_t c : assignment_) ++begin_[c + 1];
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        members_.resize(count_);
        std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
        for (std::size_t i = 0; i < count_; ++i) members_[next[assignment_[i]]++] = static_cast<std::uint32_t>(i);
    }

    std::size_t size(std::size_t c) const { return begin_[c + 1] - begin_[c]; }

    // Sums run in row order within a cluster, so that any number of threads gives the same bits.
    void update()
    {
        pool_.parallel_for(options_.clusters, 16, [&](std::size_t first, std::size_t last) {
            std::vector<double> sum(dimensions_);
            for (std::size_t c = first; c < last; ++c) {
                if (size(c) == 0) continue;
                std::fill(sum.begin(), sum.end(), 0.0);
                for (std::size_t i = begin_[c]; i < begin_[c + 1]; ++i) {
                    const float* values = row(members_[i]);
                    for (std::size_t d = 0; d < dimensions_; ++d) sum[d] += values[d];
                }
                const double inverse = 1.0 / static_cast<double>(size(c));
                for (std::size_t d = 0; d < dimensions_; ++d) centroid(c)[d] = static_cast<float>(sum[d] * inverse);
            }
        });
    }

    // Empty clusters move next to the largest ones; so do small clusters when balancing, except before the last
    // iteration.
    void fill_small(bool last)
    {
        moved_ = false;
        std::vector<std::uint32_t> order(options_.clusters);
        std::iota(order.begin(), order.end(), 0U);
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return size(a) > size(b); });
        const std::size_t small =
            options_.balanced && !last ? small_cluster(count_ / options_.clusters, size(order[order.size() / 2])) : 0;
        if (size(order.back()) > small) return;
        const std::vector<std::size_t> donors = find_donors(order);
        std::size_t next = 0;
        for (std::size_t place = order.size(); place-- > 0 && next < most_gifts * donors.size(); ++next) {
            const std::size_t donor = donors[next % donors.size()];
            if (size(order[place]) > small || donor >= place) break;
            move(order[place], place, order[donor]);
            moved_ = true;
        }
    }

    // Places in `order` of the clusters that may be split.
    std::vector<std::size_t> find_donors(const std::vector<std::uint32_t>& order)
    {
        std::vector<std::size_t> donors;
        for (std::size_t place = 0; place < donor_places(order.size()); ++place)
            if (holds_different_rows(order[place])) donors.push_back(place);
        return donors;
    }

    bool holds_different_rows(std::size_t c)
    {
        if (size(c) < 2) return false;
        for (std::size_t probe = 0; probe < probed_members; ++probe) {
            const float* values = row(members_[begin_[c] + probe * size(c) / probed_members]);
            float difference = 0;
            float magnitude = 0;
            for (std::size_t d = 0; d < dimensions_; ++d) {
                difference = std::max(difference, std::fabs(values[d] - centroid(c)[d]));
                magnitude = std::max(magnitude, std::fabs(centroid(c)[d]));
            }
            if (differs_from_mean(difference, magnitude)) return true;
        }
        return false;
    }

    // An empty cluster moves to a row of the donor; any other cluster takes half of the donor.
    void move(std::size_t c, std::size_t place, std::size_t from)
    {
        const float* picked = row(members_[begin_[from] + pick_member(options_.seed, from, place, size(from))]);
        if (size(c) == 0) {
            std::copy_n(picked, dimensions_, centroid(c));
            return;
        }
        for (std::size_t d = 0; d < dimensions_; ++d) {
            const SplitValue halves = split_value(centroid(from)[d], picked[d]);
            centroid(c)[d] = halves.toward;
            centroid(from)[d] = halves.away;
        }
    }

    void normalise()
    {
        for (std::size_t c = 0; c < options_.clusters; ++c) {
            const double norm = canonical_norm(centroid(c), dimensions_);
            if (!(norm > 0)) continue;
            for (std::size_t d = 0; d < dimensions_; ++d) centroid(c)[d] = static_cast<float>(centroid(c)[d] / norm);
        }
    }

    std::span<const float> rows_;
    std::size_t dimensions_;
    std::size_t count_;
    const KMeansOptions& options_;
    ThreadPool& pool_;
    std::vector<float> centroids_;
    std::vector<std::uint32_t> assignment_;
    std::vector<std::size_t> begin_;
    std::vector<std::uint32_t> members_;
    bool moved_ = false;
};

}  // namespace

std::vector<float> train_kmeans(std::span<const float> rows, std::size_t dimensions, const KMeansOptions& options,
                                ThreadPool& pool)
{
    return Trainer(rows, dimensions, options, pool).run();
}

void assign_to_centroids(Metric metric, std::span<const float> rows, std::size_t dimensions,
                         std::span<const float> centroids, std::span<std::uint32_t> assignment, ThreadPool& pool,
                         const CancelToken* cancel)
{
    if (centroids.empty() || assignment.empty()) return;
    if (metric == Metric::l2) {
        assign_l2(rows, dimensions, centroids, assignment, pool, cancel);
    } else {
        assign_dot(metric, rows, dimensions, centroids, assignment, pool, cancel);
    }
}

}  // namespace pgwarp
