#include "engine/mirror/delta.h"

#include <algorithm>
#include <cstring>

#include "engine/mirror/vectors.h"
#include "methods/errors.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t first_chunk_rows = 64;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// Average words of the coming lists; 0 for dense rows.
std::size_t words_per_row(const RowView& rows)
{
    return rows.count == 0 ? 0 : (rows.word_count() + rows.count - 1) / rows.count;
}

// Chunks double up to a size, so that a small delta takes little memory and a large one few allocations.
std::size_t next_chunk_rows(const DeltaView& view, std::size_t row_words)
{
    const std::size_t row_bytes = std::max<std::size_t>(row_words, 1) * sizeof(float);
    const std::size_t largest = std::max(first_chunk_rows, chunk_bytes / row_bytes);
    if (view.pieces.empty()) return first_chunk_rows;
    return std::min(largest, view.pieces.back().chunk->row_capacity * 2);
}

std::shared_ptr<DeltaChunk> make_chunk(const DeltaView& view, const IndexShape& shape, const RowView& coming)
{
    if (!is_list(shape.element)) {
        return std::make_shared<DeltaChunk>(shape, next_chunk_rows(view, shape.dimensions), 0);
    }
    const std::size_t each = words_per_row(coming);
    const std::size_t rows = next_chunk_rows(view, each);
    const std::size_t words = std::min(rows * each, chunk_bytes / sizeof(std::uint32_t));
    return std::make_shared<DeltaChunk>(shape, rows, std::max<std::size_t>(words, coming.row(0).word_count()));
}

// Whether the chunk has room for row `i` behind its own.
bool has_room(const DeltaPiece& piece, const RowView& rows, std::size_t i)
{
    if (piece.rows == piece.chunk->row_capacity) return false;
    if (rows.offsets == nullptr) return true;
    return piece.chunk->offsets[piece.rows] + rows.list(i).size() <= piece.chunk->word_capacity;
}

void put_list(DeltaChunk& chunk, std::size_t slot, const RowView& rows, std::size_t i)
{
    const std::uint64_t at = chunk.offsets[slot];
    const std::span<const std::uint32_t> words = rows.list(i);
    std::copy(words.begin(), words.end(), chunk.words.get() + at);
    if (rows.weights != nullptr) std::copy_n(rows.list_weights(i).data(), words.size(), chunk.weights.get() + at);
    chunk.offsets[slot + 1] = at + words.size();
}

// Copies a dense row into a slot, normalises it, and raises max_norm to its norm.
void put_vector(DeltaChunk& chunk, std::size_t slot, const float* vector, const IndexShape& shape, float& max_norm)
{
    const std::size_t dimensions = shape.dimensions;
    const auto metric = static_cast<Metric>(shape.metric);
    float* target = chunk.values.get() + slot * dimensions;
    std::memcpy(target, vector, dimensions * sizeof(float));
    prepare_vectors(metric, {target, dimensions}, dimensions);
    max_norm = std::max(max_norm, bound_norm(metric, {target, dimensions}));
}

}  // namespace

DeltaChunk::DeltaChunk(const IndexShape& shape, std::size_t rows, std::size_t list_words)
    : row_capacity(rows), word_capacity(list_words), tids(new Tid[rows])
{
    all.count = rows;
    all.attribute_count = shape.attribute_count;
    if (shape.attribute_count > 0) attributes.reset(new std::uint64_t[rows * shape.attribute_count]);
    all.attributes = attributes.get();
    if (!is_list(shape.element)) {
        values.reset(new float[rows * shape.dimensions]);
        all.width = shape.dimensions;
        all.values = values.get();
        return;
    }
    offsets.reset(new std::uint64_t[rows + 1]);
    offsets[0] = 0;
    words.reset(new std::uint32_t[list_words]);
    if (has_weights(shape.element)) weights.reset(new float[list_words]);
    all.offsets = offsets.get();
    all.words = words.get();
    all.weights = weights.get();
}

std::uint64_t DeltaChunk::bytes() const
{
    std::uint64_t each = sizeof(Tid) + sizeof(std::uint64_t) * all.attribute_count + sizeof(float) * all.width;
    if (offsets != nullptr) each += sizeof(std::uint64_t);
    const std::uint64_t word_bytes = sizeof(std::uint32_t) + (weights != nullptr ? sizeof(float) : 0);
    return row_capacity * each + word_capacity * word_bytes;
}

std::uint64_t DeltaView::bytes() const
{
    std::uint64_t bytes = 0;
    for (const DeltaPiece& piece : pieces) bytes += piece.chunk->bytes();
    return bytes;
}

DeltaView extend_delta(const DeltaView& view, const IndexShape& shape, std::uint64_t first, std::span<const Tid> tids,
                       const RowView& rows)
{
    DeltaView extended = view;
    if (!view.known) extended.start = extended.end = first;
    extended.known = true;
    if (first > extended.end) throw BadRequest("gap in a delta log");
    const std::uint64_t skip = std::min<std::uint64_t>(extended.end - first, tids.size());
    for (std::size_t i = skip; i < tids.size(); ++i) {
        if (extended.pieces.empty() || !has_room(extended.pieces.back(), rows, i))
            extended.pieces.push_back({make_chunk(extended, shape, rows.slice(i, tids.size() - i)), 0});
        DeltaPiece& last = extended.pieces.back();
        DeltaChunk& chunk = *last.chunk;
        if (rows.offsets == nullptr) {
            put_vector(chunk, last.rows, rows.values + i * rows.width, shape, extended.max_norm);
        } else {
            put_list(chunk, last.rows, rows, i);
        }
        const std::size_t columns = shape.attribute_count;
        if (columns > 0)
            std::copy_n(rows.attributes + i * columns, columns, chunk.attributes.get() + last.rows * columns);
        chunk.tids[last.rows++] = tids[i];
        ++extended.end;
    }
    return extended;
}

}  // namespace pgwarp
