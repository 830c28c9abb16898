// Rows as bytes, which a search on the CPU compares: a quarter of the memory traffic of floats, and many products an
// instruction. Bytes are differences to the mean row, with a scale for each row. Sums are exact integers, so that every
// instruction set finds the same rows.
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
    // Writes a row as floats to out [dimensions].
    using RowOf = std::function<void(std::uint32_t row, float* out)>;

    // Encodes the rows, and once more the seeds, one after the other. Stays empty where bytes do not serve
    // (byte_choice.h); the neighbours of its probe are those of the edges.
    void build(Metric metric, std::size_t dimensions, std::span<const std::uint32_t> seeds, EdgeView edges,
               const RowOf& row_of, ThreadPool& pool);

    bool empty() const { return terms_.empty(); }
    std::uint64_t memory_bytes() const
    {
        return codes_.size() + terms_.size() * sizeof(ByteRowTerms) + (empty() ? 0 : seeds_.memory_bytes());
    }
    void prepare(const float* query, GraphByteQuery& out) const;
    // out[i] = score of rows[i], up to a constant of the query.
    void scores(const GraphByteQuery& query, std::span<const std::uint32_t> rows, float* out) const;
    // The same for all seeds, in their order; `out` has room for whole blocks of 16.
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
