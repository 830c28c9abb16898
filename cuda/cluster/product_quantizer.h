// Training and encoding of the product quantizer of src/numeric/product_quantizer.h on the device (Faiss paper, section
// 2.1). Codebooks have that class's layout: for part p [256][width(p)] floats, parts after each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "numeric/parallel.h"
#include "numeric/product_quantizer.h"

namespace pgwarp::cuda
{

// Trains on rows, device [count][shape.dimensions()] (residuals); codebooks: device [256 * dimensions]. All parts
// together, one launch a step, where parts have at most 32 dimensions; wider ones one after the other. Without rows the
// codebooks are zero. Same input, same device: same bytes.
void train_product_quantizer(Context& context, const float* rows, std::size_t count, const ProductQuantizer& shape,
                             std::uint64_t seed, float* codebooks, const CancelToken* cancel, cudaStream_t stream);

// The centroids that are subtracted from rows before they are encoded; null labels: none are.
struct ResidualBase {
    const std::uint32_t* labels = nullptr;  // device [count]
    const float* centroids = nullptr;       // device [lists][dimensions]
};

// out[i] = rows[numbers[i]] less its centroid; all on the device.
void gather_residuals(const float* rows, std::size_t dimensions, const std::uint32_t* numbers, std::size_t count,
                      const ResidualBase& base, float* out, cudaStream_t stream);

// codes[i][p] = nearest codeword of part p to row i (less its centroid), by fp32 arithmetic; ties to the lower code.
void encode_product(Context& context, const float* rows, std::size_t count, const ResidualBase& base,
                    const ProductQuantizer& shape, const float* codebooks, std::uint8_t* codes,
                    const CancelToken* cancel, cudaStream_t stream);

}  // namespace pgwarp::cuda
