// Selection sampling by hash.
#include "numeric/sample.h"

#include <algorithm>
#include <numeric>

#include "numeric/hash.h"

namespace pgwarp
{

std::vector<std::uint32_t> sample_rows(std::size_t count, std::size_t wanted, std::uint64_t seed)
{
    std::vector<std::uint32_t> rows;
    if (wanted >= count) {
        rows.resize(count);
        std::iota(rows.begin(), rows.end(), 0U);
        return rows;
    }
    // Selection sampling (Knuth, volume 2, algorithm S): each row is taken with probability (rows still wanted) / (rows
    // left).
    rows.reserve(wanted);
    for (std::size_t i = 0; i < count && rows.size() < wanted; ++i) {
        const double draw = static_cast<double>(mix_hash(seed * 0x100000001b3ULL + i) >> 11) * 0x1p-53;
        if (draw * static_cast<double>(count - i) < static_cast<double>(wanted - rows.size())) {
            rows.push_back(static_cast<std::uint32_t>(i));
        }
    }
    return rows;
}

std::vector<float> gather_rows(const float* rows, std::size_t dimensions, const std::vector<std::uint32_t>& numbers)
{
    std::vector<float> gathered(numbers.size() * dimensions);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        std::copy_n(rows + std::size_t{numbers[i]} * dimensions, dimensions,
                    gathered.begin() + static_cast<std::ptrdiff_t>(i * dimensions));
    }
    return gathered;
}

}  // namespace pgwarp
