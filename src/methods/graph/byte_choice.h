// Decides whether a search compares rows as bytes, and computes the mean row that bytes are differences to. Every
// device samples the same rows, in whatever form it holds them, and so decides alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/rows/byte_lists.h"
#include "numeric/metric.h"

namespace pgwarp
{

// The factor of a row's bytes, and the constant of its scores: for l2 the squared norm of the decoded row, otherwise 0.
struct ByteRowTerms {
    float scale;
    float bias;
};

// Encodes row - mean: codes [dimensions] are signed bytes plus 128.
ByteRowTerms encode_byte_row(Metric metric, const float* row, const float* mean, std::size_t dimensions,
                             std::uint8_t* codes);

// Encodes a query. For l2 the mean is subtracted from it. For products it is not: the mean adds one constant to all
// products with a query.
void assign_byte_query(Metric metric, const float* query, const float* mean, std::size_t dimensions, ByteQuery& out);

// The score of a row. `product`: the sum of codes[d] * values[d], less the query's offset.
inline float byte_row_factor(Metric metric, const ByteQuery& query)
{
    return (metric == Metric::l2 ? -2 : -1) * query.step;
}
inline float byte_row_score(float factor, const ByteRowTerms& terms, std::int32_t product)
{
    return terms.bias + factor * terms.scale * static_cast<float>(product);
}

// Whether rows may be compared as bytes. l1 and bits have no products; with few dimensions bytes in whole cache lines
// save little.
bool may_compare_bytes(Metric metric, std::size_t dimensions);

// Return the rows that the mean and the probe sample out of `rows` rows, ascending.
std::vector<std::uint32_t> rows_of_mean(std::size_t rows);
std::vector<std::uint32_t> rows_of_probe(std::size_t rows);

class RowMean
{
public:
    explicit RowMean(std::size_t dimensions) : sum_(dimensions, 0.0) {}
    // Call in the order of row numbers: sums are rounded.
    void add(const float* row);
    std::vector<float> mean() const;

private:
    std::vector<double> sum_;
    std::size_t count_ = 0;
};

// Compares the error of byte scores with the spread of exact scores, over the neighbours of sample rows. Where clusters
// are small and far apart, byte scores may not order the rows of a cluster.
class ByteProbe
{
public:
    ByteProbe(Metric metric, std::span<const float> mean);
    // A row and its neighbours [count][dimensions].
    void add(const float* row, const float* neighbours, std::size_t count);
    bool tells_apart() const;

private:
    Metric metric_;
    std::vector<float> mean_;
    std::vector<std::uint8_t> codes_;
    ByteQuery query_;
    double errors_ = 0;
    double spread_ = 0;
};

}  // namespace pgwarp
