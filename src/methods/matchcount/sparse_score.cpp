// The addends of a query, and the bound of errors.
#include "methods/matchcount/sparse_score.h"

#include <algorithm>
#include <cmath>

namespace pgwarp::matchcount
{

namespace
{

constexpr double float_unit = 0x1p-24;  // the relative error of a rounding to float32

}  // namespace

SparseScore::SparseScore(const SparseIndex& index, const SparseView& query)
    : metric_(index.metric()),
      norm_(metric_ == Metric::l1 ? sparse_l1(query, {nullptr, nullptr, 0}) : sparse_norm(query)),
      largest_base_(index.largest_base())
{
    collect_terms(index, query);
    const auto addends = static_cast<double>(terms_.size());
    // The numbers of values are off by half a unit, 2^-16 of the largest value of the list; L1 counts values twice,
    // which magnitude_ does too. Factors and products are rounded, then each of the sums; tiny numbers may vanish.
    double error = magnitude_ * 0x1.01p-16 + (addends + 8) * float_unit * (magnitude_ + largest_base_);
    error += (addends + 1) * 0x1p-130;
    // Canonical distances are sums of at most 2^18 products in float64, and so are norms; their errors count as errors
    // of scores.
    const double squares = norm_ * norm_ + 2 * largest_base_;
    const double whole = metric_ == Metric::l2 ? 2 * squares : magnitude_ + norm_ + largest_base_;
    error_ = error + whole * 0x1p-34;
}

// Sorts terms by their lists, so that the queries of a batch go over memory in one order.
void SparseScore::collect_terms(const SparseIndex& index, const SparseView& query)
{
    for (std::size_t i = 0; i < query.count; ++i) {
        const SparseTerm term = index.term(query.indices[i]);
        if (term.rows.empty() || term.scale == 0 || query.values[i] == 0) continue;
        const double value = query.values[i];
        const double largest = term.scale * most_value_number;
        if (clamps()) {
            terms_.push_back({term, static_cast<float>(std::copysign(2 * term.scale, value)),
                              static_cast<float>(2 * std::abs(value))});
            magnitude_ += 2 * largest;
        } else {
            terms_.push_back({term, static_cast<float>(value * term.scale), 0});
            magnitude_ += std::abs(value) * largest;
        }
    }
}

bool SparseScore::in_range() const
{
    const double limit = 0x1p120;
    return magnitude_ + largest_base_ < limit && norm_ < limit && error_ < limit;
}

double SparseScore::score_of(double distance) const
{
    switch (metric_) {
        case Metric::l2:
            // No distance is negative, though a bound of distances may be.
            return (norm_ * norm_ - std::max(distance, 0.0) * std::max(distance, 0.0)) / 2;
        case Metric::cosine:
            return norm_ * (1 - distance);
        case Metric::l1:
            return norm_ - distance;
        default:
            return -distance;
    }
}

}  // namespace pgwarp::matchcount
