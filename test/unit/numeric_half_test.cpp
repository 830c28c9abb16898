// Conversions between floats and halves on every instruction set, and the codec that stores rows as halves.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "numeric/half_codec.h"
#include "numeric_reference.h"

namespace pgwarp
{
namespace
{

constexpr float infinity = std::numeric_limits<float>::infinity();

// The value of half bits by their definition.
float half_value(half_bits bits)
{
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) return fraction == 0 ? static_cast<float>(sign * infinity) : std::nanf("");
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return static_cast<float>(sign * magnitude);
}

// The half nearest to a value, ties to even, by rounding to a multiple of its last place.
half_bits nearest_half(float value)
{
    const half_bits sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    if (magnitude >= 65520) return sign | 0x7C00;
    const int exponent = std::max(magnitude == 0 ? -14 : std::ilogb(magnitude), -14);
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    // Units of 1024 and more carry into the exponent field by themselves.
    return static_cast<half_bits>(sign + ((exponent + 14) << 10) + units);
}

// Values around every half and every midpoint between two.
std::vector<float> telling_floats()
{
    std::vector<float> values;
    for (int bits = 0; bits < 0x7C00; ++bits) {
        const float value = half_value(static_cast<half_bits>(bits));
        const float next = bits == 0x7BFF ? 65536.0F : half_value(static_cast<half_bits>(bits + 1));
        for (const float point : {value, (value + next) / 2}) {
            for (const float near : {std::nextafter(point, -infinity), point, std::nextafter(point, infinity)}) {
                values.push_back(near);
                values.push_back(-near);
            }
        }
    }
    std::mt19937 generator(1);
    for (int i = 0; i < 100000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
        if (!std::isnan(value)) values.push_back(value);
    }
    return values;
}

TEST(Half, EveryHalfIsReadExactlyOnEveryTarget)
{
    reference::for_each_target([](const char* target) {
        std::vector<half_bits> bits(65536 + 3);
        for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<half_bits>(i);
        std::vector<float> values(bits.size());
        from_half(bits.data(), bits.size(), values.data());
        for (std::size_t i = 0; i < bits.size(); ++i) {
            const float expected = half_value(bits[i]);
            if (std::isnan(expected)) {
                EXPECT_TRUE(std::isnan(values[i])) << target << " " << i;
            } else {
                EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected))
                    << target << " " << i;
            }
        }
    });
}

TEST(Half, RoundsToNearestEvenOnEveryTarget)
{
    const std::vector<float> values = telling_floats();
    reference::for_each_target([&](const char* target) {
        std::vector<half_bits> bits(values.size());
        to_half(values.data(), values.size(), bits.data());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (bits[i] != nearest_half(values[i]) && ++wrong < 10) {
                ADD_FAILURE() << target << " " << values[i] << " gives " << bits[i] << " not "
                              << nearest_half(values[i]);
            }
        }
        EXPECT_EQ(wrong, 0U);
    });
}

TEST(Half, OneAtATimeConvertsToTheSame)
{
    for (int i = 0; i < 65536; ++i) {
        const auto bits = static_cast<half_bits>(i);
        const float expected = half_value(bits);
        const float found = float_of_half(bits);
        if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(found)) << i;
            EXPECT_GT(half_of_float(found) & 0x7FFF, 0x7C00) << i;
        } else {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << i;
            EXPECT_EQ(half_of_float(found), bits);
        }
    }
    std::size_t wrong = 0;
    for (const float value : telling_floats()) wrong += half_of_float(value) != nearest_half(value) ? 1 : 0;
    EXPECT_EQ(wrong, 0U);
}

TEST(Half, NotANumberAndInfinityOnEveryTarget)
{
    reference::for_each_target([](const char* target) {
        const std::vector<float> values(21, std::nanf(""));
        std::vector<half_bits> bits(values.size());
        to_half(values.data(), values.size(), bits.data());
        for (const half_bits half : bits) EXPECT_GT(half & 0x7FFF, 0x7C00) << target;
        const float infinities[2] = {infinity, -infinity};
        to_half(infinities, 2, bits.data());
        EXPECT_EQ(bits[0], 0x7C00) << target;
        EXPECT_EQ(bits[1], 0xFC00) << target;
    });
}

