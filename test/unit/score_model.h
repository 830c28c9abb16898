// The scores of exact searches on a device, modelled on the CPU: the stored forms of rows and queries, and sums of
// products in every order and precision that a device may sum in, up to the worst that the bound allows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "distance/score_bound.h"
#include "numeric/half.h"
#include "numeric/metric.h"

namespace pgwarp::test
{

using Vector = std::vector<float>;

inline bool is_half(cuda::ScoreKind kind)
{
    return kind == cuda::ScoreKind::half_l2 || kind == cuda::ScoreKind::half_dot;
}

inline double largest_element(const Vector& vector)
{
    double largest = 0;
    for (const float element : vector) largest = std::max(largest, std::fabs(double{element}));
    return largest;
}

inline double norm_of(const Vector& vector)
{
    double square = 0;
    for (const float element : vector) square += double{element} * element;
    return std::sqrt(square);
}

// The power of two that brings `largest` just below 2^12.
inline double scale_for(double largest)
{
    if (!(largest > 0)) return 1;
    int exponent = 0;
    (void)std::frexp(largest, &exponent);
    return std::ldexp(1.0, 12 - exponent);
}

// (vector - mean) * scale as halves, and their rounding errors.
struct StoredHalves {
    Vector halves;  // their values
    double residual = 0;
    double norm = 0;
};
inline StoredHalves store_halves(const Vector& vector, const Vector& mean, double scale)
{
    StoredHalves stored;
    for (std::size_t d = 0; d < vector.size(); ++d) {
        const double exact = (double{vector[d]} - mean[d]) * scale;
        const double kept = float_of_half(half_of_float(static_cast<float>(exact)));
        stored.halves.push_back(static_cast<float>(kept));
        stored.residual += (exact - kept) * (exact - kept);
        stored.norm += kept * kept;
    }
    stored.residual = std::sqrt(stored.residual);
    stored.norm = std::sqrt(stored.norm);
    return stored;
}

// Sums of products in single precision.
inline float sum_forward(const Vector& products)
{
    float sum = 0;
    for (const float product : products) sum += product;
    return sum;
}
inline float sum_backward(const Vector& products)
{
    float sum = 0;
    for (std::size_t i = products.size(); i-- > 0;) sum += products[i];
    return sum;
}
inline float sum_in_pairs(Vector products)
{
    while (products.size() > 1) {
        for (std::size_t i = 0; i < products.size() / 2; ++i) products[i] = products[2 * i] + products[2 * i + 1];
        if (products.size() % 2 != 0) products[products.size() / 2] = products.back();
        products.resize((products.size() + 1) / 2);
    }
    return products.empty() ? 0 : products[0];
}
// Each addition truncates below its last bit: the largest error of any order.
inline float sum_cut_each(const Vector& products)
{
    double sum = 0;
    for (const float product : products) {
        sum += product;
        if (sum == 0 || !std::isfinite(sum)) continue;
        const double step = std::ldexp(1.0, std::ilogb(sum) - 23);
        sum = std::trunc(sum / step) * step;
    }
    return static_cast<float>(sum);
}
// A tensor core that aligns 16 products and the sum so far to the largest of them and truncates below its last bit.
inline float sum_cut_off(const Vector& products)
{
    double sum = 0;
    for (std::size_t first = 0; first < products.size(); first += 16) {
        const std::size_t end = std::min(products.size(), first + 16);
        double largest = std::fabs(sum);
        for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(double{products[i]}));
        if (largest == 0) continue;
        const double step = std::ldexp(1.0, std::ilogb(largest) - 23);
        const auto cut = [step](double value) { return std::trunc(value / step) * step; };
        sum = cut(sum);
        for (std::size_t i = first; i < end; ++i) sum += cut(products[i]);
        const double unit = sum == 0 ? step : std::max(step, std::ldexp(1.0, std::ilogb(sum) - 23));
        sum = std::trunc(sum / unit) * unit;
    }
    return static_cast<float>(sum);
}

// All rows of an index as they are stored, with their bounds.
class ScoreModel
{
public:
    ScoreModel(Metric metric, cuda::ScoreKind kind, std::vector<Vector> given) : rows(std::move(given)), mean(rows[0])
    {
        bounds.metric = metric;
        bounds.kind = kind;
        const std::size_t dimensions = rows[0].size();
        bounds.summation = cuda::summation_error(static_cast<std::uint32_t>((dimensions + 63) / 64 * 64));
        bounds.smallest_norm = HUGE_VAL;
        double deviation = 0;
        for (std::size_t d = 0; d < dimensions; ++d) {
            double sum = 0;
            for (const Vector& row : rows) sum += row[d];
            mean[d] = static_cast<float>(sum / static_cast<double>(rows.size()));
            for (const Vector& row : rows) deviation = std::max(deviation, std::fabs(double{row[d]} - mean[d]));
        }
        for (const Vector& row : rows) {
            bounds.largest_norm = std::max(bounds.largest_norm, norm_of(row) * (1 + 1e-12));
            bounds.smallest_norm = std::min(bounds.smallest_norm, norm_of(row) * (1 - 1e-12));
            largest_of_rows = std::max(largest_of_rows, largest_element(row));
        }
        bounds.mean_norm = bounds.largest_norm;
        bounds.norm = bounds.largest_norm;
        if (is_half(kind)) store(deviation);
    }

