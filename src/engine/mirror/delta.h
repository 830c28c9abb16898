// Rows inserted since an index was built, as a mirror holds them: append-only chunks that are never moved, so that a
// search goes on in its view of a log while others append.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "protocol/rows.h"

namespace pgwarp
{

// Room for `rows` rows of one layout, and for `words` words where these are lists.
struct DeltaChunk {
    DeltaChunk(const IndexShape& shape, std::size_t rows, std::size_t words);

    RowView rows(std::size_t first, std::size_t count) const { return all.slice(first, count); }
    std::uint64_t bytes() const;

    const std::size_t row_capacity;
    const std::size_t word_capacity;
    std::unique_ptr<Tid[]> tids;
    std::unique_ptr<float[]> values;           // dense rows
    std::unique_ptr<std::uint64_t[]> offsets;  // lists, as the next two
    std::unique_ptr<std::uint32_t[]> words;
    std::unique_ptr<float[]> weights;
    std::unique_ptr<std::uint64_t[]> attributes;

private:
    RowView all;
};

// A chunk, and the number of its rows that a view sees: later rows belong to later views.
struct DeltaPiece {
    std::shared_ptr<DeltaChunk> chunk;
    std::size_t rows;
};

// A view of one log: entries [start, end).
struct DeltaView {
    bool known = false;  // start and end are set
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    float max_norm = 0;  // largest norm of dense rows (L1 for l1), for error bounds
    std::vector<DeltaPiece> pieces;

    std::uint64_t rows() const { return end - start; }
    std::uint64_t bytes() const;
};

// Calls visit(first position, tids, RowView) for the entries from `from` on, chunk by chunk.
template <class Visit>
void for_each_chunk(const DeltaView& log, std::uint64_t from, Visit&& visit)
{
    std::uint64_t position = log.start;
    for (const DeltaPiece& piece : log.pieces) {
        const std::size_t skipped = std::min<std::uint64_t>(piece.rows, from > position ? from - position : 0);
        if (piece.rows > skipped) {
            visit(position + skipped, piece.chunk->tids.get() + skipped,
                  piece.chunk->rows(skipped, piece.rows - skipped));
        }
        position += piece.rows;
    }
}

// The ordinal of an entry in a search: rows of the index come first, then log after log.
inline constexpr std::uint64_t delta_ordinal(std::uint32_t log, std::uint64_t position)
{
    return (std::uint64_t{log + 1U} << 48) | position;
}

// An entry of a log, as a part holds it.
struct DeltaEntry {
    const float* vector;  // in a chunk of its log; null of a list
    std::uint64_t ordinal;
    Tid tid;
};

// Returns `view` with the rows from position `first` on that it lacks; the chunks are shared. check_rows() has passed
// the rows. Only one thread may extend a log at a time, and only the newest view. Dense rows are normalised when the
// metric is cosine. Throws BadRequest for a gap before `first`, and for values that no index holds.
DeltaView extend_delta(const DeltaView& view, const IndexShape& shape, std::uint64_t first, std::span<const Tid> tids,
                       const RowView& rows);

}  // namespace pgwarp
