// Whether rows as bytes serve a search, and the mean row that they are differences to: the same choice on every device,
// from the same samples of rows, wherever the rows lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/rows/byte_lists.h"
#include "numeric/metric.h"

namespace pgwarp
{

// What a row's bytes are to be taken times, and what its scores hold besides products: for l2 the squared norm of what
// the bytes stand for, for others 0.
struct ByteRowTerms {
    float scale;
    float bias;
};

// Of row - mean: codes [dimensions], 128 more than signed bytes.
ByteRowTerms encode_byte_row(Metric metric, const float* row, const float* mean, std::size_t dimensions,
                             std::uint8_t* codes);

// A query as bytes, which l2 takes the mean from: the mean adds the same to all products with a query, and is taken
// from the rows alone.
void assign_byte_query(Metric metric, const float* query, const float* mean, std::size_t dimensions, ByteQuery& out);

// The score of a row: `product` of its codes and the query's values, the query's offset taken off.
inline float byte_row_factor(Metric metric, const ByteQuery& query)
{
    return (metric == Metric::l2 ? -2 : -1) * query.step;
}
inline float byte_row_score(float factor, const ByteRowTerms& terms, std::int32_t product)
{
    return terms.bias + factor * terms.scale * static_cast<float>(product);
}

// False where no rows are compared as bytes: l1 and bits have no products, and below some dimensions bytes in whole
// cache lines save little.
bool may_compare_bytes(Metric metric, std::size_t dimensions);

// Of so many rows: those whose mean is taken, and those from which near rows are looked at. In growing order.
std::vector<std::uint32_t> rows_of_mean(std::size_t rows);
std::vector<std::uint32_t> rows_of_probe(std::size_t rows);

class RowMean
{
public:
    explicit RowMean(std::size_t dimensions) : sum_(dimensions, 0.0) {}
    // In the order of their numbers: sums are rounded.
    void add(const float* row);
    std::vector<float> mean() const;

private:
    std::vector<double> sum_;
    std::size_t count_ = 0;
};

// Seen from some rows: how far the scores of their neighbours are off as bytes, against how they differ. As where
// clusters are small and far apart, bytes may tell rows apart no more that are near each other.
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
