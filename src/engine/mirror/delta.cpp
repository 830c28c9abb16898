#include "engine/mirror/delta.h"

#include <algorithm>
#include <cstring>

#include "engine/mirror/vectors.h"
#include "methods/method.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t first_chunk_rows = 64;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// Chunks double up to a size, so that a small delta costs little and a large one few allocations.
std::size_t next_chunk_rows(const DeltaView& view, std::size_t dimensions)
{
    const std::size_t largest = std::max(first_chunk_rows, chunk_bytes / (dimensions * sizeof(float)));
    return view.chunks.empty() ? first_chunk_rows : std::min(largest, view.chunks.back()->capacity * 2);
}

std::uint64_t chunk_capacity(const DeltaView& view)
{
    std::uint64_t rows = 0;
    for (const auto& chunk : view.chunks) rows += chunk->capacity;
    return rows;
}

}  // namespace

std::uint64_t DeltaView::bytes(std::size_t dimensions) const
{
    return chunk_capacity(*this) * (sizeof(Tid) + dimensions * sizeof(float));
}

DeltaView extend_delta(const DeltaView& view, Metric metric, std::size_t dimensions, std::uint64_t first,
                       std::span<const Tid> tids, std::span<const float> vectors)
{
    DeltaView extended = view;
    if (!view.known) extended.start = extended.end = first;
    extended.known = true;
    if (first > extended.end) throw BadRequest("gap in a delta log");
    const std::uint64_t skip = std::min<std::uint64_t>(extended.end - first, tids.size());
    std::uint64_t capacity = chunk_capacity(extended);
    for (std::size_t i = skip; i < tids.size(); ++i) {
        if (extended.rows() == capacity) {
            const std::size_t rows = next_chunk_rows(extended, dimensions);
            extended.chunks.push_back(std::make_shared<DeltaChunk>(rows, dimensions));
            capacity += rows;
        }
        DeltaChunk& last = *extended.chunks.back();
        const std::size_t slot = extended.rows() - (capacity - last.capacity);
        float* target = last.vectors.get() + slot * dimensions;
        std::memcpy(target, vectors.data() + i * dimensions, dimensions * sizeof(float));
        prepare_vectors(metric, {target, dimensions}, dimensions);
        extended.max_norm = std::max(extended.max_norm, bound_norm(metric, {target, dimensions}));
        last.tids[slot] = tids[i];
        ++extended.end;
    }
    return extended;
}

}  // namespace pgwarp
