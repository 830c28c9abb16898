#include "cluster/build_rows.h"

#include <algorithm>
#include <bit>

#include "cluster/half_rows.h"
#include "cluster/truth.h"
#include "device/error.h"
#include "methods/bulk_memory.h"
#include "rows/gather.h"

namespace pgwarp::cuda
{

BuildRows::BuildRows(Context& context, const char* name)
    : context_(context),
      name_(name),
      build_(context),
      lease_(context.lease(Priority::build)),
      copies_(context.lease(Priority::build)),
      staging_(static_cast<cudaStream_t>(copies_))
{
}

void BuildRows::follow(cudaStream_t later, cudaStream_t sooner)
{
    ordered_.record(sooner);
    ordered_.hold(later);
}

void BuildRows::begin(RowBuffer& rows, std::size_t dimensions)
{
    host_ = &rows;
    dimensions_ = dimensions;
    count_ = rows.size();
    rows_ = array<float>(count_ * dimensions);
}

DeviceArray<float> BuildRows::sample(const std::vector<std::uint32_t>& numbers) const
{
    const auto chosen = copy_of(std::span(numbers));
    DeviceArray<float> sampled = array<float>(numbers.size() * dimensions_);
    rows::gather_rows(data(), dimensions_, chosen.data(), numbers.size(), sampled.data(), stream());
    return sampled;
}

DeviceArray<float> BuildRows::sample_of_host(const std::vector<std::uint32_t>& numbers, ThreadPool& pool,
                                             const CancelToken* cancel)
{
    BulkVector<float> gathered(numbers.size() * dimensions_);
    pool.parallel_for(numbers.size(), items_at_a_time(dimensions_ * sizeof(float)),
                      [&](std::size_t begin, std::size_t end) {
                          for (std::size_t i = begin; i < end; ++i)
                              std::copy_n(host_->vectors().data() + std::size_t{numbers[i]} * dimensions_, dimensions_,
                                          gathered.data() + i * dimensions_);
                      });
    DeviceArray<float> sampled = array<float>(gathered.size());
    follow(copies_, stream());
    staging_.upload(gathered.data(), sampled.bytes(), sampled.data(), pool, cancel);
    follow(stream(), copies_);
    return sampled;
}

void BuildRows::upload(const char* phase, const BuildProgress& progress, ThreadPool& pool,
                       const std::function<void(std::size_t, std::size_t)>& use)
{
    follow(copies_, stream());
    for (std::size_t first = 0; first < count_; first += piece_rows) {
        progress.advance(phase, first, count_);
        const std::size_t here = std::min(piece_rows, count_ - first);
        staging_.upload(host_->vectors().data() + first * dimensions_, here * dimensions_ * sizeof(float),
                        rows_.data() + first * dimensions_, pool, progress.cancel);
        follow(stream(), copies_);
        use(first, here);
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

std::span<const std::uint16_t> BuildRows::keep_halves(ThreadPool& pool)
{
    const std::span<std::uint16_t> halves = host_->replace_by_half();
    follow(copies_, stream());
    staging_.download(halves_.data(), halves_.bytes(), halves.data(), pool, nullptr);
    return halves;
}

}  // namespace pgwarp::cuda
