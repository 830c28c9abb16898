// Selection of the k smallest (score, id) pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/ordered_keys.h"

namespace pgwarp
{

// Keeps the k smallest candidates of a stream. Instead of a heap there is a buffer of candidates below the threshold;
// it is cut back when full, so most pushes cost one comparison.
class TopK
{
public:
    explicit TopK(std::size_t k);

    // Scores at or above this cannot enter any more (+infinity until k candidates were pushed).
    float threshold() const { return threshold_; }
    void push(float score, std::uint32_t row)
    {
        if (score < threshold_) insert(ordered_key(score, row));
    }
    // Pushes scores[i] with row first_row + i; the comparison with the threshold is vectorised.
    void push_block(const float* scores, std::size_t count, std::uint32_t first_row);
    // Adds the candidates of another selection, whose k must not be smaller.
    void merge(const TopK& other);

    // Returns the k smallest (fewer if fewer were pushed), sorted by (score, row). The object must not be used
    // afterwards.
    std::vector<Candidate> take_sorted();

private:
    void insert(std::uint64_t key);
    void cut();

    std::size_t k_;
    float threshold_ = std::numeric_limits<float>::infinity();
    std::vector<std::uint64_t> buffer_;  // keys of candidates
};

}  // namespace pgwarp