    struct Query {
        Vector own;
        Vector halves;
        cuda::QueryBound bound;
        float factor = 1;
        double worst_sum = 0;  // the largest error of a sum beside a row of norm 1, in the space of the scores
        bool usable = true;    // no score overflows; others are left to a scan
    };
    Query prepare(const Vector& given) const
    {
        Query query{given, {}, {}, 1, 0, true};
        query.bound.own_norm = norm_of(given) * (1 + 1e-12);
        query.bound.norm = query.bound.own_norm;
        if (is_half(bounds.kind)) {
            const bool centred = bounds.kind == cuda::ScoreKind::half_l2;
            const Vector zero(given.size());
            const Vector& origin = centred ? mean : zero;
            double deviation = 0;
            for (std::size_t d = 0; d < given.size(); ++d) {
                query.bound.mean_dot += double{given[d]} * mean[d];
                deviation = std::max(deviation, std::fabs(double{given[d]} - origin[d]));
            }
            double scale = scale_for(deviation);
            if (centred && (deviation == 0 || scale > bounds.scale)) scale = bounds.scale;
            const double target = centred ? bounds.scale : 1.0;
            const StoredHalves stored = store_halves(given, origin, scale);
            query.halves = stored.halves;
            query.bound.norm = stored.norm / scale * target;
            query.bound.residual = stored.residual / scale * target * (1 + 1e-12);
            query.factor = static_cast<float>(target / scale);
        }
        query.worst_sum = bounds.summation * query.bound.norm;
        constexpr double limit = 1e36;
        const double reach = largest_element(given) + largest_of_rows;
        query.usable = query.factor > 0 && query.factor < limit && query.bound.norm * bounds.norm < limit;
        if (bounds.kind == cuda::ScoreKind::float_l2)
            query.usable = reach * reach * static_cast<double>(given.size()) < limit;
        return query;
    }

    // Every score that a device may give the pair.
    std::vector<double> scores(const Query& query, std::size_t row) const
    {
        std::vector<double> all;
        const Vector products = terms(query, row);
        const float penalty = is_half(bounds.kind) ? penalties[row] : 0;
        const float sign =
            bounds.kind == cuda::ScoreKind::float_l1 || bounds.kind == cuda::ScoreKind::float_l2 ? -1 : 1;
        for (const float sum : {sum_forward(products), sum_backward(products), sum_in_pairs(products),
                                sum_cut_off(products), sum_cut_each(products)}) {
            all.push_back(std::fma(sign * sum, query.factor, -penalty));
        }
        if (!is_half(bounds.kind)) return all;
        const double exact = exact_score(query, row);
        const double error = query.worst_sum * norm_of(halves[row]);
        all.push_back(static_cast<float>(exact - error));
        all.push_back(static_cast<float>(exact + error));
        return all;
    }
    // The score of the stored forms, without any rounding; half kinds.
    double exact_score(const Query& query, std::size_t row) const
    {
        double product = 0;
        double square = 0;
        for (std::size_t d = 0; d < query.own.size(); ++d) {
            product += double{query.halves[d]} * halves[row][d];
            square += double{halves[row][d]} * halves[row][d];
        }
        return product * query.factor - (bounds.kind == cuda::ScoreKind::half_l2 ? square / 2 : 0);
    }
    // The value that exact searches emit.
    double value(const Query& query, std::size_t row) const
    {
        const double distance = canonical_distance(bounds.metric, query.own.data(), rows[row].data(), query.own.size());
        return bounds.metric == Metric::cosine ? distance - cosine_slack : distance;
    }

    std::vector<Vector> rows;
    Vector mean;
    cuda::RowBounds bounds;
    double largest_of_rows = 0;
    std::vector<Vector> halves;  // of half kinds
    Vector penalties;

private:
    void store(double deviation)
    {
        bounds.scale = scale_for(deviation);
        bounds.norm = 0;
        for (const Vector& row : rows) {
            const StoredHalves stored = store_halves(row, mean, bounds.scale);
            halves.push_back(stored.halves);
            penalties.push_back(
                bounds.kind == cuda::ScoreKind::half_l2 ? static_cast<float>(stored.norm * stored.norm / 2) : 0.0F);
            bounds.residual = std::max(bounds.residual, stored.residual * (1 + 1e-12));
            bounds.norm = std::max(bounds.norm, stored.norm * (1 + 1e-12));
        }
    }
    Vector terms(const Query& query, std::size_t row) const
    {
        Vector products;
        for (std::size_t d = 0; d < query.own.size(); ++d) {
            const float difference = query.own[d] - rows[row][d];
            switch (bounds.kind) {
                case cuda::ScoreKind::half_l2:
                case cuda::ScoreKind::half_dot:
                    products.push_back(query.halves[d] * halves[row][d]);
                    break;
                case cuda::ScoreKind::float_l2:
                    products.push_back(difference * difference);
                    break;
                case cuda::ScoreKind::float_dot:
                    products.push_back(query.own[d] * rows[row][d]);
                    break;
                case cuda::ScoreKind::float_l1:
                    products.push_back(std::fabs(difference));
                    break;
            }
        }
        return products;
    }
};

}  // namespace pgwarp::test
