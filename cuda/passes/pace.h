// How far a search's work on canonical values runs ahead of the host. Small cards do little in double precision: were
// all of a batch's work in the stream at once, a healthy card could take longer for it than anybody has patience. So
// the host waits now and then, and one patience (device/wait.h) is enough for what lies between two waits. That leaves
// room among the launches that a stream holds, too, beyond which launching blocks; and a cancelled search ends in
// between.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "device/wait.h"

namespace pgwarp::cuda
{

// Elements of pairs of vectors whose values are under way at once: milliseconds of a large card, seconds of a small
// one.
inline constexpr double paced_elements = 1e10;
// Pairs of one step of any kind but a scan's, which has those of a query with all rows.
inline constexpr double most_step_pairs = double{1U << 25};

class Pace
{
public:
    explicit Pace(cudaStream_t stream) : stream_(stream) {}

    // Before work goes into the stream that values so many elements at most. Waits where more than enough is under way
    // with it; the first step never waits.
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
    static constexpr int most_steps = 16;  // of some dozen launches each: a stream holds about a thousand

    cudaStream_t stream_;
    int steps_ = 0;
    double ahead_ = 0;
};

// Operations in double precision between two waits, at most, of a search of so many queries among so many rows.
inline double paced_operations(double queries, double rows, double dimensions)
{
    const double largest_step = std::max(rows, most_step_pairs) * dimensions;
    return canonical_operations * std::min(queries * rows * dimensions, std::max(paced_elements, largest_step));
}

}  // namespace pgwarp::cuda
