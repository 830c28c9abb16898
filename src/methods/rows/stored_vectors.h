// Dense rows of an index as it keeps them, floats or halves, and their values in searches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/method.h"
#include "methods/rows/half_rows.h"

namespace pgwarp
{

enum class VectorForm { none, half, full };

// The array that holds rows of a form, for rows [count][dimensions]. Not for VectorForm::none.
ArrayShape stored_shape(VectorForm form, std::size_t rows, std::size_t dimensions);

// Writes the floats of a row out of its stored form. The codec is read for halves alone.
void decode_stored(VectorForm form, const HalfRows& codec, std::size_t dimensions, const std::byte* stored, float* out);

// A position is the place of a row in this memory, which the owner chooses.
class StoredVectors
{
public:
    // The codec is read for halves alone, and outlives this.
    StoredVectors(Metric metric, std::size_t dimensions, std::size_t rows, VectorForm form, const HalfRows& codec);

    // Rows to be written: [rows][row_bytes()].
    std::span<std::byte> bytes();
    std::size_t row_bytes() const;
    bool is_array(const std::string& name) const;
    std::uint64_t memory_bytes() const { return vectors_.size() * sizeof(float) + halves_.size() * sizeof(half_bits); }

    // VectorForm::none: approximate, by values of the method.
    ResultKind result_kind() const;
    // Returns the largest difference between the operator's distance and a value.
    double bound_width(const float* query) const;
    // Returns the value to be emitted: the canonical distance, or a lower bound where the stored form is rounded.
    // query_norm: canonical_norm() of the query.
    double value(const float* query, double query_norm, std::size_t position) const;
    // Prefetches a row, while the value of another is computed.
    void prefetch(std::size_t position) const;
    void decode(std::size_t position, float* out) const;
    // Writes the query of scores(): in the codec's space, where rows are halves compared by l2.
    void prepare(const float* query, std::vector<float>& out) const;
    // out[i] = score of position begin + i, smaller is nearer: for halves, squared distances are larger by the codec's
    // scale^2, and a dot product lacks that of the query and the mean.
    void scores(const float* prepared, std::size_t begin, std::size_t count, float* out) const;
    // The same for certain positions.
    void scores(const float* prepared, std::span<const std::uint32_t> positions, float* out) const;

private:
    Metric metric_;
    std::size_t dimensions_;
    VectorForm form_;
    const HalfRows& codec_;
    BulkVector<float> vectors_;
    BulkVector<half_bits> halves_;
};

}  // namespace pgwarp
