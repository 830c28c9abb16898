// The stored rows of a pqtree index, as a search ranks them: vectors, halves, or the points that line codes stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/method.h"
#include "methods/pqtree/build_arrays.h"

namespace pgwarp
{

class StoredRows
{
public:
    // `arrays` holds the options and the quantizer, and outlives this.
    StoredRows(Metric metric, const TreeArrays& arrays);

    // Copies a piece of the vectors or halves; returns false for another array. Thread-safe for different pieces.
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);

    ResultKind result_kind() const;
    // Returns the largest difference between the operator's distance and a value.
    double bound_width(const float* query) const;
    // Returns the value to be emitted for a row; query_norm: canonical_norm() of the query.
    double value(const float* query, double query_norm, std::uint32_t row) const;
    // Prefetches a row, while the value of another is computed.
    void prefetch(std::uint32_t row) const;
    std::uint64_t memory_bytes() const
    {
        return vectors_.size() * sizeof(float) + halves_.size() * sizeof(std::uint16_t);
    }

private:
    Metric metric_;
    const TreeArrays& arrays_;
    BulkVector<float> vectors_;
    BulkVector<half_bits> halves_;
};

}  // namespace pgwarp
