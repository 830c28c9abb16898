// pqtree: the product quantization tree (Wieschollek et al., "Efficient Large-scale Approximate Nearest Neighbor Search
// on the GPU", 2016). A search descends a two-level product tree (tree.h), takes the rows of the nearest bins
// (bin_order.h), ranks them by line codes (lines.h), and the best again by stored vectors.
//
// Arrays, all in row order, small ones first:
//   level1 f32 [k1][d] and level2 f32 [k1 k2][d], the tree;
//   line_ends u8 [line_parts lines][2] and line_places f32 [line_parts lines][2], the lines;
//   half_mean f32 [1][d], half_scale f32 [1][2] (refine = half);
//   codes u8 [rows][2 parts + 2 line_parts]: the leaf of each part as a little-endian u16, then the line of each line
//   part, then the place on it;
//   half f16 [rows][d] (refine = half), vectors f32 [rows][d] (refine = full).
// A row's bin follows from its leaves; lists of bins are made by mirrors.
//
// Metrics. Rows are assigned and projected by L2 under every metric. Scores are sums over parts, and so are squared L2
// distances and inner products: l2 and cosine search by squared L2, which on unit vectors is the order of cosine; inner
// product searches by -y.c, for leaves and for lines.
//
// Effort is the number of candidates: rows that are ranked by line codes. The width of the descent and the number of
// rows that vectors rank again follow from it (search_plan()), so that one ladder leads from few candidates to all
// rows.
//
// Defaults, and why (1,000,000 SIFT descriptors; recall of the nearest row among the candidates, bins in exact order):
//   parts = 2: at 4,096 candidates, 1,024 leaves a part hold the nearest row in .96 of queries, four parts of 128
//   leaves in .98; but then candidates lie in three times as many bins, among many more empty ones. k1 k2 <=
//   sqrt(.4 rows): at most two bins for five rows, which take 1.7 bytes a row on a device, and 40 in all without
//   vectors. As many bins as rows need a quarter fewer candidates for the same recall, but more time, because most of
//   them are empty: 340 us a query at .95, with 9 leaves a centroid 297. Of 100,000 rows 3 leaves and 5 take the same
//   time. k1 = 64 gives lines 2,016 pairs of centroids; with 32 (496 pairs) their error
//   is a third larger, with 128 a sixth smaller, for four times the work of the choice. width: a quarter of the
//   centroids, whose leaves lose a hundredth of the recall; more for many candidates. line_parts: one for eight
//   dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/pqtree/description.h"
#include "methods/pqtree/lines.h"
#include "methods/pqtree/tree.h"

namespace pgwarp
{

// Stored vectors rank one of `usual_ranked_share` candidates again, and more where many rows are wanted. Where line
// codes order rows badly (clusters that are far apart, beside which lines are coarse), a build finds that vectors must
// rank all candidates, up to most_ranked, and stores the share 1 among the options.
inline constexpr std::size_t usual_ranked_share = 32;
inline constexpr std::size_t fewest_ranked = 48;
inline constexpr std::size_t most_ranked = 8192;
inline constexpr char option_ranked_share[] = "ranked_share";

// Options with every 0 resolved to a number.
struct TreeOptions {
    std::size_t parts = 1;
    std::size_t k1 = 2;
    std::size_t k2 = 1;
    std::size_t line_parts = 1;
    TreeRefine refine = TreeRefine::half;
    std::size_t ranked_share = usual_ranked_share;

    bool keeps_half() const { return refine == TreeRefine::half; }
    bool keeps_full() const { return refine == TreeRefine::full; }
    bool keeps_vectors() const { return refine != TreeRefine::none; }
    TreeShape tree(std::size_t dimensions) const { return {dimensions, parts, k1, k2}; }
    LineShape lines(std::size_t dimensions) const { return {tree(dimensions), line_parts}; }
    // Bytes of a row of `codes`.
    std::size_t code_bytes() const { return 2 * parts + 2 * line_parts; }
    // Where the line code begins in a row of `codes`.
    std::size_t line_offset() const { return 2 * parts; }

    // Throws BadRequest for options that are invalid for these dimensions.
    static TreeOptions resolve(const ParameterList& options, std::size_t rows, std::size_t dimensions);
    // For a build of `rows` rows: no part gets more leaves than these, which would be copies of others.
    void bound_leaves(std::size_t rows);
    ParameterList as_parameters() const;
};

// Returns the metric by which queries are compared with leaves and lines: l2 or inner_product.
Metric tree_metric(Metric metric);

// The numbers of candidates that are measured, ascending; the last is all rows.
std::vector<std::int64_t> candidate_schedule(std::size_t rows);

// The work of a search at an effort.
struct SearchPlan {
    std::size_t width = 1;       // centroids of the first level, a part, whose leaves are compared
    std::size_t candidates = 0;  // live rows that line codes rank
    std::size_t ranked = 0;      // rows that stored vectors rank again
    bool complete = false;       // all rows are ranked by their values
};

// Settings `width` and `candidates` override the effort; 0: derived from it. Without either, all rows are candidates.
SearchPlan search_plan(const TreeOptions& options, std::size_t rows, const SearchBatch& batch);

std::unique_ptr<Builder> make_pqtree_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_pqtree_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays);
// A builder of merges: it encodes new rows with the tree and the lines of an index, and takes the arrays of
// TreeArrays::quantizer_shapes(). It makes "half_scale", whose largest error is that of all rows, old and new, and for
// the new rows alone "codes", "half" and "vectors".
std::unique_ptr<Builder> make_pqtree_merge_builder(const IndexShape& shape, const ParameterList& options);
// A Recalibrator (methods/recall/recalibration.h) that takes the arrays of TreeArrays::quantizer_shapes() and "codes".
// Throws BadRequest for options without vectors (refine = none).
std::unique_ptr<Builder> make_pqtree_calibrator(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
