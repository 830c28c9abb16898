// Finding the rows near one that a graph is to take in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/space.h"

namespace pgwarp
{

// How near the rows of an index are to one of them, in the form in which it keeps them.
class RowScores
{
public:
    virtual ~RowScores() = default;
    // out[i] = score of others[i], smaller is nearer.
    virtual void scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const = 0;
};

// Of vectors. The space outlives this.
class SpaceScores : public RowScores
{
public:
    explicit SpaceScores(const GraphSpace& space) : space_(space) {}
    void scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const override;

private:
    const GraphSpace& space_;
};

// Of bits [rows][words], which outlive this.
class BitScores : public RowScores
{
public:
    BitScores(std::span<const std::uint32_t> bits, std::size_t words) : bits_(bits), words_(words) {}
    void scores(std::size_t row, std::span<const std::uint32_t> others, float* out) const override;

private:
    std::span<const std::uint32_t> bits_;
    std::size_t words_;
};

// The `wanted` rows nearest to `row`, nearest first, as far as a search that keeps `ef` finds them among the rows
// before `first`, which have their edges; and all of [first, row), which have none yet, are compared.
std::vector<std::uint32_t> find_near(const RowScores& scores, const GraphEdges& edges,
                                     std::span<const std::uint32_t> seeds, std::size_t first, std::size_t row,
                                     std::size_t wanted, std::size_t ef, const CancelToken* cancel);

// Adds a row that has no edges yet: edges to rows of `near` and back. A row whose places are all taken gives up the
// edge of which most others make detours; where there is none, it has no edge back.
void link_row(GraphEdges& edges, const RowScores& scores, std::uint32_t row, std::span<const std::uint32_t> near);

}  // namespace pgwarp
