// Sparse vectors by index, their distances by definition in float64, and answers by a sort of all rows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "methods/description.h"
#include "methods/ordered_scan.h"
#include "methods/rows/owned_rows.h"
#include "methods/rows/sparse_rows.h"

namespace pgwarp::test
{

using Sparse = std::map<std::uint32_t, float>;  // values by index

inline constexpr Metric sparse_metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1};

inline OwnedRows rows_of_sparse(const std::vector<Sparse>& vectors)
{
    OwnedRows rows;
    for (const Sparse& vector : vectors) {
        std::vector<std::uint32_t> indices;
        std::vector<float> values;
        for (const auto& [index, value] : vector) {
            indices.push_back(index);
            values.push_back(value);
        }
        const float none = 0;
        const std::uint64_t offsets[2] = {0, indices.size()};
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = indices.data();
        row.weights = values.empty() ? &none : values.data();
        rows.append(row);
    }
    return rows;
}

// The distance by its definition, over the union of the indices in ascending order.
inline double plain_distance(Metric metric, const Sparse& a, const Sparse& b)
{
    std::map<std::uint32_t, std::pair<double, double>> both;
    for (const auto& [index, value] : a) both[index].first = value;
    for (const auto& [index, value] : b) both[index].second = value;
    double dot = 0;
    double squares_a = 0;
    double squares_b = 0;
    double squared = 0;
    double l1 = 0;
    for (const auto& [index, values] : both) {
        const auto [x, y] = values;
        dot += x * y;
        squares_a += x * x;
        squares_b += y * y;
        squared += (x - y) * (x - y);
        l1 += std::fabs(x - y);
    }
    switch (metric) {
        case Metric::l2:
            return std::sqrt(squared);
        case Metric::l1:
            return l1;
        case Metric::cosine:
            return 1 - std::clamp(dot / std::sqrt(squares_a * squares_b), -1.0, 1.0);
        default:
            return -dot;
    }
}

// All live rows that have a distance, in order of (distance, row).
inline std::vector<RowResult> all_in_order(Metric metric, const std::vector<Sparse>& vectors, const Sparse& query,
                                           RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < vectors.size(); ++i) {
        const double distance = plain_distance(metric, query, vectors[i]);
        if (!bit_is_set(dead, i) && !std::isnan(distance)) all.push_back({distance, i});
    }
    std::sort(all.begin(), all.end(), comes_before);
    return all;
}

inline void expect_equal(const std::vector<RowResult>& found, std::span<const RowResult> wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
        ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
    }
}

// Small numbers of few values make ties; others have every size.
inline float random_value(std::mt19937_64& random, bool ties)
{
    const int sign = random() % 4 == 0 ? -1 : 1;
    if (ties) return static_cast<float>(sign * static_cast<int>(1 + random() % 4)) / 4;
    const double uniform = static_cast<double>(random() % 1000003 + 1) / 1000003;
    return static_cast<float>(sign * std::ldexp(uniform, static_cast<int>(random() % 20) - 10));
}

// Indices follow a law by which the first are frequent.
inline Sparse random_sparse(std::mt19937_64& random, std::size_t most, std::uint64_t universe, bool ties)
{
    Sparse vector;
    for (std::size_t left = random() % (most + 1); left > 0; --left) {
        const std::uint64_t bound = 1 + random() % universe;
        vector[static_cast<std::uint32_t>(random() % bound)] = random_value(random, ties);
    }
    return vector;
}

inline std::string name_of_metric(Metric metric)
{
    for (const MetricNames& names : metric_names())
        if (names.metric == metric) return names.function;
    return "unknown";
}

}  // namespace pgwarp::test
