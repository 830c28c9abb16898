// The loops of signatures that run-time SIMD dispatch (Highway) is for: functions of random binning and of minhash, and
// the count of functions on which rows agree with a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pgwarp::matchcount
{

inline constexpr std::size_t kernel_padding = 64;  // elements behind the values of a kernel that it may read or write

// out[f] = MurmurHash3 (32 bits, seed f) of the cells floor(row[d] * grid[d][f] + shift[d][f]) of all dimensions d,
// each as the four bytes of a float. grid and shift [dimensions][functions] are followed by kernel_padding floats; out
// has room for kernel_padding more.
void bin_row(const float* row, const float* grid, const float* shift, std::size_t dimensions, std::size_t functions,
             std::uint32_t* out);

// out[f] = the least of mix_hash(element ^ seeds[f]) of all elements; 2^64 - 1 without elements. seeds [functions] are
// followed by kernel_padding numbers; out has room for kernel_padding more.
void least_hashes(std::span<const std::uint64_t> elements, const std::uint64_t* seeds, std::size_t functions,
                  std::uint64_t* out);

// out[i] = number of positions at which row i of rows[count][bytes] has the byte of the query. No row has the byte 255.
void count_equal_bytes(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count, std::size_t bytes,
                       std::uint16_t* out);

}  // namespace pgwarp::matchcount
