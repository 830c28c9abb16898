// Helpers of the numeric tests: every instruction set in turn, random data that ends where its memory ends, and
// distances in float64.
#pragma once

#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "numeric/distance.h"

namespace pgwarp::reference
{

inline const std::vector<std::size_t> all_dimensions = {1,  2,   3,   7,   8,   15,  16,   17,   31,
                                                        64, 100, 127, 128, 129, 784, 1536, 16000};
inline const std::vector<Metric> all_metrics = {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1};

// Run the body once for every instruction set that this processor has and the library was compiled for.
template <class Body>
void for_each_target(Body body)
{
    const std::int64_t supported = hwy::SupportedTargets();
    std::string previous;
    for (int bit = 0; bit < 63; ++bit) {
        const std::int64_t target = std::int64_t{1} << bit;
        if ((supported & target) == 0) continue;
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        // Where the library lacks the target, it takes its baseline again.
        if (simd_target() != previous) body(simd_target());
        previous = simd_target();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Values at an odd multiple of their size, with nothing allocated behind the last: sanitizers see a read too far.
template <class Element>
class Unaligned
{
public:
    explicit Unaligned(std::span<const Element> values) : storage_(new Element[values.size() + 1])
    {
        if (!values.empty()) std::memcpy(storage_.get() + 1, values.data(), values.size_bytes());
    }
    const Element* data() const { return storage_.get() + 1; }

private:
    std::unique_ptr<Element[]> storage_;
};

// Integers whose sums of squares single precision holds exactly, so that every order of additions gives one result.
inline std::vector<float> small_integers(std::size_t count, std::uint32_t seed)
{
    std::mt19937 generator(seed);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(static_cast<int>(generator() % 17) - 8);
    return values;
}

inline std::vector<float> normal_values(std::size_t count, std::uint32_t seed, float spread = 1.0F, float centre = 0.0F)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> distribution;
    std::vector<float> values(count);
    for (float& value : values) value = centre + spread * distribution(generator);
    return values;
}

inline double score(Metric metric, const float* a, const float* b, std::size_t dimensions)
{
    double sum = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
        const double x = a[d];
        const double y = b[d];
        if (metric == Metric::l2) sum += (x - y) * (x - y);
        if (metric == Metric::l1) sum += std::fabs(x - y);
        if (metric == Metric::inner_product || metric == Metric::cosine) sum -= x * y;
    }
    return sum;
}

// The norm that score_error_bound() asks for, rounded up.
inline float norm(Metric metric, const float* a, std::size_t dimensions)
{
    double sum = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
        sum += metric == Metric::l1 ? std::fabs(a[d]) : static_cast<double>(a[d]) * a[d];
    }
    if (metric != Metric::l1) sum = std::sqrt(sum);
    return std::nextafter(static_cast<float>(sum), std::numeric_limits<float>::infinity());
}

}  // namespace pgwarp::reference
