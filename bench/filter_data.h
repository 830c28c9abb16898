// Rows with attributes, the conditions that queries have on them, and the true answers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "matrix.h"

namespace pgwarp::bench
{

// Attributes are codes from 0 on, each of as many rows.
constexpr std::int32_t codes = 10000;

// What a condition has to do with its query: it passes every row; rows of any place; the rows of the query's own
// cluster; those of the cluster that is farthest from the query.
enum class Where { all, anywhere, near, far };
const char* name_of(Where where);

struct Condition {
    double share = 1;  // of the rows that pass
    Where where = Where::all;
    std::vector<std::array<std::int32_t, 2>> ranges;  // the first and the last code, of each query

    const char* column() const { return where == Where::anywhere ? "number" : "region"; }
    std::string text() const;  // in SQL, of $2 and $3
};

struct FilterData {
    std::string name;
    Matrix<float> base;
    Matrix<float> queries;
    std::vector<std::int32_t> number;  // has nothing to do with the vector
    std::vector<std::int32_t> region;  // numbers of clusters: equal parts of them are larger clusters
    std::vector<Condition> conditions;
    std::vector<std::vector<double>> limits;         // [condition][query]: distance of the k-th row that passes
    std::vector<std::vector<std::size_t>> expected;  // [condition][query]: rows of a whole answer

    const std::vector<std::int32_t>& attribute(const Condition& condition) const
    {
        return condition.where == Where::anywhere ? number : region;
    }
};

// Give the rows their attributes, and each share of rows that pass its conditions and true answers.
void add_conditions(FilterData& data, const std::vector<double>& shares, std::size_t k);

// The part of the true answer that an answer has. A row exactly as far as the k-th counts. Throws for a row that does
// not pass, and for one that stands twice.
double recall_of(const FilterData& data, std::size_t condition, std::size_t query,
                 const std::vector<std::int32_t>& ids);

}  // namespace pgwarp::bench
