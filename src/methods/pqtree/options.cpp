// Options of pqtree, and the numbers that follow from rows, dimensions and effort.
#include <algorithm>
#include <cmath>

#include "methods/options.h"
#include "methods/pqtree/defaults.h"
#include "methods/pqtree/pqtree.h"

namespace pgwarp
{

using pqtree::choose_level1;
using pqtree::choose_level2;
using pqtree::choose_line_parts;
using pqtree::leaves_for;
using pqtree::usual_parts;

namespace
{

// The leaves of more centroids cost time, and those of fewer miss bins: more than a hundredth of the recall at these
// shares of the rows (SIFT, 100,000 and 1,000,000 rows).
std::size_t choose_width(std::size_t k1, std::size_t candidates, std::size_t rows)
{
    const auto within = [&](std::size_t share) { return candidates * share <= rows; };
    const std::size_t quarters = within(256) ? 1 : within(20) ? 2 : within(8) ? 3 : 4;
    return (quarters * k1 + 3) / 4;
}

}  // namespace

TreeOptions TreeOptions::resolve(const ParameterList& options, std::size_t rows, std::size_t dimensions)
{
    IndexShape column{};
    column.dimensions = static_cast<std::uint32_t>(dimensions);
    require_options(pqtree_description, options, column);
    const auto given = [&](const char* name) { return static_cast<std::size_t>(options.get(name, 0)); };
    TreeOptions resolved;
    resolved.line_parts = given("line_parts");
    resolved.parts = given("parts");
    // Without a number of parts, one that the line parts are a multiple of.
    if (resolved.parts == 0) resolved.parts = resolved.line_parts % 2 == 0 ? std::min(usual_parts, dimensions) : 1;
    // Lines need centroids also where rows are few.
    resolved.k1 = given("k1") != 0 ? given("k1") : choose_level1(leaves_for(1, rows, resolved.parts));
    resolved.k2 = given("k2") != 0 ? given("k2") : choose_level2(rows, resolved.parts, resolved.k1);
    if (resolved.k1 * resolved.k2 > most_leaves) resolved.k1 = std::max<std::size_t>(2, most_leaves / resolved.k2);
    if (resolved.line_parts == 0) resolved.line_parts = choose_line_parts(dimensions, resolved.parts);
    if (resolved.line_parts > dimensions / resolved.parts * resolved.parts)
        throw BadRequest("line_parts leave a part without dimensions");
    resolved.refine = static_cast<TreeRefine>(options.get("refine", static_cast<int>(TreeRefine::half)));
    resolved.ranked_share = std::max<std::int64_t>(1, options.get(option_ranked_share, usual_ranked_share));
    return resolved;
}

void TreeOptions::bound_leaves(std::size_t rows)
{
    k1 = std::min(k1, std::max<std::size_t>(2, rows));
    k2 = std::min(k2, std::max<std::size_t>(1, rows / k1));
}

ParameterList TreeOptions::as_parameters() const
{
    ParameterList list;
    list.set("parts", static_cast<std::int64_t>(parts));
    list.set("k1", static_cast<std::int64_t>(k1));
    list.set("k2", static_cast<std::int64_t>(k2));
    list.set("line_parts", static_cast<std::int64_t>(line_parts));
    list.set("refine", static_cast<std::int64_t>(refine));
    if (ranked_share != usual_ranked_share) list.set(option_ranked_share, static_cast<std::int64_t>(ranked_share));
    return list;
}

Metric tree_metric(Metric metric)
{
    return metric == Metric::inner_product ? Metric::inner_product : Metric::l2;
}

std::vector<std::int64_t> candidate_schedule(std::size_t rows)
{
    constexpr double first = 128;
    constexpr double steps = 17;
    std::vector<std::int64_t> schedule;
    // More than a quarter of the rows are seldom worth it, and measuring them costs more than all others together.
    const double last = static_cast<double>(rows) / 4;
    const double factor = std::max(1.3, std::pow(last / first, 1 / steps));
    for (double candidates = first; candidates < last * 1.01; candidates *= factor)
        schedule.push_back(std::llround(candidates));
    schedule.push_back(static_cast<std::int64_t>(std::max<std::size_t>(rows, 1)));
    return schedule;
}

SearchPlan search_plan(const TreeOptions& options, std::size_t rows, const SearchBatch& batch)
{
    SearchPlan plan;
    std::int64_t candidates = batch.settings.get("candidates", 0);
    if (candidates <= 0) candidates = batch.effort;
    // An index too small to be calibrated is searched whole.
    plan.candidates = candidates > 0 ? std::min(static_cast<std::size_t>(candidates), rows) : rows;
    plan.complete = plan.candidates == rows;
    const std::int64_t width = batch.settings.get("width", 0);
    plan.width = width > 0 ? std::min(static_cast<std::size_t>(width), options.k1)
                           : choose_width(options.k1, plan.candidates, rows);
    const std::size_t k = std::min<std::size_t>(batch.k, rows);
    plan.ranked = std::max({fewest_ranked, std::min(4 * k, k + 1500), k + k / 8, plan.candidates / usual_ranked_share,
                            std::min(plan.candidates / options.ranked_share, most_ranked)});
    plan.ranked = std::min(plan.ranked, rows);
    plan.candidates = std::max(plan.candidates, plan.ranked);
    return plan;
}

}  // namespace pgwarp
