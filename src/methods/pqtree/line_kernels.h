// The loops of line quantization, with run-time SIMD dispatch (Highway).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pgwarp
{

// Lines of one line part in the kernels' layout: blocks of 16, dimension by dimension. A line is a point and a
// direction of unit length, or of length 0. Points, and rows compared with them, are relative to one origin.
class PackedLines
{
public:
    static constexpr std::size_t block = 16;

    PackedLines() = default;
    PackedLines(std::size_t count, std::size_t dimensions);

    void set(std::size_t line, const float* point, const float* direction);

    std::size_t count() const { return count_; }
    std::size_t blocks() const { return along_.size() / block; }
    std::size_t dimensions() const { return dimensions_; }
    const float* points(std::size_t at) const { return points_.data() + at * block * dimensions_; }
    const float* directions(std::size_t at) const { return directions_.data() + at * block * dimensions_; }
    const float* norms(std::size_t at) const { return norms_.data() + at * block; }
    const float* along(std::size_t at) const { return along_.data() + at * block; }

private:
    std::size_t count_ = 0;
    std::size_t dimensions_ = 0;
    std::vector<float> points_;      // [blocks][dimensions][block]
    std::vector<float> directions_;  // [blocks][dimensions][block]
    std::vector<float> norms_;       // [blocks][block]: |point|^2; infinite in unused places
    std::vector<float> along_;       // [blocks][block]: point . direction
};

// The line nearest to a row, and the place of the row's projection: its distance from the line's point.
struct LinePlace {
    std::uint32_t line;
    float place;
};

// out[i] for rows [count][dimensions]; ties go to the lower line.
void nearest_lines(const PackedLines& lines, const float* rows, std::size_t count, LinePlace* out);

// errors[line * stride + i] = the squared error of row i on each line, for rows [count][dimensions].
void line_errors(const PackedLines& lines, const float* rows, std::size_t count, std::size_t stride, float* errors);

// Returns the sum over i of max(0, current[i] - errors[i]), in a fixed order.
float line_gain(const float* current, const float* errors, std::size_t count);

// Vectors in blocks of 16, dimension by dimension: [blocks][dimensions][16].
inline std::size_t blocks_of(std::size_t count)
{
    return (count + PackedLines::block - 1) / PackedLines::block;
}

// out[i] = the score of packed vector i for a query: its squared L2 distance, or its negative inner product. `out` has
// room for whole blocks.
void score_packed(bool squared, const float* values, std::size_t blocks, std::size_t dimensions, const float* query,
                  float* out);

// ranks[i] = the number of keys below key i, of different keys. Takes count^2 comparisons without branches.
void rank_keys(const std::uint64_t* keys, std::size_t count, std::uint32_t* ranks);

// What line_term() needs of the lines of one line part, an array each, padded to whole blocks.
struct LineArrays {
    std::vector<std::int32_t> from;  // centroids of the first level
    std::vector<std::int32_t> to;
    std::vector<float> first;  // lambda of the byte 0
    std::vector<float> step;
    std::vector<float> length;

    explicit LineArrays(std::size_t lines = 0);
};

// A query's terms in 16 bits: base in the upper half of a word, slope in the lower. The score of a row is
// unit * (sum of base * base_weight + slope * place) + its bias + shift. No sum exceeds 32 bits.
struct CodeTerms {
    std::vector<std::int32_t> words;  // [padded line parts][256]
    std::int32_t base_weight = 1;
    float unit = 0;
    float shift = 0;
};

// Makes the terms of a query; centroid_scores [line parts][stride].
void make_terms(std::span<const LineArrays> lines, const float* centroid_scores, std::size_t stride, CodeTerms& terms);

// Codes are padded to whole vectors of 16 line parts: [row][2][padded line parts], lines first.
inline std::size_t padded_line_parts(std::size_t line_parts)
{
    return blocks_of(line_parts) * PackedLines::block;
}

// out[i] = score of the row at positions[i].
void score_codes(const CodeTerms& terms, const std::uint8_t* codes, const float* biases, std::size_t padded_parts,
                 const std::uint32_t* positions, std::size_t count, float* out);

}  // namespace pgwarp
