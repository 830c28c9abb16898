// Insertion of rows into a graph: finding the rows near one, and linking it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/space.h"

namespace pgwarp
{

// Scores between rows of an index, in the form in which it stores them.
class RowScores
{
public:
    virtual ~RowScores() = default;
    // out[i] = score of others[i], smaller is nearer.
    virtual void scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const = 0;
};

// For vectors. The space outlives this.
class SpaceScores : public RowScores
{
public:
    explicit SpaceScores(const GraphSpace& space) : space_(space) {}
    void scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const override;

private:
    const GraphSpace& space_;
};

// For bits [rows][words], which outlive this.
class BitScores : public RowScores
{
public:
    BitScores(std::span<const std::uint32_t> bits, std::size_t words) : bits_(bits), words_(words) {}
    void scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const override;

private:
    std::span<const std::uint32_t> bits_;
    std::size_t words_;
};

// Returns the `wanted` nearest to `row` of `others` and of the rows `found` with their scores, in order of (score,
// row). NaN counts as infinite.
std::vector<std::uint32_t> nearest_of(const RowScores& scores, std::size_t row, std::span<const std::uint32_t> others,
                                      std::size_t wanted, std::vector<std::pair<float, std::uint32_t>> found = {});

// Returns the `wanted` rows nearest to `row`, nearest first: of the rows before `first`, which have edges, those that a
// search that keeps `ef` rows finds; of [first, row), which have none yet, all.
std::vector<std::uint32_t> find_near(const RowScores& scores, const GraphEdges& edges,
                                     std::span<const std::uint32_t> seeds, std::size_t first, std::size_t row,
                                     std::size_t wanted, std::size_t ef, const CancelToken* cancel);

// Adds a row that has no edges yet: edges to rows of `near`, and back. A row without a free place gives up the edge
// with the most detours; where no edge has one, it gets no edge back.
void link_row(GraphEdges& edges, const RowScores& scores, std::uint32_t row, std::span<const std::uint32_t> near);

}  // namespace pgwarp
