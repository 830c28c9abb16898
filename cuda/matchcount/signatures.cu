#include "matchcount/signatures.h"

#include <algorithm>

#include "device/error.h"
#include "passes/entry_values.h"
#include "rows/values.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

using pgwarp::matchcount::HashFamily;

constexpr unsigned threads = 256;
constexpr unsigned dots_of_block = threads / 8;

struct SignArguments {
    const float* parameters;
    const float* vectors;
    std::uint8_t* values;
    std::uint32_t count;
    std::uint32_t functions;
    std::uint32_t buckets;
    std::uint32_t dimensions;
};

__device__ std::uint8_t bucket_of(double value, std::uint32_t buckets)
{
    const double most = buckets;
    const double rest = __dsub_rn(value, __dmul_rn(most, floor(__ddiv_rn(value, most))));
    return static_cast<std::uint8_t>(fmin(fmax(rest, 0.0), most - 1));
}

// Eight lanes take a function of a vector; blocks of one vector are neighbours.
template <bool signs>
__global__ __launch_bounds__(threads) void sign_kernel(SignArguments arguments)
{
    const std::uint32_t width = arguments.dimensions + (signs ? 0 : 1);
    const std::uint64_t pairs = std::uint64_t{arguments.count} * arguments.functions;
    const std::uint64_t own = std::uint64_t{blockIdx.x} * dots_of_block + threadIdx.x / 8;
    const std::uint64_t pair = min(own, pairs - 1);
    const float* const function = arguments.parameters + pair % arguments.functions * width;
    const float* const vector = arguments.vectors + pair / arguments.functions * arguments.dimensions;
    const double dot = rows::canonical_dot(function, vector, arguments.dimensions);
    if (own >= pairs || threadIdx.x % 8 != 0) return;
    if constexpr (signs)
        arguments.values[pair] = dot >= 0 ? 1 : 0;
    else
        arguments.values[pair] = bucket_of(floor(__dadd_rn(dot, function[arguments.dimensions])), arguments.buckets);
}

// The steps of MurmurHash3_x86_32 for a block of four bytes, and for the end.
__device__ std::uint32_t rotate(std::uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}
__device__ std::uint32_t mix_block(std::uint32_t hash, std::uint32_t block)
{
    block = rotate(block * 0xcc9e2d51U, 15) * 0x1b873593U;
    return rotate(hash ^ block, 13) * 5 + 0xe6546b64U;
}
__device__ std::uint32_t finish_hash(std::uint32_t hash, std::uint32_t length)
{
    hash ^= length;
    hash = (hash ^ hash >> 16) * 0x85ebca6bU;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
    return hash ^ hash >> 16;
}

// A thread takes a function of a vector.
__global__ __launch_bounds__(threads) void bin_kernel(SignArguments arguments)
{
    const std::uint32_t f = blockIdx.x * threads + threadIdx.x;
    if (f >= arguments.functions) return;
    for (std::uint32_t i = blockIdx.y; i < arguments.count; i += gridDim.y) {
        const float* const vector = arguments.vectors + std::size_t{i} * arguments.dimensions;
        const float* grid = arguments.parameters + f;
        const float* shift = grid + std::size_t{arguments.dimensions} * arguments.functions;
        std::uint32_t hash = f;
        for (std::uint32_t d = 0; d < arguments.dimensions; ++d) {
            const float cell = floorf(__fadd_rn(__fmul_rn(vector[d], *grid), *shift));
            hash = mix_block(hash, __float_as_uint(cell == 0 ? 0.0F : cell));
            grid += arguments.functions;
            shift += arguments.functions;
        }
        hash = finish_hash(hash, 4 * arguments.dimensions);
        arguments.values[std::size_t{i} * arguments.functions + f] =
            static_cast<std::uint8_t>(std::uint64_t{hash} * arguments.buckets >> 32);
    }
}

