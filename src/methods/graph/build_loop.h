// Parallel loops of a build over rows, with cancellation. Progress is reported from the caller's thread alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

#include "methods/method.h"

namespace pgwarp
{

// Runs body(begin, end) over [0, count) in pieces of `grain`. Progress is reported every `step` rows, which should take
// less than 100 ms.
inline void for_rows(std::size_t count, std::size_t step, std::size_t grain, const char* phase,
                     const BuildProgress& progress, ThreadPool& pool,
                     const std::function<void(std::size_t, std::size_t)>& body)
{
    for (std::size_t first = 0; first < count; first += step) {
        progress.advance(phase, first, count);
        pool.parallel_for(std::min(step, count - first), grain, [&](std::size_t begin, std::size_t end) {
            progress.check_cancel();
            body(first + begin, first + end);
        });
    }
}

}  // namespace pgwarp
