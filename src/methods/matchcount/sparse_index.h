// The mirror of an index of sparse vectors. A term is an index of an element; its list holds the rows that have it, and
// their values there. Scores of rows are proposed by these values as numbers of 16 bits; the stored rows decide.
//
// A term that many rows have has in addition a column: its value in every row, 0 where the row lacks it. Columns are
// added up without addresses, several rows at a time; a device multiplies them as tiles of a matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/matchcount/keyword_lists.h"
#include "methods/rows/sparse_rows.h"
#include "numeric/metric.h"

namespace pgwarp::matchcount
{

// A value is at most scale / 2 from its number times the scale.
inline constexpr int most_value_number = 32767;

struct SparseTerm {
    std::span<const std::uint32_t> rows;  // ascending
    const std::int16_t* values = nullptr;
    double scale = 0;
    const std::int16_t* column = nullptr;  // [rows of the index]; null: the term has none
};

class SparseIndex
{
public:
    // `rows`: valid sparse vectors, whose offsets begin with 0; they outlive the index.
    SparseIndex(Metric metric, const RowView& rows, ThreadPool& pool);

    Metric metric() const { return metric_; }
    std::uint32_t rows() const { return lists_.rows(); }
    SparseView row(std::uint32_t row) const { return sparse_row(rows_, row); }
    // Returns a term of an index; it has no rows where no row has it.
    SparseTerm term(std::uint32_t index) const;
    const KeywordLists& lists() const { return lists_; }
    // The largest absolute value in a list, of unit vectors under cosine.
    double largest_value(std::size_t number) const { return scales_[number] * most_value_number; }
    // What scores begin with (sparse_search.h), of each row; empty where that is 0.
    std::span<const float> bases() const { return bases_; }
    double largest_base() const { return largest_base_; }  // absolute
    std::uint64_t memory_bytes() const;                    // without the rows

private:
    void measure_rows(ThreadPool& pool);
    void write_values(std::size_t first, std::size_t last);
    void write_all_values(ThreadPool& pool);
    void write_columns(ThreadPool& pool);
    std::size_t list_from(std::uint64_t posting) const;

    Metric metric_;
    RowView rows_;
    KeywordLists lists_;
    BulkVector<std::int16_t> values_;    // of each posting
    std::vector<double> scales_;         // of each list
    std::vector<std::size_t> frequent_;  // the lists that have columns, ascending
    BulkVector<std::int16_t> columns_;   // [frequent_][rows]
    BulkVector<float> bases_;
    double largest_base_ = 0;
    std::vector<double> factors_;  // while the index is made: of the values of each row; empty: 1
};

}  // namespace pgwarp::matchcount
