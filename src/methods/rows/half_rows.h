// Rows stored as half vectors: their codec, and the arrays "half_mean" and "half_scale" (methods/description.h) that
// hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "methods/method.h"
#include "numeric/half_codec.h"

namespace pgwarp
{

struct HalfRows {
    HalfCodec codec;
    float scale[2] = {1, 0};  // of the codec; the largest error of a row

    // Chooses the codec of rows [count][dimensions] and measures them.
    void train(const IndexShape& shape, std::span<const float> rows, ThreadPool& pool, const CancelToken* cancel);
    // Raises the largest error to that of these rows.
    void measure(std::span<const float> rows, ThreadPool& pool, const CancelToken* cancel);
    // Copies a piece of one of the two arrays; returns false for other arrays. codec.mean has its final size.
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    // Takes the codec's scale from the array. Throws BadRequest for an invalid one.
    void take_scale();
    // Encodes the rows in their own memory; the floats are gone afterwards.
    std::span<const std::uint16_t> compact(RowBuffer& rows) const;
};

}  // namespace pgwarp
