// Options of graph, and the numbers that follow from the number of rows.
#include <algorithm>
#include <cmath>

#include "methods/graph/graph.h"
#include "methods/options.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_edges = 256;

// Returns a number of bits with which few more candidates than asked for include the neighbours.
std::size_t choose_bits(std::size_t dimensions)
{
    return std::clamp<std::size_t>((dimensions + 3) / 4 * 32, 128, 512);
}

}  // namespace

GraphOptions GraphOptions::resolve(const ParameterList& options, std::size_t dimensions)
{
    IndexShape column{};
    column.dimensions = static_cast<std::uint32_t>(dimensions);
    require_options(graph_description, options, column);
    GraphOptions resolved;
    const std::int64_t degree = options.get("degree", 0);
    const std::int64_t build_degree = options.get("build_degree", 0);
    const std::int64_t bits = options.get("bits", 0);
    if (degree != 0) resolved.degree = static_cast<std::size_t>(degree);
    // At least as many rows are candidates as are kept.
    resolved.build_degree = build_degree != 0 ? static_cast<std::size_t>(build_degree) : resolved.degree * 3 / 2;
    resolved.build_degree = std::clamp<std::size_t>(resolved.build_degree, resolved.degree, most_edges);
    resolved.vectors = static_cast<GraphVectors>(options.get("vectors", 0));
    if (resolved.vectors == GraphVectors::bits)
        resolved.bits = bits != 0 ? static_cast<std::size_t>(bits) : choose_bits(dimensions);
    return resolved;
}

ParameterList GraphOptions::as_parameters() const
{
    ParameterList list;
    list.set("degree", static_cast<std::int64_t>(degree));
    list.set("build_degree", static_cast<std::int64_t>(build_degree));
    list.set("vectors", static_cast<std::int64_t>(vectors));
    list.set("bits", static_cast<std::int64_t>(bits));
    return list;
}

std::size_t seed_count(std::size_t rows)
{
    const auto wanted = static_cast<std::size_t>(2.5 * std::sqrt(static_cast<double>(rows)));
    return std::clamp<std::size_t>(wanted, std::min<std::size_t>(rows, 32), 16384);
}

std::size_t most_seeds(std::size_t rows)
{
    return std::max(seed_count(rows), std::min<std::size_t>(rows / 16, 65536));
}

RecallRules graph_recall_rules(std::size_t rows)
{
    const auto most = static_cast<std::int64_t>(std::clamp<std::size_t>(rows, 1, 8192));
    RecallRules rules{.efforts = {}, .steps_of_k = 4, .effort_is_width = true};
    for (double ef = 8; ef < static_cast<double>(most) && rules.efforts.size() + 1 < Calibration::capacity;) {
        rules.efforts.push_back(static_cast<std::int64_t>(ef));
        ef = std::floor(ef * (ef < 256 ? 1.25 : 1.4));
    }
    rules.efforts.push_back(most);
    return rules;
}

}  // namespace pgwarp
