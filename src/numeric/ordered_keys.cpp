// Selection by partitions without branches.
#include "numeric/ordered_keys.h"

#include <algorithm>
#include <utility>

namespace pgwarp
{

namespace
{

constexpr std::size_t few_keys = 16;  // are sorted
constexpr int most_partitions = 64;   // before nth_element takes over, whose time has a bound

std::uint64_t median(std::uint64_t a, std::uint64_t b, std::uint64_t c)
{
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// Moves the keys below the pivot to the front (Lomuto's partition). Returns their number. A mispredicted branch costs
// more than the moves that this form makes in vain.
std::size_t partition(std::span<std::uint64_t> keys, std::uint64_t pivot)
{
    std::size_t below = 0;
    for (std::uint64_t& key : keys) {
        const std::uint64_t moved = key;
        key = keys[below];
        keys[below] = moved;
        below += moved < pivot ? 1 : 0;
    }
    return below;
}

}  // namespace

void select_smallest(std::span<std::uint64_t> keys, std::size_t count)
{
    std::size_t place = count - 1;  // of the largest selected key, in its order
    for (int partitions = 0; keys.size() > few_keys; ++partitions) {
        const std::size_t size = keys.size();
        if (partitions == most_partitions) {
            std::ranges::nth_element(keys, keys.begin() + static_cast<std::ptrdiff_t>(place));
            return;
        }
        const std::uint64_t pivot = median(keys[size / 4], keys[size / 2], keys[size - size / 4 - 1]);
        std::size_t below = partition(keys, pivot);
        if (place < below) {
            keys = keys.first(below);
            continue;
        }
        if (below == 0) {
            // The pivot is the smallest key.
            std::swap(keys[0], *std::ranges::find(keys, pivot));
            if (place == 0) return;
            below = 1;
        }
        keys = keys.subspan(below);
        place -= below;
    }
    std::ranges::sort(keys);
}

}  // namespace pgwarp
