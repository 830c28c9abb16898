// Rows with attributes for searches with predicates without a database, and the predicates of queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "matrix.h"
#include "numeric/half.h"
#include "numeric/parallel.h"

namespace pgwarp::bench
{

// Codes of each attribute.
constexpr std::size_t regions = 1000;
constexpr std::uint32_t attribute_columns = 2;

// Which rows pass. anywhere: a range of numbers that have nothing to do with the vector. The others are of regions, a
// region being the rows nearest to one of some rows. Regions are numbered so that ranges of equal parts are clusters.
// own: the cluster that the query is in; other: the cluster whose middle is the farthest from the query. near: the
// regions nearest to the query; far: the farthest, both as lists of ranges.
enum class Where { anywhere, own, other, near, far };
inline constexpr const char* where_names[] = {"anywhere", "own", "other", "near", "far"};
Where where_of(const std::string& name);

struct FilterSource {
    std::size_t rows = 0;
    std::size_t dimensions = 0;
    std::size_t queries = 0;
    bool halves = false;  // rows are kept, and compared, as halves
    std::string base;     // empty: rows are generated embeddings
    std::string query;
};

class FilterRows
{
public:
    FilterRows(const FilterSource& source, ThreadPool& pool);

    std::size_t size() const { return rows_; }
    std::size_t width() const { return queries_.columns; }
    bool are_halves() const { return halves_; }
    // Copies rows [first, first + count).
    void read(std::size_t first, std::size_t count, float* out) const;
    const Matrix<float>& queries() const { return queries_; }
    // [size()][attribute_columns]
    const std::vector<std::uint64_t>& attributes() const { return attributes_; }
    const std::uint64_t* attributes_of(std::size_t row) const { return attributes_.data() + row * attribute_columns; }

    // A predicate that about this share of the rows pass.
    std::vector<std::uint64_t> predicate(std::size_t query, double share, Where where) const;

private:
    void make(const FilterSource& source, ThreadPool& pool);
    void load(const FilterSource& source);
    void keep(std::size_t first, std::size_t count, const float* values);
    void choose_pivots();
    void assign(ThreadPool& pool);
    std::vector<float> distances_to_pivots(std::size_t query) const;
    std::vector<std::size_t> parts(double share) const;
    std::vector<std::uint64_t> cluster_predicate(std::size_t query, double share, bool own) const;
    std::vector<std::uint64_t> list_predicate(std::size_t query, double share, bool nearest) const;

    std::size_t rows_ = 0;
    bool halves_ = false;
    std::unique_ptr<float[]> full_;           // [rows][width], or
    std::unique_ptr<half_bits[]> as_halves_;  // [rows][width]
    Matrix<float> queries_;
    Matrix<float> pivots_;  // one row of each region, in the order of regions
    std::vector<std::uint64_t> attributes_;
    std::vector<std::size_t> region_rows_;
};

}  // namespace pgwarp::bench
