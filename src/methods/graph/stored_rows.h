// The rows of a graph as they are stored: what their values are, and scores along which a search goes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "methods/graph/byte_rows.h"
#include "methods/graph/graph.h"
#include "methods/graph/traversal.h"
#include "methods/method.h"
#include "numeric/half_codec.h"

namespace pgwarp
{

// What one query needs prepared once.
struct GraphQuery {
    const float* query = nullptr;
    double norm = 0;
    std::vector<float> moved;  // in the space of halves
    GraphByteQuery bytes;
    std::vector<std::uint32_t> bits;  // of its projections
};

class StoredRows
{
public:
    virtual ~StoredRows() = default;
    // True when this array is the rows': then the piece is put in its place.
    virtual bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    // Throws BadRequest for what no build makes.
    virtual void finish_load() = 0;
    // What lies elsewhere, and stays there, in place of what would be written.
    virtual void lend(std::span<const float>) {}
    virtual void lend(std::span<const half_bits>) {}
    virtual void lend(std::span<const std::uint32_t>) {}
    // Once all is there: what makes searches faster.
    virtual void prepare_searches(std::span<const std::uint32_t>, EdgeView, ThreadPool&) {}
    virtual std::uint64_t memory_bytes() const = 0;
    virtual ResultKind result_kind() const = 0;
    virtual double bound_width(const float*) const { return 0; }

    virtual void prepare(const float* query, GraphQuery& out) const = 0;
    // out[i] = score of rows[i], smaller is nearer.
    virtual void scores(const GraphQuery& query, std::span<const std::uint32_t> rows, float* out) const = 0;
    virtual void seed_scores(const GraphQuery& query, std::span<const std::uint32_t> seeds, float* out) const
    {
        scores(query, seeds, out);
    }
    // The value to be emitted.
    virtual double value(const GraphQuery& query, std::uint32_t row) const = 0;
};

// Requires the arrays that these options have; `rows` rows.
std::unique_ptr<StoredRows> make_stored_rows(Metric metric, std::size_t dimensions, std::size_t rows,
                                             const GraphOptions& options, std::span<const ArrayShape> arrays);

// How a query scores them.
class StoredScorer : public Scorer
{
public:
    StoredScorer(const StoredRows& rows, const GraphQuery& query) : rows_(rows), query_(query) {}
    void scores(std::span<const std::uint32_t> rows, float* out) const override { rows_.scores(query_, rows, out); }
    void seed_scores(std::span<const std::uint32_t> seeds, float* out) const override
    {
        rows_.seed_scores(query_, seeds, out);
    }

private:
    const StoredRows& rows_;
    const GraphQuery& query_;
};

// projection [bits][dimensions + 1]; a bit is set where the product with the direction is above the threshold, its last
// element. In double precision, in order of the dimensions: the same bits on every device.
void project_row(std::span<const float> projection, const float* row, std::size_t dimensions, std::uint32_t* bits);

}  // namespace pgwarp
