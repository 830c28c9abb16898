// Rows inserted since an index was built, as a mirror holds them: append-only chunks that are never moved, so that a
// search goes on in its view of a log while others append.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numeric/metric.h"
#include "protocol/format.h"

namespace pgwarp
{

struct DeltaChunk {
    DeltaChunk(std::size_t rows, std::size_t dimensions)
        : capacity(rows), tids(new Tid[rows]), vectors(new float[rows * dimensions])
    {
    }
    std::size_t capacity;
    std::unique_ptr<Tid[]> tids;
    std::unique_ptr<float[]> vectors;
};

// A view of one log: entries [start, end). Rows behind `end` in the last chunk belong to later views.
struct DeltaView {
    bool known = false;  // start and end were told
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    float max_norm = 0;  // of its vectors (L1 norm for l1), for error bounds
    std::vector<std::shared_ptr<DeltaChunk>> chunks;

    std::uint64_t rows() const { return end - start; }
    std::uint64_t bytes(std::size_t dimensions) const;
};

// Calls visit(first position, tids, vectors, rows) for the entries from `from` on, chunk by chunk.
template <class Visit>
void for_each_chunk(const DeltaView& log, std::size_t dimensions, std::uint64_t from, Visit&& visit)
{
    std::uint64_t position = log.start;
    for (const auto& chunk : log.chunks) {
        const std::uint64_t rows = std::min<std::uint64_t>(chunk->capacity, log.end - position);
        const std::uint64_t skipped = std::min(rows, from > position ? from - position : 0);
        if (rows > skipped) {
            visit(position + skipped, chunk->tids.get() + skipped, chunk->vectors.get() + skipped * dimensions,
                  static_cast<std::size_t>(rows - skipped));
        }
        position += rows;
    }
}

// The number of an entry among all that a search finds: rows of the index come first, then log after log.
inline constexpr std::uint64_t delta_ordinal(std::uint32_t log, std::uint64_t position)
{
    return (std::uint64_t{log + 1U} << 48) | position;
}

// Returns `view` with more entries; shares the chunks. Only one thread may extend a log at a time, and only the newest
// view. Vectors are normalised when the metric is cosine. Throws BadRequest for values that no index holds.
DeltaView extend_delta(const DeltaView& view, Metric metric, std::size_t dimensions, std::uint64_t first,
                       std::span<const Tid> tids, std::span<const float> vectors);

}  // namespace pgwarp