void launch_signs(HashFamily family, const SignArguments& arguments, cudaStream_t stream)
{
    const std::uint64_t pairs = std::uint64_t{arguments.count} * arguments.functions;
    const auto blocks = static_cast<unsigned>((pairs + dots_of_block - 1) / dots_of_block);
    if (family == HashFamily::binning)
        bin_kernel<<<dim3((arguments.functions + threads - 1) / threads, std::min(arguments.count, 65535U)), threads, 0,
                     stream>>>(arguments);
    else if (family == HashFamily::signs)
        sign_kernel<true><<<blocks, threads, 0, stream>>>(arguments);
    else
        sign_kernel<false><<<blocks, threads, 0, stream>>>(arguments);
    check_launch("signing vectors");
}

constexpr int tile = 64;  // rows and functions of a block

template <bool signs>
__global__ __launch_bounds__(threads) void place_kernel(SignaturePiece piece, std::uint32_t functions,
                                                        std::uint8_t* values, std::size_t stride)
{
    __shared__ std::uint8_t taken[tile][tile + 4];
    const std::uint64_t first_row = piece.offset / piece.signature_bytes + std::uint64_t{blockIdx.x} * tile;
    const std::uint32_t first_function = blockIdx.y * tile;
    // The place of a value in the piece, which is past its end where it lies elsewhere.
    const auto place_of = [&](std::uint32_t row, std::uint32_t f) {
        if (f >= functions) return piece.bytes;
        const std::uint64_t at = (first_row + row) * piece.signature_bytes + (signs ? f / 8 : f);
        return at < piece.offset ? piece.bytes : min(at - piece.offset, piece.bytes);
    };
    for (std::uint32_t i = threadIdx.x; i < tile * tile; i += threads) {
        const std::uint32_t f = first_function + i % tile;
        const std::uint64_t at = place_of(i / tile, f);
        if (at == piece.bytes) continue;
        const std::uint8_t byte = piece.memory[at];
        taken[i / tile][i % tile] = signs ? byte >> f % 8 & 1 : byte;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < tile * tile; i += threads) {
        const std::uint32_t f = first_function + i / tile;
        if (place_of(i % tile, f) != piece.bytes) values[f * stride + first_row + i % tile] = taken[i % tile][i / tile];
    }
}

}  // namespace

// Launches stay short also on devices that are slow in double precision.
void sign_vectors(const DeviceHashes& hashes, const float* vectors, std::uint32_t count, std::uint8_t* values,
                  cudaStream_t stream)
{
    const auto functions = static_cast<std::uint32_t>(hashes.form.functions);
    const auto most =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, value_launch_elements / functions / hashes.dimensions));
    for (std::uint32_t first = 0; first < count; first += std::min(most, count - first)) {
        launch_signs(hashes.form.family,
                     {hashes.parameters, vectors + std::size_t{first} * hashes.dimensions,
                      values + std::size_t{first} * functions, std::min(most, count - first), functions,
                      static_cast<std::uint32_t>(hashes.form.buckets), hashes.dimensions},
                     stream);
    }
}

void place_signatures(const SignaturePiece& piece, const DeviceHashes& hashes, std::uint8_t* values, std::size_t stride,
                      cudaStream_t stream)
{
    if (piece.bytes == 0) return;
    const auto functions = static_cast<std::uint32_t>(hashes.form.functions);
    const std::uint64_t first_row = piece.offset / piece.signature_bytes;
    const std::uint64_t last_row = (piece.offset + piece.bytes - 1) / piece.signature_bytes;
    const dim3 blocks(static_cast<unsigned>((last_row - first_row) / tile + 1), (functions + tile - 1) / tile);
    const auto kernel = hashes.form.family == HashFamily::signs ? place_kernel<true> : place_kernel<false>;
    kernel<<<blocks, threads, 0, stream>>>(piece, functions, values, stride);
    check_launch("placing signatures");
}

}  // namespace pgwarp::cuda::matchcount
