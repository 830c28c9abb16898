#include "graph/filtered_queue.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/launch_config.h"

namespace pgwarp::cuda::graph
{

FilteredQueue filtered_queue(std::size_t ef, std::size_t k, double pass_rate)
{
    if (pass_rate >= 1) return {ef, ef};
    // With so many rows, k of them pass, nearly always.
    constexpr double deviations = 3;
    const auto wanted = static_cast<double>(k);
    const double kept = (wanted + deviations * std::sqrt(wanted) + deviations) / std::max(pass_rate, 1e-9);
    if (kept > most_ef) return {};
    const std::size_t length = std::bit_ceil(static_cast<std::size_t>(std::ceil(kept)));
    // The k-th of the rows that pass has about k / pass_rate rows before it. Rounded up, so that the numbers are few.
    const std::size_t step = std::max<std::size_t>(length / 8, 1);
    const auto steps = static_cast<std::size_t>(std::ceil(wanted / pass_rate / static_cast<double>(step)));
    const std::size_t before = std::max({k, length / 2, steps * step});
    // The rows that pass lie less evenly around a query than all do, so more of those beyond the k-th are expanded.
    const std::size_t beyond = ef - std::min(ef, k);
    const std::size_t expanded = std::min<std::size_t>(beyond + beyond / 2 + before, most_ef);
    return {expanded, std::max(length, expanded)};
}

}  // namespace pgwarp::cuda::graph
