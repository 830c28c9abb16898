// Rows of inverted lists as bytes, laid out so that one instruction advances sixteen rows by four dimensions. The CPU's
// mirror takes the bytes from the stored codes (codes = int8) or derives them from the stored vectors as it loads.
//
// A row's residual r (to its list's centroid) is stored as scale * (byte - 128). Each row has a scale of its own, so
// that one row far from the others does not cost them precision. A query's residual y is stored as step * (signed
// byte). Sums of products are exact integers, so every instruction set proposes the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/bulk_memory.h"

namespace pgwarp
{

// A query's residual to a list's centroid, in bytes.
struct ByteQuery {
    std::vector<std::int8_t> values;  // padded with zeros to whole groups
    float step = 0;
    std::int32_t offset = 0;  // 128 * sum of the values
    float squared_norm = 0;   // of the vector before rounding

    float bias_weight = 1;  // weight of the rows' biases in the scores

    // Encodes a - weight * b; b may be null.
    void assign(const float* a, const float* b, std::size_t dimensions, float weight = 1);
};

// The terms of a query in the scores of its rows.
struct ByteTerms {
    const std::int8_t* query;
    std::int32_t offset;
    float factor;
    float base;
    float bias_weight;
};

// out[d] = 128 + (a - b)[d] / scale, rounded (b may be null); returns the scale, which takes the largest element to
// 127. The same bits on every device: cuda/rows/forms.h.
float encode_bytes(const float* a, const float* b, std::size_t dimensions, std::uint8_t* out);

class ByteLists
{
public:
    static constexpr std::size_t block = 16;

    // sizes[list]: number of rows. squared: scores include |r|^2 (l2); otherwise the bias of set_bias().
    void layout(const std::vector<std::uint32_t>& sizes, std::size_t dimensions, bool squared);

    std::size_t lists() const { return begin_.size() - 1; }
    std::size_t size(std::size_t list) const { return size_[list]; }
    // Slots of a list, a multiple of the block: [begin, begin + padded size).
    std::size_t begin(std::size_t list) const { return begin_[list]; }
    std::size_t padded(std::size_t list) const { return begin_[list + 1] - begin_[list]; }
    std::size_t slots() const { return begin_.back(); }
    std::size_t longest() const { return longest_; }

    // Stores a - b (b may be null) at a slot.
    void set(std::size_t slot, const float* a, const float* b);
    // Stores encoded bytes in pieces, of dimensions [first, first + count), and at last the scale. Thread-safe for
    // different pieces.
    void put(std::size_t slot, std::size_t first, std::size_t count, const std::uint8_t* bytes);
    void finish(std::size_t slot, float scale);
    // Sets the bias of a filled slot, in lists that are not squared; it is 0 before.
    void set_bias(std::size_t slot, float bias) { bias_[slot] = bias; }
    // out = the decoded row of a slot, plus b. Rounded as on every device: scale * (byte - 128) first, then the sum.
    void decode(std::size_t slot, const float* b, float* out) const;

    // out[i] = base + score of slot begin(list) + i, i < padded(list). The score is |r|^2 - 2 y.r for squared lists and
    // bias_weight * bias - y.r for others. The score of padding is infinite with bias_weight 1 and undefined with other
    // weights.
    void score(std::size_t list, const ByteQuery& query, float base, float* out) const
    {
        score(list, 0, padded(list), query, base, out);
    }
    // The same for slots [first, first + count) of the list, whole blocks.
    void score(std::size_t list, std::size_t first, std::size_t count, const ByteQuery& query, float base,
               float* out) const;

    // Prefetches the beginning of a list that is scored soon. Lists are read in random order, and the lists of parts
    // are short.
    void prefetch(std::size_t list) const;

    // The largest scale of a row.
    float largest_scale() const;
    std::uint64_t memory_bytes() const;

private:
    std::uint8_t* row_of(std::size_t slot) { return codes_.data() + slot / block * groups_ * 64 + slot % block * 4; }

    std::size_t dimensions_ = 0;
    std::size_t groups_ = 0;  // of four dimensions
    bool squared_ = false;
    std::size_t longest_ = 0;
    std::vector<std::size_t> begin_{0};
    std::vector<std::uint32_t> size_;
    BulkVector<std::uint8_t> codes_;  // [slots / block][groups][block][4]
    std::vector<float> scale_;
    std::vector<float> bias_;
};

// Writes the indices i of scores[i] < threshold in order; returns their number. `out` has room for count + 16.
std::size_t select_below(const float* scores, std::size_t count, float threshold, std::uint32_t* out);

}  // namespace pgwarp
