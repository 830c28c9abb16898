// graph: a fixed-degree proximity graph (SONG: Zhao, Tan, Li, ICDE 2020), made from a k-NN graph by pruning by rank
// and adding reverse edges, searched from routed seeds.
//
// Arrays, small ones first:
//   seeds      u32 [seeds][1]       row numbers of the rows from which searches begin; each prefix is spread like the
//                                   whole, so that a searcher may compare a query with any number of them
//   half_mean  f32 [1][d], half_scale f32 [1][2] = {scale, largest error}   (vectors = half)
//   projection f32 [bits][d + 1]    random directions and, last, a threshold (vectors = bits; SONG section 7): bit b of
//                                   a row, bit b % 32 of word b / 32, says whether its product with direction b is
//                                   above
//   neighbours u32 [rows][degree]   out-edges, the most useful first; unused places hold no_neighbour and come last
//   edge_changes u32 [changes][3]   {row, place, neighbour}: changes of neighbours since that was written, in order
//                                   (edge_changes.h); absent where there are none
//   bits       u32 [rows][bits/32]  (vectors = bits), half f16 [rows][d] (half), vectors f32 [rows][d] (full; rows of
//                                   bits themselves: u32)
// All but seeds, half_*, projection and edge_changes are in row order. No row is its own neighbour, or has a neighbour
// twice. Every row can be reached from the first seed, except dead rows that a merge has removed from the graph: these
// have no edges, and no edge leads to them.
//
// Effort is ef_search: the number of best rows that a search keeps (SONG section 5.1: the bounded queue). Rows that
// died since the last merge are passed through and not counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/graph/description.h"
#include "methods/method.h"
#include "methods/recall/searches.h"

namespace pgwarp
{

inline constexpr std::uint32_t no_neighbour = no_link;

// Options with every 0 resolved to a number.
struct GraphOptions {
    std::size_t degree = 32;        // out-edges of a row
    std::size_t build_degree = 48;  // neighbours of a row in the k-NN graph that is pruned
    GraphVectors vectors = GraphVectors::full;
    std::size_t bits = 0;  // of a row where vectors = bits, a multiple of 32

    // Throws BadRequest for options that are invalid for these dimensions.
    static GraphOptions resolve(const ParameterList& options, std::size_t dimensions);
    ParameterList as_parameters() const;
};

// Returns the shapes of the arrays of an index but edge_changes, small ones first.
std::vector<ArrayShape> graph_arrays(const IndexShape& shape, const GraphOptions& options, std::size_t rows,
                                     std::size_t seeds);
// Returns the shape of the array that holds the rows: vectors, half or bits.
ArrayShape graph_row_array(const IndexShape& shape, const GraphOptions& options, std::size_t rows);
// Throws BadRequest unless these are the arrays of an index with rows.
void require_graph_arrays(std::span<const ArrayShape> arrays, const IndexShape& shape, const GraphOptions& options);

// Return the usual number of seeds of an index of `rows` rows, and the largest, where many clusters lie apart.
std::size_t seed_count(std::size_t rows);
std::size_t most_seeds(std::size_t rows);

// Returns the rules by which recall is measured along ef_search, for an index of `rows` rows.
RecallRules graph_recall_rules(std::size_t rows);

std::unique_ptr<Builder> make_graph_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_graph_searcher(const IndexShape& shape, const ParameterList& options,
                                              std::span<const ArrayShape> arrays);

}  // namespace pgwarp
