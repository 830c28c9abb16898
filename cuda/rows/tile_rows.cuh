// Loading of rows into tiles in shared memory, and from there into the registers of matrix instructions. Halves are
// copied, codes are decoded while the tile is loaded, and bytes are copied and decoded by fragments(). fragments()
// gives a warp the operands of 32 rows and 16 dimensions: rows 8 j to 8 j + 7 in b[j / 2][j % 2 * 2] and the register
// after it.
#pragma once

#include "rows/matrix_tile.cuh"
#include "rows/view.h"

namespace pgwarp::cuda::rows
{

inline constexpr int tile_pieces = tile_depth / 8;  // 16-byte pieces of a row in a tile

__device__ inline void half_fragments(std::uint32_t tile, int warp_row, int step, std::uint32_t (&b)[2][4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = warp_row + i * 16 + (lane & 7) + ((lane >> 4) << 3);
        load_matrices(b[i], tile + tile_offset(row, step * 2 + ((lane >> 3) & 1)));
    }
}

struct HalfTileRows {
    static constexpr int stages = 3;  // tiles in the ring
    static constexpr bool scaled = false;
    const __half* rows;
    std::uint32_t stride;

    __device__ void prepare(unsigned char*) {}
    __device__ static void fragments(std::uint32_t tile, int warp_row, int step, std::uint32_t (&b)[2][4])
    {
        half_fragments(tile, warp_row, step, b);
    }

    // Loads rows [first, first + Rows) at depth `depth`. Rows from `count` on are zeros.
    template <int Rows, int Threads>
    __device__ void load(unsigned char* tile, std::uint32_t first, std::uint32_t count, std::uint32_t depth) const
    {
        for (int i = threadIdx.x; i < Rows * tile_pieces; i += Threads) {
            const std::uint32_t row = i / tile_pieces;
            const std::uint32_t piece = i % tile_pieces;
            const std::uint32_t at = depth + piece * 8;
            const bool present = row < count && at < stride;
            const __half* from = rows + (present ? static_cast<std::size_t>(first + row) * stride + at : 0);
            copy_piece(tile + tile_offset(row, piece), from, present);
        }
    }
};

struct CodeTileRows {
    static constexpr int stages = 2;
    static constexpr bool scaled = false;
    CodeView code;
    std::uint32_t dimensions;
    std::uint32_t width;      // dimensions of the narrower parts
    std::uint32_t wider;      // number of the first parts that have one dimension more
    std::uint32_t kept;       // halves of the codebooks in shared memory: all or none
    const __half* codebooks;  // in shared memory, or in global memory where kept == 0

    static CodeTileRows of(const ResidentRows& resident)
    {
        CodeTileRows rows{};
        rows.code = resident.code;
        rows.dimensions = resident.dimensions;
        rows.width = resident.dimensions / resident.code.subquantizers;
        rows.wider = resident.dimensions % resident.code.subquantizers;
        return rows;
    }

    __device__ void prepare(unsigned char* shared)
    {
        codebooks = code.half_codebooks;
        if (kept == 0) return;
        const auto* from = reinterpret_cast<const uint4*>(code.half_codebooks);
        auto* to = reinterpret_cast<uint4*>(shared);
        for (std::uint32_t i = threadIdx.x; i < kept / 8; i += blockDim.x) to[i] = from[i];
        codebooks = reinterpret_cast<const __half*>(shared);
    }

    __device__ static void fragments(std::uint32_t tile, int warp_row, int step, std::uint32_t (&b)[2][4])
    {
        half_fragments(tile, warp_row, step, b);
    }

    __device__ const std::uint8_t* codes_at(std::uint32_t position, std::uint32_t part) const
    {
        return code.codes + code_offset(position, part, code.code_groups);
    }

