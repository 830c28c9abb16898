// How far a search goes whose rows must pass a predicate, by the share of the rows that pass. Free of CUDA, so that
// tests on the CPU cover it.
#pragma once

#include <compare>
#include <cstddef>

namespace pgwarp::cuda::graph
{

struct FilteredQueue {
    std::size_t ef = 0;      // rows that are expanded
    std::size_t length = 0;  // rows that are kept, of which those that pass are found; 0: too few would pass

    auto operator<=>(const FilteredQueue&) const = default;
};

// ef: of a search for k rows without a predicate. pass_rate: of rows that pass and live. The lengths are few, as each
// is a search of its own.
FilteredQueue filtered_queue(std::size_t ef, std::size_t k, double pass_rate);

}  // namespace pgwarp::cuda::graph
