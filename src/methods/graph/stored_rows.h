// The rows of a graph in their stored forms, with the scores that a search compares and the values that it returns.
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

// The prepared data of a query.
struct GraphQuery {
    const float* query = nullptr;
    double norm = 0;
    std::vector<float> moved;  // the query in the space of halves
    GraphByteQuery bytes;
    std::vector<std::uint32_t> bits;  // of the query's projection
};

class StoredRows
{
public:
    virtual ~StoredRows() = default;
    // Copies a piece of an array; returns false for an array that is not of the rows.
    virtual bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    // Call after all pieces are written. Throws BadRequest for invalid values.
    virtual void finish_load() = 0;
    // Uses memory of another owner, which outlives this, in place of writes.
    virtual void lend(std::span<const float>) {}
    virtual void lend(std::span<const half_bits>) {}
    virtual void lend(std::span<const std::uint32_t>) {}
    // Prepares forms that make searches faster, after finish_load(); arguments: seeds, edges, pool.
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

std::unique_ptr<StoredRows> make_stored_rows(Metric metric, std::size_t dimensions, std::size_t rows,
                                             const GraphOptions& options);

// The scores of a query.
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

// projection [bits][dimensions + 1]. A bit is set where the product with its direction is above the threshold, the
// direction's last element. In double precision, in order of the dimensions: the same bits on every device.
void project_row(std::span<const float> projection, const float* row, std::size_t dimensions, std::uint32_t* bits);

}  // namespace pgwarp
