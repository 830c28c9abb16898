// The rows of an inverted file in list-major order, as a search compares them: one class for each stored form.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "methods/ivfadc/inverted_lists.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/rows/stored_vectors.h"

namespace pgwarp
{

class ByteLists;

// The form in which rows are ranked again.
inline VectorForm form_of(const IvfOptions& options)
{
    if (options.keeps_full()) return VectorForm::full;
    return options.keeps_half() ? VectorForm::half : VectorForm::none;
}

// The prepared data of a query.
struct PreparedQuery {
    const float* query = nullptr;
    double norm = 0;
    std::vector<float> moved;  // the query in the store's space
    std::vector<float> table;  // look-up tables
    float factor = 1;          // score = raw * factor + shift
    float shift = 0;
};

class RowStore
{
public:
    virtual ~RowStore() = default;
    // Copies a piece of an array to the rows' positions; returns false for an array that is not the store's.
    virtual bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes,
                       InvertedLists& lists) = 0;
    virtual void finish_load(const InvertedLists& lists, ThreadPool& pool) = 0;
    virtual std::uint64_t memory_bytes() const = 0;
    virtual ResultKind result_kind() const = 0;

    virtual PreparedQuery prepare(const float* query) const = 0;
    // out[i] = score of position begin + i, which lies in `list`; coarse_score is that of the list's centroid.
    virtual void scores(const PreparedQuery& query, std::size_t list, float coarse_score, std::size_t begin,
                        std::size_t count, float* out) const = 0;
    // The same for certain positions. False where the store has codes alone, whose values cost no more than scores.
    virtual bool scores_of(const PreparedQuery&, std::span<const std::uint32_t>, float*) const { return false; }
    // Returns the largest difference between the operator's distance and an emitted lower bound.
    virtual double bound_width(const float*) const { return 0; }
    // Writes the row at a position as floats; returns false when the store has codes alone, whose scores then propose.
    virtual bool decode(std::size_t, float*) const { return false; }
    // Prefetches a position, while the value of another is computed.
    virtual void prefetch(std::size_t) const {}
    // Returns the value to be emitted for a position.
    virtual double value(const PreparedQuery& query, std::size_t list, std::size_t position) const = 0;
};

// Float rows, array "vectors"; or half rows, arrays "half", "half_mean", "half_scale".
std::unique_ptr<RowStore> make_vector_store(Metric metric, std::size_t dimensions, std::size_t rows, VectorForm form);
// Codes; values are distances to the decoded rows. Arrays "codes", "codebooks", "rotation". `centroids` outlives the
// store.
std::unique_ptr<RowStore> make_code_store(Metric metric, std::size_t dimensions, std::size_t rows,
                                          const IvfOptions& options, std::span<const float> centroids);

// Bytes of the proposer; values are distances to the decoded rows. Both spans outlive the store.
std::unique_ptr<RowStore> make_byte_store(Metric metric, std::size_t dimensions, std::span<const float> centroids,
                                          const ByteLists& rows);

// Copies bytes [offset, offset + bytes.size()) of a row-major array, with rows of `row_bytes`, to the positions of the
// rows in `out`.
void scatter_rows(std::span<const std::byte> bytes, std::uint64_t offset, std::size_t row_bytes,
                  const InvertedLists& lists, std::byte* out);

}  // namespace pgwarp