TEST(Half, ConversionsTouchNothingBeyondTheirRange)
{
    reference::for_each_target([](const char* target) {
        for (std::size_t count = 0; count < 70; ++count) {
            const std::vector<float> values = reference::small_integers(count, 2);
            const reference::Unaligned<float> floats{values};
            std::vector<half_bits> bits(count + 1, 0x1234);
            to_half(floats.data(), count, bits.data());
            EXPECT_EQ(bits[count], 0x1234) << target << " " << count;
            bits.pop_back();
            const reference::Unaligned<half_bits> halves{std::span<const half_bits>(bits)};
            std::vector<float> back(count + 1, 7.5F);
            from_half(halves.data(), count, back.data());
            EXPECT_EQ(back[count], 7.5F) << target << " " << count;
            back.pop_back();
            EXPECT_EQ(back, values) << target << " " << count;
        }
    });
}

// Distances of a row to its stored form: as decode() returns it, and before decode() rounds it to floats.
struct StoredError {
    double decoded = 0;
    double exact = 0;
};

StoredError stored_error(const HalfCodec& codec, const float* row, const std::vector<half_bits>& stored)
{
    std::vector<float> decoded(stored.size());
    codec.decode(stored.data(), decoded.data());
    long double decoded_sum = 0;
    long double exact_sum = 0;
    for (std::size_t d = 0; d < stored.size(); ++d) {
        const long double value = row[d];
        const long double point = static_cast<long double>(half_value(stored[d])) / codec.scale + codec.mean[d];
        decoded_sum += (value - decoded[d]) * (value - decoded[d]);
        exact_sum += (value - point) * (value - point);
    }
    return {static_cast<double>(std::sqrt(decoded_sum)), static_cast<double>(std::sqrt(exact_sum))};
}

// Train on rows and check the bounds of all of them.
void expect_sound(const std::string& name, const std::vector<float>& rows, std::size_t dimensions)
{
    SCOPED_TRACE(name);
    const HalfCodec codec = HalfCodec::train(rows, dimensions);
    int exponent = 0;
    EXPECT_EQ(std::frexp(codec.scale, &exponent), 0.5F);
    ASSERT_EQ(codec.mean.size(), dimensions);
    std::vector<half_bits> stored(dimensions);
    double largest = 0;
    double deviation = 0;
    for (std::size_t i = 0; i < rows.size() / dimensions; ++i) {
        const float* row = rows.data() + i * dimensions;
        codec.encode(row, stored.data());
        for (std::size_t d = 0; d < dimensions; ++d) {
            const double value = half_value(stored[d]);
            ASSERT_TRUE(std::isfinite(value));
            const double centred = static_cast<double>(row[d]) - codec.mean[d];
            largest = std::max(largest, std::fabs(value));
            deviation = std::max(deviation, std::fabs(centred));
            // Half of the last place of a half, and two roundings of a float.
            const double place = std::max(std::fabs(centred * codec.scale) * 0x1p-11, 0x1p-25);
            EXPECT_LE(std::fabs(value - centred * codec.scale), place * (1 + 0x1p-10)) << i << " " << d;
        }
        const StoredError truth = stored_error(codec, row, stored);
        const double error = codec.error(row);
        ASSERT_TRUE(std::isfinite(error));
        EXPECT_GE(error, truth.decoded);
        EXPECT_GE(error, truth.exact);
        EXPECT_LE(error, std::max(truth.decoded, truth.exact) * (1 + 1e-6) + 1e-44 + 1e-13 * deviation);
    }
    EXPECT_LE(largest, 16384);
    if (deviation > 1e-33) {
        EXPECT_GE(largest, 8192 * 0.999);
    }
}

