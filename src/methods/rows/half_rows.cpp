// The codec of half vectors, trained on rows or read from its arrays.
#include "methods/rows/half_rows.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "methods/arrays.h"

namespace pgwarp
{

void HalfRows::train(const IndexShape& shape, std::span<const float> rows, ThreadPool& pool, const CancelToken* cancel)
{
    codec = are_halves(shape) ? HalfCodec::identity(shape.dimensions) : HalfCodec::train(rows, shape.dimensions);
    scale[0] = codec.scale;
    scale[1] = 0;
    measure(rows, pool, cancel);
}

void HalfRows::measure(std::span<const float> rows, ThreadPool& pool, const CancelToken* cancel)
{
    const std::size_t dimensions = codec.mean.size();
    std::mutex mutex;
    pool.parallel_for(rows.size() / dimensions, 4096, [&](std::size_t begin, std::size_t end) {
        if (cancel != nullptr) cancel->check();
        float worst = 0;
        for (std::size_t i = begin; i < end; ++i) worst = std::max(worst, codec.error(rows.data() + i * dimensions));
        const std::lock_guard lock(mutex);
        scale[1] = std::max(scale[1], worst);
    });
}

bool HalfRows::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array != array_half_mean && array != array_half_scale) return false;
    const std::span<float> values = array == array_half_mean ? std::span<float>(codec.mean) : std::span<float>(scale);
    write_piece(values, offset, bytes);
    return true;
}

void HalfRows::take_scale()
{
    if (!(scale[0] > 0 && std::isfinite(scale[0]) && scale[1] >= 0))
        throw BadRequest("the scale of half vectors is impossible");
    codec.scale = scale[0];
}

std::span<const std::uint16_t> HalfRows::compact(RowBuffer& rows) const
{
    return rows.compact_to_half([this](const float* row, std::uint16_t* out) { codec.encode(row, out); });
}

}  // namespace pgwarp
