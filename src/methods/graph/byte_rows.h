// The rows as bytes, along which a search on the CPU goes: a quarter of what floats read, and sums of products many at
// an instruction. Differences to the mean row, each row with a scale of its own; sums are exact
// integers, so that every instruction set goes the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "methods/graph/byte_choice.h"
#include "methods/graph/edges.h"
#include "methods/rows/byte_lists.h"
#include "numeric/metric.h"
#include "numeric/parallel.h"

namespace pgwarp
{

struct GraphByteQuery {
    ByteQuery bytes;
    std::vector<std::int8_t> padded;  // to whole cache lines
};

class ByteRows
{
public:
    // A row in full, into out [dimensions].
    using RowOf = std::function<void(std::uint32_t row, float* out)>;

    // Encodes the rows, and the seeds once more, side by side. Nothing is kept where bytes don't serve (byte_choice.h):
    // near each other are rows that an edge joins.
    void build(Metric metric, std::size_t dimensions, std::span<const std::uint32_t> seeds, EdgeView edges,
               const RowOf& row_of, ThreadPool& pool);

    bool empty() const { return terms_.empty(); }
    std::uint64_t memory_bytes() const
    {
        return codes_.size() + terms_.size() * sizeof(ByteRowTerms) + (empty() ? 0 : seeds_.memory_bytes());
    }
    void prepare(const float* query, GraphByteQuery& out) const;
    // out[i] = score of rows[i]: l2 squared distances less a constant of the query, products up to one.
    void scores(const GraphByteQuery& query, std::span<const std::uint32_t> rows, float* out) const;
    // Of all seeds, in their order; `out` has room for whole blocks of 16.
    void seed_scores(const GraphByteQuery& query, float* out) const;

private:
    void encode(std::size_t rows, const RowOf& row_of, ThreadPool& pool);
    bool tell_apart(EdgeView edges, const RowOf& row_of) const;
    void clear();

    Metric metric_ = Metric::l2;
    std::size_t dimensions_ = 0;
    std::size_t stride_ = 0;
    std::vector<float> mean_;
    BulkVector<std::uint8_t> codes_;   // [rows][stride]
    std::vector<ByteRowTerms> terms_;  // [rows]
    ByteLists seeds_;                  // one list
};

}  // namespace pgwarp
