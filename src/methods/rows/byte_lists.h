// Rows of inverted lists as bytes, laid out so that one instruction advances sixteen rows by four dimensions. The CPU's
// mirror takes the bytes from the stored codes (codes = int8) or derives them from the stored vectors as it loads.
//
// A row's residual r (to its list's centroid) is kept as scale * (byte - 128), the scale its own, so that one row far
// from the others takes no precision from them; a query's residual y as step * (signed byte). Sums of products are
// exact integers, so every instruction set proposes the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/bulk_memory.h"

namespace pgwarp
{

// A query's vector (what a list's centroid leaves of it) in bytes.
struct ByteQuery {
    std::vector<std::int8_t> values;  // padded with zeros to whole groups
    float step = 0;
    std::int32_t offset = 0;  // 128 * sum of the values
    float squared_norm = 0;   // of the vector before rounding

    float bias_weight = 1;  // of what the rows' scores hold besides products

    // From a - weight * b; b may be null.
    void assign(const float* a, const float* b, std::size_t dimensions, float weight = 1);
};

// What the scores of a block are made of.
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

    // sizes[list] rows each. squared: scores hold |r|^2 (l2), otherwise what set_bias() says.
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
    // The same from encoded bytes, which may come in pieces: of dimensions [first, first + count), and in the end the
    // scale. Different pieces may be put by different threads.
    void put(std::size_t slot, std::size_t first, std::size_t count, const std::uint8_t* bytes);
    void finish(std::size_t slot, float scale);
    // What the score of a filled slot holds besides products: 0 until it is said, in lists that are not squared.
    void set_bias(std::size_t slot, float bias) { bias_[slot] = bias; }
    // What a slot holds, with b added to it. Rounded as on every device: scale * (byte - 128), then the sum.
    void decode(std::size_t slot, const float* b, float* out) const;

    // out[i] = base + score of slot begin(list) + i, i < padded(list). The score is |r|^2 - 2 y.r for squared lists and
    // bias_weight * bias - y.r for others; of padding it is infinite with the weight 1 and says nothing with others.
    void score(std::size_t list, const ByteQuery& query, float base, float* out) const
    {
        score(list, 0, padded(list), query, base, out);
    }
    // The same of slots [first, first + count) of the list, whole blocks.
    void score(std::size_t list, std::size_t first, std::size_t count, const ByteQuery& query, float base,
               float* out) const;

    // Asks for the beginning of a list, which is to be scored soon: lists are read at random, and those of parts are
    // short.
    void prefetch(std::size_t list) const;

    // Of any row.
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

// The indices below `threshold` of scores[0, count), in order; returns how many. `out` holds count + 16.
std::size_t select_below(const float* scores, std::size_t count, float threshold, std::uint32_t* out);

}  // namespace pgwarp