    // Decodes the 8 dimensions of a row from `at` on, for parts of 2 or 4 dimensions.
    template <int Width>
    __device__ uint4 decode_narrow(std::uint32_t position, std::uint32_t at) const
    {
        constexpr int parts = 8 / Width;
        const std::uint32_t part = at / Width;
        std::uint32_t packed;
        if constexpr (parts == 4) {
            packed = *reinterpret_cast<const std::uint32_t*>(codes_at(position, part));
        } else {
            packed = *reinterpret_cast<const std::uint16_t*>(codes_at(position, part));
        }
        std::uint32_t words[4];
        for (int i = 0; i < parts; ++i) {
            const std::uint32_t line = (part + i) * 256 + ((packed >> (8 * i)) & 255U);
            if constexpr (Width == 2) {
                words[i] = *reinterpret_cast<const std::uint32_t*>(codebooks + line * 2);
            } else {
                const uint2 pair = *reinterpret_cast<const uint2*>(codebooks + line * 4);
                words[2 * i] = pair.x;
                words[2 * i + 1] = pair.y;
            }
        }
        return {words[0], words[1], words[2], words[3]};
    }
    __device__ uint4 decode_wide(std::uint32_t position, std::uint32_t at) const
    {
        const std::uint32_t part = at / width;
        const std::uint32_t word = *codes_at(position, part);
        return *reinterpret_cast<const uint4*>(codebooks + (static_cast<std::size_t>(part) * 256 + word) * width +
                                               at % width);
    }
    __device__ uint4 decode_any(std::uint32_t position, std::uint32_t at) const
    {
        __half values[8];
        for (std::uint32_t i = 0; i < 8; ++i) {
            const std::uint32_t d = at + i;
            values[i] = __float2half(0);
            if (d >= dimensions) continue;
            const std::uint32_t part = code.part_of[d];
            const std::uint32_t begin = part * width + min(part, wider);
            const std::uint32_t span = width + (part < wider ? 1 : 0);
            const std::size_t line = static_cast<std::size_t>(begin) * 256 + *codes_at(position, part) * span;
            values[i] = codebooks[line + d - begin];
        }
        uint4 packed;
        __builtin_memcpy(&packed, values, sizeof(packed));
        return packed;
    }

    // Decodes the 8 dimensions of a row from `at` on; at: a multiple of 8.
    __device__ uint4 decode(std::uint32_t position, std::uint32_t at) const
    {
        if (wider != 0 || dimensions % 8 != 0) return decode_any(position, at);
        if (width == 2) return decode_narrow<2>(position, at);
        if (width == 4) return decode_narrow<4>(position, at);
        return width % 8 == 0 ? decode_wide(position, at) : decode_any(position, at);
    }

    template <int Rows, int Threads>
    __device__ void load(unsigned char* tile, std::uint32_t first, std::uint32_t count, std::uint32_t depth) const
    {
        for (int i = threadIdx.x; i < Rows * tile_pieces; i += Threads) {
            // Neighbouring threads take neighbouring rows, whose codes are adjacent.
            const std::uint32_t row = i % Rows;
            const std::uint32_t piece = i / Rows;
            const std::uint32_t at = depth + piece * 8;
            uint4 values{0, 0, 0, 0};
            if (row < count && at < dimensions) values = decode(first + row, at);
            *reinterpret_cast<uint4*>(tile + tile_offset(row, piece)) = values;
        }
    }
};

// Rows as bytes. A tile has rows of 64 bytes, whose 16-byte pieces are permuted against bank conflicts. The products
// with a row's bytes have to be multiplied with the row's scale.
struct ByteTileRows {
    static constexpr int stages = 3;
    static constexpr bool scaled = true;
    ByteView byte;

    __device__ void prepare(unsigned char*) {}
    // The scales of the row at `position`, which is even, and of the row after it.
    __device__ float2 scales_of(std::uint32_t position) const
    {
        return *reinterpret_cast<const float2*>(byte.scales + position);
    }
    __device__ static std::uint32_t place(std::uint32_t row, std::uint32_t piece)
    {
        return row * tile_depth + ((piece ^ ((row >> 1) & 3U)) << 4);
    }

    template <int Rows, int Threads>
    __device__ void load(unsigned char* tile, std::uint32_t first, std::uint32_t count, std::uint32_t depth) const
    {
        constexpr int pieces = tile_depth / 16;
        for (std::uint32_t i = threadIdx.x; i < Rows * pieces; i += Threads) {
            const std::uint32_t row = i / pieces;
            const std::uint32_t piece = i % pieces;
            const std::uint32_t at = depth + piece * 16;
            const bool present = row < count && at < byte.stride;
            const std::uint8_t* from =
                byte.rows + (present ? static_cast<std::size_t>(first + row) * byte.stride + at : 0);
            copy_piece(tile + place(row, piece), from, present);
        }
    }

    __device__ static void fragments(std::uint32_t tile, int warp_row, int step, std::uint32_t (&b)[2][4])
    {
        std::uint32_t bytes[4];  // of rows 8 j + lane / 4
        load_matrices(bytes, tile + place(warp_row + threadIdx.x % 32, step));
        const __half2 offset = __float2half2_rn(1024 + 128);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
                // The half with the bits 0x6400 + byte is 1024 + byte; subtracting the offset is exact.
                const std::uint32_t raised = __byte_perm(bytes[j], 0x64646464U, pair == 0 ? 0x4140U : 0x4342U);
                __half2 value;
                __builtin_memcpy(&value, &raised, sizeof(value));
                value = __hsub2(value, offset);
                __builtin_memcpy(&b[j / 2][j % 2 * 2 + pair], &value, sizeof(value));
            }
        }
    }
};

}  // namespace pgwarp::cuda::rows
