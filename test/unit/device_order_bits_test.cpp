// Floats and doubles as integers of the same order, on the host.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "select/order_bits.h"

namespace pgwarp::test
{

namespace
{

using namespace cuda;

template <class T>
std::vector<T> ascending_numbers()
{
    using limits = std::numeric_limits<T>;
    return {-limits::infinity(),  limits::lowest(), T(-1.5), -limits::denorm_min(), T(-0.0),           T(0.0),
            limits::denorm_min(), limits::min(),    T(1.5),  limits::max(),         limits::infinity()};
}

TEST(OrderBits, ascendAsNumbersDo)
{
    const auto floats = ascending_numbers<float>();
    const auto doubles = ascending_numbers<double>();
    for (std::size_t i = 1; i < floats.size(); ++i) {
        EXPECT_LT(order_of(floats[i - 1]), order_of(floats[i])) << i;
        EXPECT_LT(order_of(doubles[i - 1]), order_of(doubles[i])) << i;
    }
}

TEST(OrderBits, comeBackBitForBit)
{
    for (const float value : ascending_numbers<float>()) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(float_of_order(order_of(value))), std::bit_cast<std::uint32_t>(value));
    }
    for (const double value : ascending_numbers<double>()) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(double_of_order(order_of(value))), std::bit_cast<std::uint64_t>(value));
    }
}

TEST(OrderBits, noCandidatesHaveTheLastKey)
{
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float none : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
        EXPECT_EQ(score_key(none), no_key);
    }
    EXPECT_LT(score_key(std::numeric_limits<float>::max()), no_key);
}

}  // namespace

}  // namespace pgwarp::test
