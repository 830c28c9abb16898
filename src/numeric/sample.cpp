// Selection sampling by hash, and of many rows sampling span by span.
#include "numeric/sample.h"

#include <algorithm>
#include <numeric>

#include "numeric/hash.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_drawn = std::size_t{1} << 19;  // rows that are drawn one by one
constexpr std::size_t least_span = 16;                    // so that every row is about as likely

std::uint64_t hash_of(std::uint64_t seed, std::size_t number)
{
    return mix_hash(seed * 0x100000001b3ULL + number);
}

}  // namespace

std::vector<std::uint32_t> sample_rows(std::size_t count, std::size_t wanted, std::uint64_t seed)
{
    std::vector<std::uint32_t> rows;
    if (wanted >= count) {
        rows.resize(count);
        std::iota(rows.begin(), rows.end(), 0U);
        return rows;
    }
    rows.reserve(wanted);
    if (count > most_drawn && count / least_span >= wanted) {
        for (std::uint64_t i = 0; i < wanted; ++i) {
            const std::uint64_t begin = i * count / wanted;
            rows.push_back(static_cast<std::uint32_t>(begin + hash_of(seed, i) % ((i + 1) * count / wanted - begin)));
        }
        return rows;
    }
    // Selection sampling (Knuth, volume 2, algorithm S): each row is taken with probability (rows still wanted) / (rows
    // left).
    for (std::size_t i = 0; i < count && rows.size() < wanted; ++i) {
        const double draw = static_cast<double>(hash_of(seed, i) >> 11) * 0x1p-53;
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
