// Distances of rows to lines, some rows and sixteen lines at a time.
#include "methods/pqtree/line_kernels.h"

#include <algorithm>
#include <limits>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/pqtree/line_kernels.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, PackedLines::block>;
using Words = hn::RebindToUnsigned<Floats>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());
constexpr std::size_t kRows = 4;  // rows at a time

// |x - p|^2 - ((x - p).u)^2 without |x|^2, and (x - p).u, of some lanes of a block for kRows rows.
struct LineErrors {
    hn::Vec<Floats> error[kRows];
    hn::Vec<Floats> place[kRows];
};

HWY_INLINE void compare_lanes(const PackedLines& lines, std::size_t at, std::size_t lane, const float* const* rows,
                              LineErrors& out)
{
    const Floats floats;
    const float* points = lines.points(at) + lane;
    const float* directions = lines.directions(at) + lane;
    hn::Vec<Floats> to_point[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
        to_point[r] = hn::Zero(floats);
        out.place[r] = hn::Neg(hn::LoadU(floats, lines.along(at) + lane));
    }
    for (std::size_t d = 0; d < lines.dimensions(); ++d) {
        const auto point = hn::LoadU(floats, points + d * PackedLines::block);
        const auto direction = hn::LoadU(floats, directions + d * PackedLines::block);
        for (std::size_t r = 0; r < kRows; ++r) {
            const auto value = hn::Set(floats, rows[r][d]);
            to_point[r] = hn::MulAdd(value, point, to_point[r]);
            out.place[r] = hn::MulAdd(value, direction, out.place[r]);
        }
    }
    const auto norm = hn::LoadU(floats, lines.norms(at) + lane);
    for (std::size_t r = 0; r < kRows; ++r) {
        const auto beside = hn::NegMulAdd(hn::Set(floats, 2.0F), to_point[r], norm);
        out.error[r] = hn::NegMulAdd(out.place[r], out.place[r], beside);
    }
}

HWY_INLINE LinePlace best_lane(hn::Vec<Floats> error, hn::Vec<Words> line, hn::Vec<Floats> place)
{
    const auto nearest = hn::RebindMask(Words(), hn::Eq(error, hn::MinOfLanes(Floats(), error)));
    const auto lines = hn::IfThenElse(nearest, line, hn::Set(Words(), 0xffffffff));
    const auto first = hn::MinOfLanes(Words(), lines);
    const auto only = hn::IfThenElseZero(hn::RebindMask(Floats(), hn::Eq(lines, first)), place);
    return {hn::GetLane(first), hn::GetLane(hn::SumOfLanes(Floats(), only))};
}

// Calls body(number of the first lane's line, errors) for all lines in turn.
template <class Body>
HWY_INLINE void compare_lines(const PackedLines& lines, const float* const* rows, const Body& body)
{
    LineErrors found;
    for (std::size_t at = 0; at < lines.blocks(); ++at) {
        for (std::size_t lane = 0; lane < PackedLines::block; lane += kLanes) {
            compare_lanes(lines, at, lane, rows, found);
            body(at * PackedLines::block + lane, found);
        }
    }
}

// The rows i ... i + kRows - 1, or the last one again.
struct RowGroup {
    const float* rows[kRows];

    RowGroup(const PackedLines& lines, const float* all, std::size_t i, std::size_t count)
    {
        for (std::size_t r = 0; r < kRows; ++r) rows[r] = all + std::min(i + r, count - 1) * lines.dimensions();
    }
};

void find_lines(const PackedLines& lines, const float* rows, std::size_t count, LinePlace* out)
{
    const Floats floats;
    for (std::size_t i = 0; i < count; i += kRows) {
        hn::Vec<Floats> best[kRows];
        hn::Vec<Floats> place[kRows];
        hn::Vec<Words> line[kRows];
        for (std::size_t r = 0; r < kRows; ++r) {
            best[r] = hn::Set(floats, std::numeric_limits<float>::infinity());
            place[r] = hn::Zero(floats);
            line[r] = hn::Zero(Words());
        }
        compare_lines(lines, RowGroup(lines, rows, i, count).rows, [&](std::size_t first, const LineErrors& found) {
            const auto number = hn::Iota(Words(), static_cast<std::uint32_t>(first));
            for (std::size_t r = 0; r < kRows; ++r) {
                const auto better = hn::Lt(found.error[r], best[r]);
                best[r] = hn::IfThenElse(better, found.error[r], best[r]);
                place[r] = hn::IfThenElse(better, found.place[r], place[r]);
                line[r] = hn::IfThenElse(hn::RebindMask(Words(), better), number, line[r]);
            }
        });
        for (std::size_t r = 0; r < kRows && i + r < count; ++r) out[i + r] = best_lane(best[r], line[r], place[r]);
    }
}