TEST(HalfCodec, StoresAnyFiniteRows)
{
    const float huge = std::numeric_limits<float>::max();
    const float tiny = std::numeric_limits<float>::denorm_min();
    for (const std::size_t dimensions : {1, 3, 128, 300, 1537}) {
        const std::size_t count = 20;
        const std::size_t values = dimensions * count;
        expect_sound("normal", reference::normal_values(values, 1), dimensions);
        expect_sound("small", reference::normal_values(values, 2, 1e-30F), dimensions);
        expect_sound("large", reference::normal_values(values, 3, 1e30F), dimensions);
        expect_sound("far from zero", reference::normal_values(values, 4, 1.0F, 1e6F), dimensions);
        expect_sound("zeros", std::vector<float>(values, 0.0F), dimensions);
        expect_sound("equal", std::vector<float>(values, 0.1F), dimensions);
        expect_sound("one row", reference::normal_values(dimensions, 5), dimensions);
        std::vector<float> extreme(values);
        for (std::size_t i = 0; i < values; ++i) extreme[i] = i % 3 == 0 ? huge : i % 3 == 1 ? -huge : 1e38F;
        expect_sound("huge", extreme, dimensions);
        for (std::size_t i = 0; i < values; ++i) extreme[i] = i % 3 == 0 ? tiny : i % 3 == 1 ? -5 * tiny : 0.0F;
        expect_sound("denormal", extreme, dimensions);
        expect_sound("all the largest float", std::vector<float>(values, huge), dimensions);
    }
}

TEST(HalfCodec, UnseenFarRowsSaturateAndErrorTellsTheTruth)
{
    const std::size_t dimensions = 100;
    const HalfCodec codec = HalfCodec::train(reference::normal_values(dimensions * 50, 6), dimensions);
    for (const float factor : {10.0F, 1e6F, 1e30F, 3e38F}) {
        std::vector<float> row(dimensions, factor);
        for (std::size_t d = 0; d < dimensions; d += 2) row[d] = -factor;
        std::vector<half_bits> stored(dimensions);
        codec.encode(row.data(), stored.data());
        for (std::size_t d = 0; d < dimensions; ++d) {
            const float value = half_value(stored[d]);
            EXPECT_TRUE(std::isfinite(value));
            if (factor > 1000) {
                EXPECT_EQ(value, d % 2 == 0 ? -65504.0F : 65504.0F);
            }
        }
        const StoredError truth = stored_error(codec, row.data(), stored);
        EXPECT_GE(static_cast<double>(codec.error(row.data())), truth.decoded);
        EXPECT_GE(static_cast<double>(codec.error(row.data())), truth.exact);
        if (factor < 1e37F) {
            EXPECT_LE(codec.error(row.data()), std::max(truth.decoded, truth.exact) * (1 + 1e-6));
        }
    }
}

TEST(HalfCodec, RowsTwiceAsFarAsTheTrainedOnesStillFit)
{
    const std::vector<float> rows = {-1, 1};
    const HalfCodec codec = HalfCodec::train(rows, 1);
    const float far = 3.9F;
    EXPECT_LT(codec.error(&far), 0.005F);
}

TEST(HalfCodec, DecodeIsFiniteAndExactForExactValues)
{
    const std::vector<float> rows = {-2, 0.5F, 2, -0.5F};
    const HalfCodec codec = HalfCodec::train(rows, 2);
    std::vector<half_bits> stored(2);
    std::vector<float> decoded(2);
    codec.encode(rows.data(), stored.data());
    codec.decode(stored.data(), decoded.data());
    EXPECT_EQ(decoded[0], -2);
    EXPECT_EQ(decoded[1], 0.5F);
    EXPECT_LT(codec.error(rows.data()), 1e-14F);
    const float huge = std::numeric_limits<float>::max();
    const std::vector<float> extremes = {huge, -huge, 1};
    const HalfCodec wide = HalfCodec::train(extremes, 1);
    const half_bits largest = 0x7BFF;
    wide.decode(&largest, decoded.data());
    EXPECT_EQ(decoded[0], huge);
}

TEST(HalfCodec, NoRowsGiveTheIdentity)
{
    const HalfCodec codec = HalfCodec::train({}, 4);
    EXPECT_EQ(codec.mean, std::vector<float>(4, 0.0F));
    EXPECT_EQ(codec.scale, 1.0F);
}

}  // namespace
}  // namespace pgwarp
