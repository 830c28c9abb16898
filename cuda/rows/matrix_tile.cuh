// Warp matrix instructions on half tiles in shared memory, from sm_75 on.
//
// A tile is rows of 64 halves (128 bytes). The 16-byte pieces of a row are permuted by the row's number, so that
// ldmatrix and 16-byte stores have no bank conflicts.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace pgwarp::cuda::rows
{

inline constexpr int tile_depth = 64;  // halves of a row in a tile

__device__ inline std::uint32_t shared_address(const void* pointer)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Byte offset of a row's piece in a tile.
__device__ inline std::uint32_t tile_offset(int row, int piece)
{
    return static_cast<std::uint32_t>(row * 128 + ((piece ^ (row & 7)) << 4));
}

// Copies 16 bytes from global to shared memory, or zeros where not `present`. Complete after wait_for_copies().
__device__ inline void copy_piece(unsigned char* to, const void* from, bool present)
{
#if __CUDA_ARCH__ >= 800
    const int bytes = present ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes));
#else
    *reinterpret_cast<uint4*>(to) = present ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
#endif
}

__device__ inline void commit_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}

// Waits until at most `Pending` of the committed groups are under way.
template <int Pending>
__device__ inline void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
#endif
}

__device__ inline void load_matrices(std::uint32_t (&registers)[4], std::uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address));
}

// sums (16 x 8) += a (16 x 16) * b (16 x 8).
__device__ inline void multiply(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

// Stages of a ring of tiles: two where copies run beside the products, else one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int ring_stages = 1;
#else
inline constexpr int ring_stages = 2;
#endif

inline constexpr int strip_columns = 128;
inline constexpr int strip_sums = 64;  // of a thread

// sums += products of 16 rows of a tile, from first_row on, with the 128 rows of the tile `columns`, by one warp.
// sums[4 j + 2 q + c] belongs to row lane / 4 + 8 q and column 8 j + 2 (lane % 4) + c.
__device__ inline void multiply_strip(float (&sums)[strip_sums], const void* rows, int first_row, const void* columns)
{
    const int lane = threadIdx.x % 32;
    const std::uint32_t row_base = shared_address(rows);
    const std::uint32_t column_base = shared_address(columns);
#pragma unroll
    for (int step = 0; step < tile_depth / 16; ++step) {
        std::uint32_t a[4];
        load_matrices(a, row_base + tile_offset(first_row + (lane & 15), step * 2 + (lane >> 4)));
#pragma unroll
        for (int j = 0; j < strip_columns / 16; ++j) {
            std::uint32_t b[4];
            const int column = j * 16 + (lane & 7) + ((lane >> 4) << 3);
            load_matrices(b, column_base + tile_offset(column, step * 2 + ((lane >> 3) & 1)));
            multiply(reinterpret_cast<float(&)[4]>(sums[8 * j]), a, b[0], b[1]);
            multiply(reinterpret_cast<float(&)[4]>(sums[8 * j + 4]), a, b[2], b[3]);
        }
    }
}

}  // namespace pgwarp::cuda::rows
