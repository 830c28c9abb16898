// IVFADC (Faiss paper, sections 2 and 5; Jégou, Douze, Schmid, 2011): an inverted file over a coarse k-means. Rows are
// stored as product-quantized residuals and, for exact re-ranking, as half or full vectors.
//
// Arrays, all in row order, small ones first:
//   centroids f32 [lists][d], rotation f32 [d][d] (opq), or
//   rotation_signs u8 [4][d] (opq, more than 2,048 dimensions), codebooks f32 [256][d] (codes = pq), half_mean f32
//   [1][d], half_scale f32 [1][2] = {scale, largest error} (half vectors), list_of_row u32 [rows][1], codes u8
//   [rows][m], half f16 [rows][d], vectors f32 [rows][d].
// Effort is the number of lists probed.
//
// With codes = int8 residuals are stored in bytes: codes u8 [rows][d], and before them code_scale f32 [rows][1]. A row
// is its list's centroid + code_scale * (byte - 128); see methods/rows/byte_lists.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "methods/ivfadc/description.h"
#include "methods/method.h"

namespace pgwarp
{

// Options with every 0 resolved to a number.
struct IvfOptions {
    std::size_t lists = 1;
    bool product_codes = true;  // codes = pq
    bool byte_codes = false;    // codes = int8; where neither, half vectors alone
    std::size_t subquantizers = 1;
    bool opq = false;
    IvfRefine refine = IvfRefine::half;

    bool keeps_codes() const { return product_codes || byte_codes; }
    bool keeps_half() const { return !keeps_codes() || refine == IvfRefine::half; }
    bool keeps_full() const { return refine == IvfRefine::full; }
    // Bytes of a row's code.
    std::size_t code_width(std::size_t dimensions) const { return byte_codes ? dimensions : subquantizers; }

    // Throws BadRequest for options that are invalid for these dimensions.
    static IvfOptions resolve(const ParameterList& options, std::size_t rows, std::size_t dimensions);
    ParameterList as_parameters() const;
};

// The metric by which rows and queries are compared with centroids.
Metric coarse_metric(Metric metric);

// Returns the numbers of probes that are measured, up to `lists`.
std::vector<std::int64_t> probe_schedule(std::size_t lists);

std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_ivfadc_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays);

}  // namespace pgwarp
