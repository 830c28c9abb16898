// What kernels see of a graph index: plain pointers to device memory.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "methods/graph/graph.h"
#include "numeric/metric.h"
#include "rows/view.h"

namespace pgwarp::cuda::graph
{

// Rows as 1-bit random projections (SONG section 7).
struct BitView {
    const std::uint32_t* rows = nullptr;  // [rows][words]
    const float* projection = nullptr;    // [32 * words][dimensions + 1]: directions, each with its threshold
    std::uint32_t words = 0;
};

// By what a traversal compares rows.
enum class TraversalForm : std::uint8_t {
    halves,  // where neither of the next two serves
    bytes,  // a quarter of what floats read, as on the CPU: where they tell near rows apart (methods/graph/byte_rows.h)
    floats,  // where bytes don't, and full vectors are on the device
    bits,
};

// Rows as bytes: their differences to a mean row, each with a scale of its own, by which the CPU goes along too. Of l2
// a query loses the mean as well; of other metrics it adds the same to all scores.
struct ByteView {
    const std::int8_t* rows = nullptr;  // [rows][stride], zeros behind the dimensions
    const float2* terms = nullptr;  // [rows]: x the scale, y what l2 adds: the squared norm of scale * bytes, else 0
    const float* mean = nullptr;    // [dimensions], of l2
    std::uint32_t stride = 0;       // bytes, of whole pieces of 16
    // The same of the seeds, which single queries go through, together: [seeds][stride], [seeds].
    const std::int8_t* seeds = nullptr;
    const float2* seed_terms = nullptr;
};

// Positions of the resident rows are row numbers. Their metric is L2 where that of the index is L1: rows are centred
// for both.
struct GraphView {
    Metric metric = Metric::l2;
    std::uint32_t rows = 0;
    std::uint32_t degree = 0;
    std::uint32_t seeds = 0;
    const std::uint32_t* neighbours = nullptr;  // [rows][degree]
    const std::uint32_t* seed_rows = nullptr;   // [seeds]
    TraversalForm form = TraversalForm::halves;
    rows::ResidentRows vectors;   // halves, and the form that ranks: nothing where bits are kept
    rows::HalfTable seed_halves;  // nothing where bits are kept
    double l1_error = 0;          // how far a row's half form may be from it by L1
    BitView bits;
    ByteView bytes;  // nothing where the form is another

    PGWARP_HOST_DEVICE bool has_bits() const { return bits.words > 0; }
};

// Queries [count][dimensions] with their norms, or as bits, for the values of rows.
struct RankQueries {
    const float* original = nullptr;
    const double* norms = nullptr;
    const std::uint32_t* bits = nullptr;  // [count][words]

    RankQueries from(const GraphView& view, std::size_t first) const
    {
        return {original != nullptr ? original + first * view.vectors.dimensions : nullptr,
                norms != nullptr ? norms + first : nullptr, bits != nullptr ? bits + first * view.bits.words : nullptr};
    }
};

}  // namespace pgwarp::cuda::graph
