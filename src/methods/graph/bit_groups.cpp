// Groups of rows of bits: k-means whose centres are majorities (Hamming) or the most frequent bits (Jaccard).
#include "methods/graph/bit_groups.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "methods/graph/build_loop.h"
#include "numeric/bits.h"
#include "numeric/distance.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t bit_iterations = 3;
constexpr std::size_t sampled_per_bit_group = 32;

// Returns a number of rows whose comparison with all centres takes less than 100 ms.
std::size_t rows_at_once(std::size_t centres, std::size_t words)
{
    const double ns = static_cast<double>(centres) * (2 + static_cast<double>(words) / 24);
    return std::clamp<std::size_t>(static_cast<std::size_t>(1e8 / ns), 256, 65536);
}

std::uint32_t word_of(const float* row, std::size_t word)
{
    return std::bit_cast<std::uint32_t>(row[word]);
}

// Counts, for each bit, the rows that have it set.
class BitCounts
{
public:
    explicit BitCounts(std::size_t words) : counts_(words * bits_of_word), order_(counts_.size()) {}

    void clear()
    {
        std::fill(counts_.begin(), counts_.end(), 0);
        rows_ = 0;
        ones_ = 0;
    }
    void add(const float* row)
    {
        ++rows_;
        for (std::size_t word = 0; word * bits_of_word < counts_.size(); ++word) {
            for (std::uint32_t rest = word_of(row, word); rest != 0; rest &= rest - 1) {
                ++counts_[word * bits_of_word + static_cast<std::size_t>(std::countr_zero(rest))];
                ++ones_;
            }
        }
    }
    std::size_t rows() const { return rows_; }

    // Writes the row with the smallest sum of Hamming distances: each bit as most rows have it.
    void majority(float* out)
    {
        set_bits(out, [this](std::size_t bit) { return 2 * std::size_t{counts_[bit]} > rows_; });
    }
    // Writes the most frequent bits, as many as an average row has. Where rows have few bits, hardly any bit is set in
    // most rows.
    void most_frequent(float* out)
    {
        const std::size_t usual = (ones_ + rows_ / 2) / rows_;
        std::iota(order_.begin(), order_.end(), 0U);
        const auto more = [this](std::uint32_t a, std::uint32_t b) {
            return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
        };
        std::nth_element(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(usual), order_.end(), more);
        if (usual == order_.size()) return set_bits(out, [](std::size_t) { return true; });
        const std::uint32_t first_left_out = order_[usual];
        set_bits(out, [&](std::size_t bit) { return more(static_cast<std::uint32_t>(bit), first_left_out); });
    }

private:
    template <class IsSet>
    void set_bits(float* out, IsSet is_set) const
    {
        for (std::size_t word = 0; word * bits_of_word < counts_.size(); ++word) {
            std::uint32_t bits = 0;
            for (std::size_t bit = 0; bit < bits_of_word; ++bit)
                bits |= static_cast<std::uint32_t>(is_set(word * bits_of_word + bit)) << bit;
            out[word] = std::bit_cast<float>(bits);
        }
    }

    std::vector<std::uint32_t> counts_;
    std::vector<std::uint32_t> order_;
    std::size_t rows_ = 0;
    std::size_t ones_ = 0;
};

// out[i] = the nearest centre of row i of rows[count][words].
void assign(Metric metric, const float* rows, std::size_t count, std::size_t words, std::span<const float> centres,
            std::uint32_t* out)
{
    std::vector<float> distances(centres.size() / words);
    for (std::size_t i = 0; i < count; ++i) {
        scores(metric, rows + i * words, centres.data(), distances.size(), words, distances.data());
        const auto nearest = std::min_element(distances.begin(), distances.end());
        out[i] = static_cast<std::uint32_t>(nearest - distances.begin());
    }
}

// Moves the centres to their rows; one without rows stays.
void move_centres(Metric metric, std::span<const float> rows, std::span<const std::uint32_t> group_of,
                  std::size_t words, std::span<float> centres, ThreadPool& pool)
{
    std::vector<std::vector<std::uint32_t>> members(centres.size() / words);
    for (std::uint32_t i = 0; i < group_of.size(); ++i) members[group_of[i]].push_back(i);
    pool.parallel_for(members.size(), 16, [&](std::size_t begin, std::size_t end) {
        BitCounts counts(words);
        for (std::size_t group = begin; group < end; ++group) {
            counts.clear();
            for (const std::uint32_t row : members[group]) counts.add(rows.data() + row * words);
            if (counts.rows() == 0) continue;
            float* centre = centres.data() + group * words;
            if (metric == Metric::hamming) {
                counts.majority(centre);
            } else {
                counts.most_frequent(centre);
            }
        }
    });
}

}  // namespace

std::vector<float> choose_bit_centres(const GraphSpace& space, std::size_t wanted, std::uint64_t seed,
                                      const BuildProgress& progress, ThreadPool& pool)
{
    const std::size_t words = space.dimensions();
    const std::vector<std::uint32_t> sampled = sample_rows(space.count(), wanted * sampled_per_bit_group, seed);
    const std::vector<float> sample = gather_rows(space.rows().data(), words, sampled);
    std::vector<float> centres = gather_rows(space.rows().data(), words, sample_rows(space.count(), wanted, seed + 1));
    std::vector<std::uint32_t> group_of(sampled.size());
    const std::size_t step = rows_at_once(wanted, words);
    for (std::size_t i = 0; i < bit_iterations; ++i) {
        for_rows(group_of.size(), step, 64, "grouping rows", progress, pool, [&](std::size_t begin, std::size_t end) {
            assign(space.metric(), sample.data() + begin * words, end - begin, words, centres, group_of.data() + begin);
        });
        move_centres(space.metric(), sample, group_of, words, centres, pool);
    }
    return centres;
}

std::vector<std::uint32_t> assign_bits(const GraphSpace& space, std::span<const float> centres,
                                       const BuildProgress& progress, ThreadPool& pool)
{
    std::vector<std::uint32_t> group_of(space.count());
    const std::size_t step = rows_at_once(centres.size() / space.dimensions(), space.dimensions());
    for_rows(group_of.size(), step, 64, "assigning rows", progress, pool, [&](std::size_t begin, std::size_t end) {
        assign(space.metric(), space.row(begin), end - begin, space.dimensions(), centres, group_of.data() + begin);
    });
    return group_of;
}

}  // namespace pgwarp
