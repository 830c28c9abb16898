#include "numeric/sparse_distance.h"

#include <cmath>

namespace pgwarp
{
namespace
{

// Returns the sum of term(x, y) over the indices that either vector has, in ascending order; the other's element is 0.
// The loop has no branch on the indices, which no processor could predict.
template <class Term>
double sum_of_union(const SparseView& a, const SparseView& b, Term term)
{
    double sum = 0;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.count && j < b.count) {
        const bool in_a = a.indices[i] <= b.indices[j];
        const bool in_b = b.indices[j] <= a.indices[i];
        const double x = static_cast<double>(a.values[i]) * in_a;
        const double y = static_cast<double>(b.values[j]) * in_b;
        sum += term(x, y);
        i += in_a;
        j += in_b;
    }
    while (i < a.count) sum += term(a.values[i++], 0);
    while (j < b.count) sum += term(0, b.values[j++]);
    return sum;
}

}  // namespace

double sparse_l2_squared(const SparseView& a, const SparseView& b)
{
    return sum_of_union(a, b, [](double x, double y) { return (x - y) * (x - y); });
}

double sparse_l1(const SparseView& a, const SparseView& b)
{
    return sum_of_union(a, b, [](double x, double y) { return std::fabs(x - y); });
}

// Elements that the other vector lacks add zero, so they are passed over.
double sparse_dot(const SparseView& a, const SparseView& b)
{
    double sum = 0;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.count && j < b.count) {
        const std::uint32_t index_a = a.indices[i];
        const std::uint32_t index_b = b.indices[j];
        if (index_a == index_b) sum += static_cast<double>(a.values[i]) * b.values[j];
        i += index_a <= index_b;
        j += index_b <= index_a;
    }
    return sum;
}

double sparse_norm_squared(const SparseView& a)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.count; ++i) sum += static_cast<double>(a.values[i]) * a.values[i];
    return sum;
}

double sparse_norm(const SparseView& a)
{
    return std::sqrt(sparse_norm_squared(a));
}

// The cosine is clamped into [-1, 1], because rounding may put it just outside.
double sparse_cosine_distance(double dot, double norm_squared_a, double norm_squared_b)
{
    const double similarity = dot / std::sqrt(norm_squared_a * norm_squared_b);
    if (similarity > 1) return 0;
    if (similarity < -1) return 2;
    return 1 - similarity;
}

double sparse_distance(Metric metric, const SparseView& a, const SparseView& b)
{
    switch (metric) {
        case Metric::l2:
            return std::sqrt(sparse_l2_squared(a, b));
        case Metric::inner_product:
            return -sparse_dot(a, b);
        case Metric::cosine:
            return sparse_cosine_distance(sparse_dot(a, b), sparse_norm_squared(a), sparse_norm_squared(b));
        case Metric::l1:
            return sparse_l1(a, b);
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
            break;
    }
    return 0;
}

}  // namespace pgwarp
