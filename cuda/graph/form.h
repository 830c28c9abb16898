// How much of a graph's mirror lies on the device: the best form that it has room for is taken. Free of CUDA.
//
//   whole   everything on the device;
//   ranked  (vectors = full) the vectors that rank lie in page-locked host memory.
// What is found is the same in both, but where bytes don't tell near rows apart: then floats are compared in the first
// and halves in the second. Rows as bytes, which searches go by where they can (methods/graph/byte_choice.h), take the
// place of the halves where the index has full vectors. Where it has halves, bytes come in addition, if there is room.
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

// The best first; never empty.
inline std::vector<Form> forms_of(const GraphOptions& options)
{
    if (options.vectors == GraphVectors::full) return {Form::whole, Form::ranked};
    return {Form::whole};
}

// Device memory of the rows as bytes, with their terms, and once more of the seeds.
inline std::uint64_t byte_rows_bytes(const MirrorSize& size)
{
    return (size.rows + size.seeds) * (rows::byte_stride(static_cast<std::uint32_t>(size.dimensions)) + 8);
}

// Device memory that the mirror will take, at most, whatever rows are compared as; without bytes beside halves.
inline std::uint64_t device_bytes_of(const GraphOptions& options, const MirrorSize& size, Form form)
{
    const std::uint64_t row_words = options.bits / 32;
    const std::uint64_t stride = rows::half_stride(static_cast<std::uint32_t>(size.dimensions));
    const std::uint64_t positions = rows::whole_groups(static_cast<std::uint32_t>(size.rows));
    // Neighbours and row numbers.
    std::uint64_t bytes = size.rows * options.degree * 4 + positions * 4 + size.seeds * 4;
    if (options.vectors == GraphVectors::bits) {
        return bytes + size.rows * row_words * 4 + options.bits * (size.dimensions + 1) * 4;
    }
    bytes += (positions + size.seeds + rows::group_rows) * (stride * 2 + 4) + size.dimensions * 4;
    if (options.vectors == GraphVectors::full && form == Form::whole) bytes += size.rows * size.dimensions * 4;
    return bytes;
}

}  // namespace pgwarp::cuda::graph
