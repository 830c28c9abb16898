// The parts of a graph's mirror that lie on the device. A mirror takes the best form that the device has room for. Free
// of CUDA.
//
//   whole   everything lies on the device;
//   ranked  (vectors = full) the vectors that rank lie in page-locked host memory.
//
// Both forms find the same rows, except where bytes do not tell near rows apart: then `whole` compares floats and
// `ranked` halves. Where the index has full vectors, rows as bytes (methods/graph/byte_choice.h) replace the halves
// where they serve. Where it has halves, bytes come in addition if there is room.
#pragma once

#include <cstdint>
#include <vector>

#include "methods/graph/graph.h"
#include "rows/layout.h"

namespace pgwarp::cuda::graph
{

enum class Form : std::uint8_t { whole, ranked };

struct MirrorSize {
    std::uint64_t rows = 0;
    std::uint64_t seeds = 0;
    std::uint64_t dimensions = 0;
};

// The forms that can serve an index with these options, the best first. Never empty.
inline std::vector<Form> forms_of(const GraphOptions& options)
{
    if (options.vectors == GraphVectors::full) return {Form::whole, Form::ranked};
    return {Form::whole};
}

// Device memory of the rows as bytes with their terms, and of the seeds as bytes.
inline std::uint64_t byte_rows_bytes(const MirrorSize& size)
{
    return (size.rows + size.seeds) * (rows::byte_stride(static_cast<std::uint32_t>(size.dimensions)) + 8);
}

// The most device memory that the mirror takes with any compared form, but without bytes beside halves.
inline std::uint64_t device_bytes_of(const GraphOptions& options, const MirrorSize& size, Form form)
{
    const std::uint64_t row_words = options.bits / 32;
    const std::uint64_t stride = rows::half_stride(static_cast<std::uint32_t>(size.dimensions));
    const std::uint64_t positions = rows::whole_groups(static_cast<std::uint32_t>(size.rows));
    // Neighbours, row numbers and seeds.
    std::uint64_t bytes = size.rows * options.degree * 4 + positions * 4 + size.seeds * 4;
    if (options.vectors == GraphVectors::bits) {
        return bytes + size.rows * row_words * 4 + options.bits * (size.dimensions + 1) * 4;
    }
    bytes += (positions + size.seeds + rows::group_rows) * (stride * 2 + 4) + size.dimensions * 4;
    if (options.vectors == GraphVectors::full && form == Form::whole) bytes += size.rows * size.dimensions * 4;
    return bytes;
}

}  // namespace pgwarp::cuda::graph
