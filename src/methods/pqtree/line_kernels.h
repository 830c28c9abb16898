// The loops that choose lines and make codes, with run-time SIMD dispatch (Highway).
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace pgwarp
