// The choice of mean and scale, the conversions, and a bound of their error.
#include "numeric/half_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pgwarp
{

namespace
{

constexpr std::size_t block = 256;  // values converted at a time, in buffers on the stack
constexpr float largest_half = 65504.0F;
constexpr float largest_float = std::numeric_limits<float>::max();
// Rows of the training set are stored up to 2^14, so that rows four times as far from the mean still fit.
constexpr int stored_exponent = 14;
// The scale and its inverse must be normal floats.
constexpr int largest_exponent = 126;

// Sum, minimum and maximum of every dimension.
struct Columns {
    std::vector<double> sum;
    std::vector<float> low;
    std::vector<float> high;

    explicit Columns(std::size_t dimensions)
        : sum(dimensions, 0.0), low(dimensions, largest_float), high(dimensions, -largest_float)
    {
    }

    void add(const float* row)
    {
        for (std::size_t d = 0; d < sum.size(); ++d) {
            sum[d] += row[d];
            low[d] = row[d] < low[d] ? row[d] : low[d];
            high[d] = row[d] > high[d] ? row[d] : high[d];
        }
    }
};

// Returns the largest power of two, within limits, that keeps `deviation` at or below 2^stored_exponent.
float scale_for(double deviation)
{
    if (!(deviation > 0)) return 1.0F;
    int exponent = 0;
    std::frexp(deviation, &exponent);  // deviation < 2^exponent
    return std::ldexp(1.0F, std::clamp(stored_exponent - exponent, -largest_exponent, largest_exponent));
}

// (x - mean) * scale for up to `block` values, clamped to the range of halves. A scale below 1 is applied first,
// because the difference of two huge values may overflow; a scale above 1 is applied last, because a scaled value may
// overflow alone.
void scale_block(const float* row, const float* mean, float scale, std::size_t count, float* out)
{
    const float before = std::min(scale, 1.0F);
    const float after = std::max(scale, 1.0F);
    for (std::size_t d = 0; d < count; ++d) {
        const float value = (row[d] * before - mean[d] * before) * after;
        const float capped = value < largest_half ? value : largest_half;
        out[d] = capped > -largest_half ? capped : -largest_half;
    }
}

// stored / scale + mean, clamped to finite values. The product is exact, so the result is rounded once, except on
// underflow.
void unscale_block(const float* stored, const float* mean, float scale, std::size_t count, float* out)
{
    const float inverse = 1.0F / scale;
    for (std::size_t d = 0; d < count; ++d) {
        const float value = stored[d] * inverse + mean[d];
        const float capped = value < largest_float ? value : largest_float;
        out[d] = capped > -largest_float ? capped : -largest_float;
    }
}

}  // namespace

HalfCodec HalfCodec::train(std::span<const float> rows, std::size_t dimensions)
{
    HalfCodec codec;
    codec.mean.assign(dimensions, 0.0F);
    const std::size_t count = dimensions == 0 ? 0 : rows.size() / dimensions;
    if (count == 0) return codec;
    Columns columns(dimensions);
    for (std::size_t i = 0; i < count; ++i) columns.add(rows.data() + i * dimensions);
    double deviation = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
        codec.mean[d] = static_cast<float>(columns.sum[d] / static_cast<double>(count));
        const double mean = codec.mean[d];
        deviation = std::max({deviation, columns.high[d] - mean, mean - columns.low[d]});
    }
    codec.scale = scale_for(deviation);
    return codec;
}

void HalfCodec::encode(const float* row, half_bits* out) const
{
    float scaled[block];
    for (std::size_t begin = 0; begin < mean.size(); begin += block) {
        const std::size_t count = std::min(block, mean.size() - begin);
        scale_block(row + begin, mean.data() + begin, scale, count, scaled);
        to_half(scaled, count, out + begin);
    }
}

void HalfCodec::decode(const half_bits* row, float* out) const
{
    float stored[block];
    for (std::size_t begin = 0; begin < mean.size(); begin += block) {
        const std::size_t count = std::min(block, mean.size() - begin);
        from_half(row + begin, count, stored);
        unscale_block(stored, mean.data() + begin, scale, count, out + begin);
    }
}

// Returns the larger of two errors: that of decode()'s result, and that of the same point before it is rounded to
// floats, which distances in the stored space use. For rows far from zero either error may be 0 while the other is not.
float HalfCodec::error(const float* row) const
{
    float stored[block];
    float decoded[block];
    half_bits halves[block];
    const double inverse = 1.0 / scale;
    double from_decoded = 0;
    double from_stored = 0;
    double from_mean = 0;
    for (std::size_t begin = 0; begin < mean.size(); begin += block) {
        const std::size_t count = std::min(block, mean.size() - begin);
        scale_block(row + begin, mean.data() + begin, scale, count, stored);
        to_half(stored, count, halves);
        from_half(halves, count, stored);
        unscale_block(stored, mean.data() + begin, scale, count, decoded);
        for (std::size_t d = 0; d < count; ++d) {
            const double value = row[begin + d];
            const double centred = value - mean[begin + d];
            const double decoded_error = value - decoded[d];
            const double stored_error = centred - stored[d] * inverse;
            from_mean += centred * centred;
            from_decoded += decoded_error * decoded_error;
            from_stored += stored_error * stored_error;
        }
    }
    // The margins cover the roundings of the sums (a few thousand, each 2^-53) and of the differences.
    const double bound =
        std::sqrt(std::max(from_decoded, from_stored)) * (1 + 0x1p-32) + std::sqrt(from_mean) * 0x1p-50;
    if (bound == 0) return 0;
    if (!(bound < largest_float)) return std::numeric_limits<float>::infinity();
    return std::nextafter(static_cast<float>(bound), std::numeric_limits<float>::infinity());
}

}  // namespace pgwarp
