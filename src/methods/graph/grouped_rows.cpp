// The k-NN graph by groups. Each row is compared with the groups nearest it; rows of a group with the same other group
// are the queries of one tile.
#include <algorithm>

#include "methods/graph/build_loop.h"
#include "methods/graph/graph.h"
#include "methods/graph/nearest_rows.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_queries = 192;  // rows of a group that are queries at once
constexpr std::size_t tile_rows = 512;     // compared with these at once
constexpr double far_out = 1e4;         // least squared norm of a centre far out, in mean squared distances of its rows
constexpr std::size_t fewest_near = 8;  // least number of groups that a row is compared with
constexpr std::size_t choice = 4;  // groups that a row chooses from, in multiples of those that it is compared with

class Grouping
{
public:
    Grouping(const GraphSpace& space, const RowGroups& groups, std::size_t compared, NearestRows& nearest)
        : space_(space), groups_(groups), compared_(compared), nearest_(nearest)
    {
        const std::size_t rows = std::max<std::size_t>(groups.rows.size(), 1);
        wanted_ = std::clamp(compared * groups.count() / rows, std::min(fewest_near, groups.count()), groups.count());
    }

    void prepare(ThreadPool& pool)
    {
        norms_.resize(groups_.rows.size());
        centroid_norms_.resize(groups_.count());
        moved_.resize(groups_.count());
        if (space_.has_bits()) return;  // compared without norms
        pool.parallel_for(norms_.size(), 1024, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                norms_[i] = squared_norm(space_.row(groups_.rows[i]), space_.dimensions());
        });
        squared_norms(groups_.centroids.data(), groups_.count(), groups_.dimensions, centroid_norms_.data());
        pool.parallel_for(moved_.size(), 16, [&](std::size_t begin, std::size_t end) {
            for (std::size_t group = begin; group < end; ++group) moved_[group] = is_far_out(group);
        });
    }

    void fill(std::size_t group, const CancelToken* cancel) const
    {
        const std::span<const std::uint32_t> own = groups_.of(group);
        if (own.empty()) return;
        const std::vector<std::uint32_t> near = near_groups(group);
        for (std::size_t first = 0; first < own.size(); first += most_queries)
            fill_some(own.subspan(first, std::min(most_queries, own.size() - first)), first, near,
                      moved_[group] != 0 ? groups_.centroid(group) : nullptr, cancel);
    }

