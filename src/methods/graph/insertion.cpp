// The rows near a new one, and the edge that a full row gives up for it.
#include "methods/graph/insertion.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "methods/graph/graph.h"
#include "methods/graph/traversal.h"
#include "methods/rows/place_table.h"
#include "numeric/distance.h"

namespace pgwarp
{

void SpaceScores::scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const
{
    scores_gather(space_.metric(), space_.row(row), space_.rows().data(), others.data(), others.size(),
                  space_.dimensions(), out);
}

void BitScores::scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const
{
    const std::uint32_t* own = bits_.data() + row * words_;
    for (std::size_t i = 0; i < others.size(); ++i) {
        const std::uint32_t* other = bits_.data() + others[i] * words_;
        int differing = 0;
        for (std::size_t w = 0; w < words_; ++w) differing += std::popcount(own[w] ^ other[w]);
        out[i] = static_cast<float>(differing);
    }
}

namespace
{

// Scores of one row, for a search.
class OneRow : public Scorer
{
public:
    OneRow(const RowScores& scores, std::size_t row) : scores_(scores), row_(row) {}
    void scores(std::span<const std::uint32_t> rows, float* out) const override { scores_.scores(row_, rows, out); }

private:
    const RowScores& scores_;
    std::size_t row_;
};

}  // namespace

std::vector<std::uint32_t> nearest_of(const RowScores& scores, std::size_t row, std::span<const std::uint32_t> others,
                                      std::size_t wanted, std::vector<std::pair<float, std::uint32_t>> found)
{
    std::vector<float> values(others.size());
    scores.scores(row, others, values.data());
    for (std::size_t i = 0; i < others.size(); ++i)
        found.emplace_back(std::isnan(values[i]) ? std::numeric_limits<float>::infinity() : values[i], others[i]);
    std::sort(found.begin(), found.end());
    found.resize(std::min(found.size(), wanted));
    std::vector<std::uint32_t> nearest;
    for (const auto& [score, other] : found) nearest.push_back(other);
    return nearest;
}

std::vector<std::uint32_t> find_near(const RowScores& scores, const GraphEdges& edges,
                                     std::span<const std::uint32_t> seeds, std::size_t first, std::size_t row,
                                     std::size_t wanted, std::size_t ef, const CancelToken* cancel)
{
    thread_local TraversalScratch scratch;
    traverse(edges, seeds, ef, {}, OneRow(scores, row), cancel, scratch);
    std::vector<std::pair<float, std::uint32_t>> found;
    for (const BestRows::Entry& entry : scratch.best.entries()) found.emplace_back(entry.score, entry.row);
    std::vector<std::uint32_t> unlinked(row - first);
    std::iota(unlinked.begin(), unlinked.end(), static_cast<std::uint32_t>(first));
    return nearest_of(scores, row, unlinked, wanted, std::move(found));
}

namespace
{

// Returns the place that an edge to `row` takes among the places of `from`, all in use: that of the edge with the most
// detours, over nearer neighbours of `from`; of equal ones the longest. The end where no edge has a detour.
std::size_t place_to_give(const GraphEdges& edges, const RowScores& scores, std::uint32_t from, std::uint32_t row)
{
    const std::span<const std::uint32_t> places = edges.of(from);
    thread_local PlaceTable known;
    known.assign(places);
    std::vector<float> own(places.size());
    scores.scores(from, places, own.data());
    float to_row = 0;
    scores.scores(from, {&row, 1}, &to_row);
    std::vector<std::size_t> detours(places.size(), 0);
    const auto count = [&](std::uint32_t by, float distance) {
        for (const std::uint32_t to : edges.of(by)) {
            if (to == no_neighbour) break;
            const std::uint32_t place = known.place_of(to);
            if (place != PlaceTable::none && distance < own[place]) ++detours[place];
        }
    };
    for (std::size_t i = 0; i < places.size(); ++i) count(places[i], own[i]);
    count(row, to_row);
    std::size_t best = 0;
    for (std::size_t i = 1; i < places.size(); ++i) {
        if (std::pair(detours[i], own[i]) > std::pair(detours[best], own[best])) best = i;
    }
    return detours[best] > 0 ? best : places.size();
}

}  // namespace

void link_row(GraphEdges& edges, const RowScores& scores, std::uint32_t row, std::span<const std::uint32_t> near)
{
    insert_row(edges, row, near, [&](std::uint32_t from) { return place_to_give(edges, scores, from, row); });
}

}  // namespace pgwarp
