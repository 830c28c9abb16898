#include "engine/mirror/vectors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "methods/method.h"

namespace pgwarp
{

bool all_finite(std::span<const float> values)
{
    constexpr std::uint32_t exponent = 0x7f800000U;
    std::uint32_t bad = 0;
    for (float value : values)
        bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & exponent) == exponent);
    return bad == 0;
}

void check_vectors(Metric metric, std::span<const float> vectors, std::size_t dimensions)
{
    if (is_of_bits(metric)) return;
    if (!all_finite(vectors)) throw BadRequest("vector with NaN or infinity");
    if (metric != Metric::cosine) return;
    const auto is_zero = [](float value) { return value == 0; };
    for (std::size_t at = 0; at + dimensions <= vectors.size(); at += dimensions) {
        const auto row = vectors.subspan(at, dimensions);
        if (std::all_of(row.begin(), row.end(), is_zero)) {
            throw BadRequest("zero vector in an index by cosine distance");
        }
    }
}

void prepare_vectors(Metric metric, std::span<float> vectors, std::size_t dimensions)
{
    if (is_of_bits(metric)) return;
    if (!all_finite(vectors)) throw BadRequest("vector with NaN or infinity");
    if (metric != Metric::cosine) return;
    for (std::size_t at = 0; at + dimensions <= vectors.size(); at += dimensions) {
        float* row = vectors.data() + at;
        const double norm = canonical_norm(row, dimensions);
        if (!(norm > 0)) throw BadRequest("zero vector in an index by cosine distance");
        for (std::size_t i = 0; i < dimensions; ++i) row[i] = static_cast<float>(row[i] / norm);
    }
}

void check_queries(Metric metric, std::span<const float> queries)
{
    if (!is_of_bits(metric) && !all_finite(queries)) throw BadRequest("query with NaN or infinity");
}

float bound_norm(Metric metric, std::span<const float> vector)
{
    if (is_of_bits(metric)) return 0;
    double norm = 0;
    if (metric == Metric::l1) {
        for (float value : vector) norm += std::abs(static_cast<double>(value));
    } else {
        norm = canonical_norm(vector.data(), vector.size());
    }
    if (norm > std::numeric_limits<float>::max()) return std::numeric_limits<float>::infinity();
    return std::nextafter(static_cast<float>(norm), std::numeric_limits<float>::infinity());
}

}  // namespace pgwarp
