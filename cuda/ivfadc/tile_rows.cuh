// How the rows of a list come into a tile in shared memory: copied where they are halves, decoded where they are codes.
#pragma once

#include "ivfadc/matrix_tile.cuh"
#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

inline constexpr int tile_pieces = tile_depth / 8;  // 16-byte pieces of a row in a tile

struct HalfTileRows {
    static constexpr int stages = 3;  // tiles under way
    const __half* rows;
    std::uint32_t stride;

    __device__ void prepare(unsigned char*) {}

    // Rows [first, first + Rows) at depth `depth`; those from `count` on are zeros.
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
    CodeView code;
    std::uint32_t dimensions;
    std::uint32_t width;      // of the narrower parts
    std::uint32_t wider;      // parts that are one wider, the first ones
    std::uint32_t kept;       // halves of the codebooks that fit in shared memory: all or none
    const __half* codebooks;  // where they are read from

    static CodeTileRows of(const MirrorView& mirror)
    {
        CodeTileRows rows{};
        rows.code = mirror.code;
        rows.dimensions = mirror.dimensions;
        rows.width = mirror.dimensions / mirror.code.subquantizers;
        rows.wider = mirror.dimensions % mirror.code.subquantizers;
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

    __device__ const std::uint8_t* codes_at(std::uint32_t position, std::uint32_t part) const
    {
        return code.codes + code_offset(position, part, code.code_groups);
    }

    // The 8 dimensions from `at` on of a row, for parts of 2 or 4 dimensions.
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

    // The 8 dimensions from `at` on, a multiple of 8.
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
            // Neighbouring threads take neighbouring rows, whose codes lie side by side.
            const std::uint32_t row = i % Rows;
            const std::uint32_t piece = i / Rows;
            const std::uint32_t at = depth + piece * 8;
            uint4 values{0, 0, 0, 0};
            if (row < count && at < dimensions) values = decode(first + row, at);
            *reinterpret_cast<uint4*>(tile + tile_offset(row, piece)) = values;
        }
    }
};

}  // namespace pgwarp::cuda::ivfadc
