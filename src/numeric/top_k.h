// Selection of the k smallest (score, id) pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace pgwarp
{

struct Candidate {
    float score;
    std::uint32_t row;
    bool operator<(const Candidate& other) const
    {
        return score != other.score ? score < other.score : row < other.row;
    }
};

// Keeps the k smallest candidates of a stream. Not a heap per push: candidates below the threshold are buffered and the
// buffer is cut back with nth_element when full, so a push costs a compare almost always.
class TopK
{
public:
    explicit TopK(std::size_t k);

    // Scores at or above this can't enter any more (+infinity until k were seen).
    float threshold() const { return threshold_; }
    void push(float score, std::uint32_t row)
    {
        if (score < threshold_) insert({score, row});
    }
    // Pushes scores[i] with row first_row + i; vectorised compare against the threshold.
    void push_block(const float* scores, std::size_t count, std::uint32_t first_row);
    void merge(const TopK& other);

    // The k smallest (fewer when fewer were pushed), sorted by (score, row). The object is spent.
    std::vector<Candidate> take_sorted();

private:
    void insert(Candidate candidate);
    void cut();

    std::size_t k_;
    float threshold_ = std::numeric_limits<float>::infinity();
    std::vector<Candidate> buffer_;
};

}  // namespace pgwarp
