// The device pointers to a graph index that kernels take.
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
    const float* projection = nullptr;    // [32 * words][dimensions + 1]: directions, each followed by its threshold
    std::uint32_t words = 0;
};

// The form in which a traversal compares rows.
enum class TraversalForm : std::uint8_t {
    halves,  // where neither bytes nor floats serve
    bytes,   // a quarter of the reads of floats, as on the CPU: where bytes tell near rows apart
             // (methods/graph/byte_rows.h)
    floats,  // where bytes do not, and full vectors are on the device
    bits,
};

// Rows as bytes: their differences from a mean row, each row with a scale of its own, as on the CPU. For l2 the mean is
// also subtracted from queries; for other metrics it only adds the same to all scores.
struct ByteView {
    const std::int8_t* rows = nullptr;  // [rows][stride], zeros from the dimensions on
    const float2* terms = nullptr;      // [rows]: x the scale; y for l2 the squared norm of scale * bytes, else 0
    const float* mean = nullptr;        // [dimensions] for l2, else null
    std::uint32_t stride = 0;           // bytes, a multiple of 16
    // The seeds in the same form, which single queries scan: [seeds][stride], [seeds].
    const std::int8_t* seeds = nullptr;
    const float2* seed_terms = nullptr;
};

// Positions of the resident rows are row numbers. vectors.metric is L2 where the metric of the index is L1, as rows are
// centred for both.
struct GraphView {
    Metric metric = Metric::l2;
    std::uint32_t rows = 0;
    std::uint32_t degree = 0;
    std::uint32_t seeds = 0;
    const std::uint32_t* neighbours = nullptr;  // [rows][degree]
    const std::uint32_t* seed_rows = nullptr;   // [seeds]
    TraversalForm form = TraversalForm::halves;
    rows::ResidentRows vectors;   // halves, and the form that ranks; empty where the index keeps bits
    rows::HalfTable seed_halves;  // empty where the index keeps bits
    double l1_error = 0;          // largest L1 distance of a row from its half form
    BitView bits;
    ByteView bytes;  // empty for other forms

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
