// Signatures of vectors on the device, with the bits of src/methods/matchcount/vector_hashes.h, in the dense form: a
// byte a function, also where the index stores a bit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "methods/matchcount/vector_hashes.h"

namespace pgwarp::cuda::matchcount
{

struct DeviceHashes {
    pgwarp::matchcount::HashForm form;
    std::uint32_t dimensions = 0;
    const float* parameters = nullptr;  // device; as VectorHashes::parameters()

    // Values of a function.
    std::uint32_t universe() const
    {
        return form.family == pgwarp::matchcount::HashFamily::signs ? 2 : static_cast<std::uint32_t>(form.buckets);
    }
};

// values[i][f] = the value of function f for vectors[i][dimensions]. All device memory. Asynchronous. Throws CudaError.
void sign_vectors(const DeviceHashes& hashes, const float* vectors, std::uint32_t count, std::uint8_t* values,
                  cudaStream_t stream);

// A part of stored signatures [rows][signature_bytes]: their bytes [offset, offset + bytes).
struct SignaturePiece {
    const std::uint8_t* memory = nullptr;  // device
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t signature_bytes = 0;
};

// Writes a piece by function: values[f * stride + row].
void place_signatures(const SignaturePiece& piece, const DeviceHashes& hashes, std::uint8_t* values, std::size_t stride,
                      cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