private:
    // The buffers of a thread.
    struct Scratch {
        std::vector<float> queries;
        std::vector<float> rows;
        std::vector<float> norms;
        std::vector<float> tile;
        std::vector<std::vector<std::uint32_t>> wanting;  // [near group]: the queries that are compared with it
    };

    // Products of rows that are far from the origin and near each other lose their differences; such a group is moved
    // to the origin.
    bool is_far_out(std::size_t group) const
    {
        const std::span<const std::uint32_t> rows = groups_.of(group);
        if (rows.empty()) return false;
        std::vector<float> found(rows.size());
        scores_gather(Metric::l2, groups_.centroid(group), space_.rows().data(), rows.data(), rows.size(),
                      space_.dimensions(), found.data());
        double sum = 0;
        for (const float distance : found) sum += distance;
        return centroid_norms_[group] > far_out * sum / static_cast<double>(rows.size());
    }

    // Returns the groups near this one, nearest first, itself at the front.
    std::vector<std::uint32_t> near_groups(std::size_t group) const
    {
        std::vector<float> found(groups_.count());
        scores(space_.grouping(), groups_.centroid(group), groups_.centroids.data(), found.size(), groups_.dimensions,
               found.data());
        found[group] = -1;
        TopK best(choice * wanted_);
        best.push_block(found.data(), found.size(), 0);
        std::vector<std::uint32_t> near;
        for (const Candidate& candidate : best.take_sorted()) near.push_back(candidate.row);
        return near;
    }

    // origin: subtracted from all rows; may be null.
    void fill_some(std::span<const std::uint32_t> rows, std::size_t first, std::span<const std::uint32_t> near,
                   const float* origin, const CancelToken* cancel) const
    {
        thread_local Scratch scratch;
        choose_groups(rows, near, scratch);
        std::vector<TopK> best(rows.size(), TopK(nearest_.width + 1));
        for (std::size_t i = 0; i < near.size(); ++i) {
            if (cancel != nullptr) cancel->check();
            if (scratch.wanting[i].empty()) continue;
            gather(rows, scratch.wanting[i], origin, scratch.queries);
            compare(scratch.wanting[i], first, near[i], origin, best, scratch);
        }
        for (std::size_t i = 0; i < rows.size(); ++i) keep(best[i], rows[i]);
    }

    // Each row is compared with its own group and the nearest of the others.
    void choose_groups(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> near, Scratch& scratch) const
    {
        std::vector<std::uint32_t> all(rows.size());
        for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
        std::vector<float> norms(near.size());
        for (std::size_t i = 0; i < near.size(); ++i) norms[i] = centroid_norms_[near[i]];
        gather(rows, all, nullptr, scratch.queries);
        scratch.tile.resize(rows.size() * near.size());
        score_tile_gather(space_.grouping(), scratch.queries.data(), rows.size(), groups_.centroids.data(), near.data(),
                          norms.data(), near.size(), groups_.dimensions, scratch.tile.data());
        scratch.wanting.resize(std::max(scratch.wanting.size(), near.size()));
        for (std::size_t i = 0; i < near.size(); ++i) scratch.wanting[i].clear();
        scratch.wanting[0] = all;
        for (std::size_t q = 0; q < rows.size(); ++q) {
            TopK best(wanted_);
            best.push_block(scratch.tile.data() + q * near.size(), near.size(), 0);
            for (const Candidate& candidate : best.take_sorted())
                if (candidate.row != 0) scratch.wanting[candidate.row].push_back(static_cast<std::uint32_t>(q));
        }
    }

    void gather(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> which, const float* origin,
                std::vector<float>& out) const
    {
        const std::size_t dimensions = space_.dimensions();
        out.resize(which.size() * dimensions);
        for (std::size_t i = 0; i < which.size(); ++i)
            copy_row(space_.row(rows[which[i]]), origin, out.data() + i * dimensions);
    }

    void copy_row(const float* row, const float* origin, float* out) const
    {
        if (origin == nullptr) {
            std::copy_n(row, space_.dimensions(), out);
        } else {
            for (std::size_t d = 0; d < space_.dimensions(); ++d) out[d] = row[d] - origin[d];
        }
    }

    // Offers rows of a group, as places in groups.rows. Of a very large group, whose rows are probably equal, it offers
    // a part: in the queries' own group the part around them.
    void compare(std::span<const std::uint32_t> which, std::size_t first_query, std::uint32_t group,
                 const float* origin, std::vector<TopK>& best, Scratch& scratch) const
    {
        const std::size_t size = groups_.of(group).size();
        const std::size_t most = std::max(compared_, 2 * most_queries);
        const std::size_t begin =
            size <= most ? 0 : std::min(first_query - std::min(first_query, most / 2), size - most);
        const std::size_t end = std::min(size, begin + most);
        for (std::size_t row = begin; row < end; row += tile_rows) {
            const std::size_t place = groups_.begin[group] + row;
            const std::size_t count = std::min(tile_rows, end - row);
            score_rows(which.size(), place, count, origin, scratch);
            for (std::size_t q = 0; q < which.size(); ++q)
                best[which[q]].push_block(scratch.tile.data() + q * count, count, static_cast<std::uint32_t>(place));
        }
    }

    // Computes the tile of these queries and `count` rows from a place on.
    void score_rows(std::size_t queries, std::size_t place, std::size_t count, const float* origin,
                    Scratch& scratch) const
    {
        const std::size_t dimensions = space_.dimensions();
        const std::uint32_t* rows = groups_.rows.data() + place;
        scratch.tile.resize(queries * count);
        if (origin == nullptr) {
            return score_tile_gather(space_.metric(), scratch.queries.data(), queries, space_.rows().data(), rows,
                                     norms_.data() + place, count, dimensions, scratch.tile.data());
        }
        scratch.rows.resize(count * dimensions);
        scratch.norms.resize(count);
        for (std::size_t i = 0; i < count; ++i)
            copy_row(space_.row(rows[i]), origin, scratch.rows.data() + i * dimensions);
        squared_norms(scratch.rows.data(), count, dimensions, scratch.norms.data());
        score_tile(space_.metric(), scratch.queries.data(), queries, scratch.rows.data(), scratch.norms.data(), count,
                   dimensions, scratch.tile.data());
    }

    void keep(TopK& best, std::uint32_t row) const
    {
        std::size_t kept = 0;
        std::uint32_t* out = nearest_.of(row);
        for (const Candidate& candidate : best.take_sorted()) {
            const std::uint32_t other = groups_.rows[candidate.row];
            if (other != row && kept < nearest_.width) out[kept++] = other;
        }
        std::fill(out + kept, out + nearest_.width, no_neighbour);
    }

    const GraphSpace& space_;
    const RowGroups& groups_;
    std::size_t compared_;
    std::size_t wanted_;  // groups that a row is compared with
    NearestRows& nearest_;
    std::vector<float> norms_;  // squared, in the order of groups_.rows
    std::vector<float> centroid_norms_;
    std::vector<std::uint8_t> moved_;  // 1: a group that is far out
};

}  // namespace

NearestRows grouped_nearest_rows(const GraphSpace& space, const RowGroups& groups, std::size_t width,
                                 std::size_t compared, const BuildProgress& progress, ThreadPool& pool)
{
    NearestRows nearest{width, {}};
    nearest.rows.resize(space.count() * width);
    std::fill(nearest.rows.begin(), nearest.rows.end(), no_neighbour);
    Grouping grouping(space, groups, compared, nearest);
    grouping.prepare(pool);
    for_rows(groups.count(), 8 * pool.threads(), 1, "comparing rows", progress, pool,
             [&](std::size_t begin, std::size_t end) {
                 for (std::size_t group = begin; group < end; ++group) grouping.fill(group, progress.cancel);
             });
    return nearest;
}

}  // namespace pgwarp
