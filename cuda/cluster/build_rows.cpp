#include "cluster/build_rows.h"

#include <algorithm>
#include <bit>

#include "cluster/half_rows.h"
#include "cluster/truth.h"
#include "device/error.h"

namespace pgwarp::cuda
{

BuildRows::BuildRows(Context& context, const char* name)
    : context_(context),
      name_(name),
      build_(context),
      lease_(context.lease(Priority::build)),
      staging_(static_cast<cudaStream_t>(lease_))
{
}

void BuildRows::upload(RowBuffer& rows, std::size_t dimensions, const BuildProgress& progress, ThreadPool& pool)
{
    constexpr std::size_t report_rows = std::size_t{1} << 19;  // between reports of progress
    dimensions_ = dimensions;
    count_ = rows.size();
    rows_ = array<float>(count_ * dimensions);
    for (std::size_t first = 0; first < count_; first += report_rows) {
        progress.advance("copying rows", first, count_);
        const std::size_t floats = std::min(report_rows, count_ - first) * dimensions;
        staging_.upload(rows.vectors().data() + first * dimensions, floats * sizeof(float),
                        rows_.data() + first * dimensions, pool, progress.cancel);
    }
}

void BuildRows::train_half(const IndexShape& shape, HalfRows& half)
{
    half.codec = are_halves(shape) ? HalfCodec::identity(dimensions_)
                                   : cuda::train_half(context_, data(), count_, dimensions_, stream());
    half.scale[0] = half.codec.scale;
    if (count_ == 0) return;
    const auto mean = copy_of(std::span<const float>(half.codec.mean));
    DeviceArray<std::uint32_t> worst = array<std::uint32_t>(1);
    check(cudaMemsetAsync(worst.data(), 0, worst.bytes(), stream()), "clearing a maximum");
    halves_ = array<std::uint16_t>(count_ * dimensions_);
    encode_half(data(), count_, half.codec, mean.data(), halves_.data(), worst.data(), stream());
    std::uint32_t bits = 0;
    read(worst.data(), std::span(&bits, 1));
    half.scale[1] = std::bit_cast<float>(bits);
}

std::vector<std::vector<std::uint32_t>> BuildRows::truth(Metric metric, const std::vector<std::uint32_t>& sample,
                                                         ThreadPool& pool, const CancelToken* cancel) const
{
    return cuda::calibration_truth(context_, metric, data(), count_, dimensions_, sample, pool, cancel, stream());
}

std::span<const std::uint16_t> BuildRows::keep_halves(RowBuffer& rows, ThreadPool& pool)
{
    const std::span<std::uint16_t> halves = rows.replace_by_half();
    staging_.download(halves_.data(), halves_.bytes(), halves.data(), pool, nullptr);
    return halves;
}

}  // namespace pgwarp::cuda
