// Selection of the k smallest (score, id) pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace pgwarp
{

// A row with its score, ordered by (score, row).
struct Candidate {
    float score;
    std::uint32_t row;
    bool operator<(const Candidate& other) const
    {
        return score != other.score ? score < other.score : row < other.row;
    }
};

// Keeps the k smallest candidates of a stream. Instead of a heap there is a buffer of candidates below the threshold;
// it is cut back with nth_element when full, so most pushes cost one comparison.
class TopK
{
public:
    explicit TopK(std::size_t k);

    // Scores at or above this cannot enter any more (+infinity until k candidates were pushed).
    float threshold() const { return threshold_; }
    void push(float score, std::uint32_t row)
    {
        if (score < threshold_) insert({score, row});
    }
    // Pushes scores[i] with row first_row + i; the comparison with the threshold is vectorised.
    void push_block(const float* scores, std::size_t count, std::uint32_t first_row);
    // Adds the candidates of another selection, whose k must not be smaller.
    void merge(const TopK& other);

    // Returns the k smallest (fewer if fewer were pushed), sorted by (score, row). The object must not be used
    // afterwards.
    std::vector<Candidate> take_sorted();

private:
    void insert(Candidate candidate);
    void cut();

    std::size_t k_;
    float threshold_ = std::numeric_limits<float>::infinity();
    std::vector<Candidate> buffer_;
};

}  // namespace pgwarp
