// Line quantization (Wieschollek et al., 2016, section 3.3). The dimensions are split into line parts, pieces of the
// parts of the tree. In each, a row is replaced by its projection to a line through two centroids of the first level:
// (1 - lambda) c_i + lambda c_j. A row keeps one byte for the line and one for lambda. The distance of a query to that
// point follows from the distances to c_i and c_j, which the descent of the tree computes anyway (equation 9).
//
// A byte cannot number all k1 (k1 - 1) / 2 pairs, so a line part has a table of at most 256 lines, chosen greedily:
// each line in turn is the pair that lowers the error of a sample the most, among the pairs that are nearest to a row
// of it. SIFT, 2,016 pairs: the mean squared error is 29,200 with 8 line parts, 10,700 with 16 and 1,690 with 32; with
// all pairs, which take two bytes, 27,100, 9,350 and 1,210. In 16 line parts, the pairs that are nearest to the most
// rows leave 11,200.
//
// A query's terms of a line: the score of a place b is base + b slope + b^2 s^2 c^2. The last term is the same for all
// queries, so a searcher adds it up a row when it loads: line_bias().
//
// With b^2 = |y - c_i|^2, a^2 = |y - c_j|^2, c^2 = |c_i - c_j|^2, p = lambda of the byte 0, s = its step, and
// lambda = p + s place, equation 9 is b^2 + lambda (a^2 - b^2 - c^2) + lambda^2 c^2, so that
//   base = b^2 + p (a^2 - b^2 - c^2) + p^2 c^2, slope = s (a^2 - b^2 - c^2) + 2 p s c^2.
// Inner products take -y.c_i for b^2, -y.c_j for a^2, and 0 for c^2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/pqtree/tree.h"
#include "numeric/metric.h"

namespace pgwarp
{

inline constexpr std::size_t most_lines = 256;         // of a line part
inline constexpr std::size_t line_sample_rows = 1024;  // that choose the lines

struct LineShape {
    TreeShape tree;
    std::size_t line_parts = 1;  // a multiple of tree.parts; no part of the tree has fewer dimensions than pieces

    std::size_t pieces() const { return line_parts / tree.parts; }  // of a part of the tree
    std::size_t lines() const { return std::min(most_lines, tree.k1 * (tree.k1 - 1) / 2); }
    std::size_t part(std::size_t line_part) const { return line_part / pieces(); }
    std::size_t begin(std::size_t line_part) const
    {
        const std::size_t of = line_part == line_parts ? tree.parts - 1 : part(line_part);
        return tree.begin(of) + piece_begin(tree.width(of), pieces(), line_part - of * pieces());
    }
    std::size_t width(std::size_t line_part) const { return begin(line_part + 1) - begin(line_part); }
};

// Line l of line part p has the number p * lines() + l.
struct LineTable {
    LineShape shape;
    std::vector<std::uint8_t> ends;  // [line_parts * lines][2]: the centroids i < j
    // [line_parts * lines][2]: lambda of the byte 0, and its step for each byte. Bytes are equal steps of length along
    // all lines of a line part, around the place of the sample's mean.
    std::vector<float> places;

    std::size_t end(std::size_t line, std::size_t side) const { return ends[2 * line + side]; }
    float lambda(std::size_t line, std::uint8_t place) const
    {
        return places[2 * line] + places[2 * line + 1] * static_cast<float>(place);
    }
};

// Chooses the lines for rows [count][dimensions]. The same rows give the same table for any size of the pool.
LineTable choose_lines(const ProductTree& tree, std::size_t line_parts, std::span<const float> rows, ThreadPool& pool,
                       const CancelToken* cancel = nullptr);

// Encodes rows [count][dimensions]: of each line part the line with the smallest error, ties to the lower number, and
// the nearest place on it. The code of row i begins at codes + i * stride: lines [line_parts], then places
// [line_parts].
void encode_lines(const ProductTree& tree, const LineTable& table, std::span<const float> rows, std::size_t stride,
                  std::uint8_t* codes, ThreadPool& pool, const CancelToken* cancel = nullptr);

// Writes the point that a code stands for: out [dimensions].
void decode_lines(const ProductTree& tree, const LineTable& table, const std::uint8_t* code, float* out);

// c^2 of each line [line_parts * lines]; 0 for inner product.
std::vector<float> line_lengths(const ProductTree& tree, const LineTable& table, Metric metric);

// The part of a row's score that no query changes.
float line_bias(const LineTable& table, std::span<const float> lengths, const std::uint8_t* code);

}  // namespace pgwarp
