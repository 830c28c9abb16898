// Draws of first rows.
#include "numeric/kmeans_rules.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace pgwarp
{

namespace
{

// A shuffle of [0, count) that stores only the displaced places.
class Shuffle
{
public:
    Shuffle(std::size_t count, std::uint64_t seed) : count_(count), seed_(seed) {}

    std::size_t drawn() const { return drawn_; }
    // Returns the next `wanted` numbers, or fewer at the end.
    std::vector<std::uint32_t> draw(std::size_t wanted)
    {
        std::vector<std::uint32_t> numbers(std::min(wanted, count_ - drawn_));
        for (std::uint32_t& number : numbers) {
            const std::size_t other = drawn_ + mix_hash(seed_ * 0x100000001b3ULL + drawn_) % (count_ - drawn_);
            number = at(other);
            displaced_[other] = at(drawn_);
            ++drawn_;
        }
        return numbers;
    }

private:
    std::uint32_t at(std::size_t place) const
    {
        const auto found = displaced_.find(place);
        return found == displaced_.end() ? static_cast<std::uint32_t>(place) : found->second;
    }

    std::size_t count_;
    std::uint64_t seed_;
    std::size_t drawn_ = 0;
    std::unordered_map<std::size_t, std::uint32_t> displaced_;
};

}  // namespace

std::vector<std::uint32_t> draw_rows(std::size_t count, std::size_t wanted, std::uint64_t seed)
{
    return Shuffle(count, seed).draw(wanted);
}

std::vector<std::uint32_t> choose_first_rows(std::size_t count, std::size_t clusters, std::uint64_t seed,
                                             const RowHasher& hashes)
{
    Shuffle shuffle(count, seed);
    std::vector<std::uint32_t> chosen;
    if (clusters >= count) {
        chosen = shuffle.draw(count);
    } else {
        const std::size_t most = std::min(count, 16 * clusters);
        std::unordered_set<std::uint64_t> seen;
        while (chosen.size() < clusters && shuffle.drawn() < most) {
            // Each step doubles the number of drawn rows.
            const std::size_t wanted = shuffle.drawn() == 0 ? clusters : shuffle.drawn();
            const std::vector<std::uint32_t> numbers = shuffle.draw(std::min(wanted, most - shuffle.drawn()));
            const std::vector<std::uint64_t> found = hashes(numbers);
            for (std::size_t i = 0; i < numbers.size() && chosen.size() < clusters; ++i)
                if (seen.insert(found[i]).second) chosen.push_back(numbers[i]);
        }
    }
    const std::size_t different = chosen.size();
    chosen.resize(clusters);
    for (std::size_t c = different; c < clusters; ++c) chosen[c] = chosen[c % different];
    return chosen;
}

}  // namespace pgwarp
