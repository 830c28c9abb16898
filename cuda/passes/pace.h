// The bound on canonical values under way ahead of the host. Small cards are slow in double precision: with all work of
// a batch in the stream at once, a healthy card could exceed the patience for one wait (device/wait.h). So the host
// waits in between. The waits also keep the stream's launch queue from filling up, which would block the host, and give
// cancelled searches a point to end.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "device/wait.h"

namespace pgwarp::cuda
{

// Elements of vector pairs under way at once: milliseconds of a large card, seconds of a small one.
inline constexpr double paced_elements = 1e10;
// The most pairs of one step. Only the steps of a scan may be larger: all rows for one query.
inline constexpr double most_step_pairs = double{1U << 25};

class Pace
{
public:
    explicit Pace(cudaStream_t stream) : stream_(stream) {}

    // Called before the stream gets work that values at most `elements` elements. Waits where the bound would be
    // exceeded; the first step never waits.
    void step(double elements)
    {
        const bool enough = steps_ == most_steps || ahead_ + elements > paced_elements;
        if (steps_ > 0 && enough) {
            wait_for(stream_, "waiting for values");
            steps_ = 0;
            ahead_ = 0;
        }
        ++steps_;
        ahead_ += elements;
    }

private:
    // Each step has some dozen launches, and a stream holds about a thousand.
    static constexpr int most_steps = 16;

    cudaStream_t stream_;
    int steps_ = 0;
    double ahead_ = 0;
};

// The most double-precision operations between two waits of a search of `queries` queries among `rows` rows.
inline double paced_operations(double queries, double rows, double dimensions)
{
    const double largest_step = std::max(rows, most_step_pairs) * dimensions;
    return canonical_operations * std::min(queries * rows * dimensions, std::max(paced_elements, largest_step));
}

}  // namespace pgwarp::cuda