void all_errors(const PackedLines& lines, const float* rows, std::size_t count, std::size_t stride, float* errors)
{
    for (std::size_t i = 0; i < count; i += kRows) {
        const RowGroup group(lines, rows, i, count);
        compare_lines(lines, group.rows, [&](std::size_t first, const LineErrors& found) {
            for (std::size_t r = 0; r < kRows && i + r < count; ++r) {
                float norm = 0;
                for (std::size_t d = 0; d < lines.dimensions(); ++d) norm += group.rows[r][d] * group.rows[r][d];
                HWY_ALIGN float values[kLanes];
                hn::Store(hn::Add(found.error[r], hn::Set(Floats(), norm)), Floats(), values);
                for (std::size_t number = first; number < std::min(first + kLanes, lines.count()); ++number)
                    errors[number * stride + i + r] = std::max(values[number - first], 0.0F);
            }
        });
    }
}

float sum_of_gains(const float* current, const float* errors, std::size_t count)
{
    const Floats floats;
    // Sixteen sums on every instruction set.
    HWY_ALIGN float sums[PackedLines::block] = {};
    std::size_t i = 0;
    for (std::size_t lane = 0; lane < PackedLines::block; lane += kLanes) {
        auto sum = hn::Zero(floats);
        for (i = 0; i + PackedLines::block <= count; i += PackedLines::block) {
            const auto gain = hn::Sub(hn::LoadU(floats, current + i + lane), hn::LoadU(floats, errors + i + lane));
            sum = hn::Add(sum, hn::Max(gain, hn::Zero(floats)));
        }
        hn::Store(sum, floats, sums + lane);
    }
    float total = 0;
    for (const float sum : sums) total += sum;
    for (; i < count; ++i) total += std::max(current[i] - errors[i], 0.0F);
    return total;
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(find_lines);
HWY_EXPORT(all_errors);
HWY_EXPORT(sum_of_gains);

PackedLines::PackedLines(std::size_t count, std::size_t dimensions) : count_(count), dimensions_(dimensions)
{
    const std::size_t blocks = (count + block - 1) / block;
    points_.assign(blocks * block * dimensions, 0.0F);
    directions_.assign(blocks * block * dimensions, 0.0F);
    norms_.assign(blocks * block, std::numeric_limits<float>::infinity());
    along_.assign(blocks * block, 0.0F);
}

void PackedLines::set(std::size_t line, const float* point, const float* direction)
{
    const std::size_t first = (line / block) * block * dimensions_ + line % block;
    double norm = 0;
    double along = 0;
    for (std::size_t d = 0; d < dimensions_; ++d) {
        points_[first + d * block] = point[d];
        directions_[first + d * block] = direction[d];
        norm += static_cast<double>(point[d]) * point[d];
        along += static_cast<double>(point[d]) * direction[d];
    }
    norms_[line] = static_cast<float>(norm);
    along_[line] = static_cast<float>(along);
}

void nearest_lines(const PackedLines& lines, const float* rows, std::size_t count, LinePlace* out)
{
    if (count > 0) HWY_DYNAMIC_DISPATCH(find_lines)(lines, rows, count, out);
}

void line_errors(const PackedLines& lines, const float* rows, std::size_t count, std::size_t stride, float* errors)
{
    if (count > 0) HWY_DYNAMIC_DISPATCH(all_errors)(lines, rows, count, stride, errors);
}

float line_gain(const float* current, const float* errors, std::size_t count)
{
    return HWY_DYNAMIC_DISPATCH(sum_of_gains)(current, errors, count);
}

}  // namespace pgwarp
#endif
