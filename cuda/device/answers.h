// The answers of a batch as kernels write them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/carver.h"

namespace pgwarp::cuda
{

// Answers [count][k], nearest first, on the device or in page-locked memory.
struct Answers {
    double* values = nullptr;
    std::uint32_t* rows = nullptr;
    std::uint32_t* found = nullptr;  // [count]: rows found, which may be more than k; or one of the marks below

    // The answers of the queries from `first` on.
    Answers from(std::size_t first, std::size_t k) const
    {
        return {values + first * k, rows + first * k, found + first};
    }
};

// Marks in `found`.
inline constexpr std::uint32_t no_answer = 0xffffffff;       // the query needs another way of searching
inline constexpr std::uint32_t answer_pending = 0xfffffffe;  // set by the host: no kernel has written an answer yet

inline Answers take_answers(Carver& carver, std::size_t count, std::size_t k)
{
    return {carver.take<double>(count * k), carver.take<std::uint32_t>(count * k), carver.take<std::uint32_t>(count)};
}

}  // namespace pgwarp::cuda
