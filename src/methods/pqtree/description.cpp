// The description of pqtree.
#include "methods/comparisons.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "methods/pqtree/description.h"
#include "methods/pqtree/estimate.h"

namespace pgwarp
{

namespace
{

constexpr const char* refine_choices[] = {"none", "half", "full", nullptr};
constexpr ValueDescription options[] = {
    {.name = "parts",
     .help = "Parts of a vector, with a tree each, 0 = chosen from the dimensions",
     .maximum = most_tree_parts},
    {.name = "k1",
     .help = "Centroids of a part in the first level, 0 = chosen from the number of rows",
     .maximum = most_level1},
    {.name = "k2",
     .help = "Leaves of each of these centroids, 0 = chosen from the number of rows",
     .maximum = most_level2},
    {.name = "line_parts",
     .help = "Parts that line codes have two bytes for, 0 = chosen from the dimensions",
     .maximum = most_line_parts},
    {.name = "refine",
     .help = "Vectors kept to re-rank the best candidates",
     .kind = ValueKind::choice,
     .default_value = static_cast<int>(TreeRefine::half),
     .choices = refine_choices},
};

constexpr SettingDescription settings[] = {
    {.value = {.name = "pqtree_width",
               .help = "Centroids of each part whose leaves a search of a pqtree index compares.",
               .maximum = most_level1},
     .parameter = "width",
     .detail = "0 means as many as the number of candidates needs.",
     .overrides_calibration = true},
    {.value = {.name = "pqtree_candidates",
               .help = "Rows that a search of a pqtree index compares by line codes.",
               .maximum = 1000000000},
     .parameter = "candidates",
     .detail = "0 means as many as pgwarp.recall needs.",
     .overrides_calibration = true,
     .is_effort = true},
};

constexpr ArrayDescription arrays[] = {
    {array_level1, ArrayRole::quantizer},       {array_level2, ArrayRole::quantizer},
    {array_line_ends, ArrayRole::quantizer},    {array_line_places, ArrayRole::quantizer},
    {array_half_mean, ArrayRole::half_mean},    {array_half_scale, ArrayRole::half_scale},
    {array_tree_codes, ArrayRole::codes, true}, {array_half, ArrayRole::half_vectors, true},
    {array_vectors, ArrayRole::vectors, true},
};

OptionFault check_options(const ParameterList& given, const IndexShape& column)
{
    OptionFault fault;
    const std::int64_t parts = given.get("parts", 0);
    const std::int64_t line_parts = given.get("line_parts", 0);
    const std::int64_t leaves = given.get("k1", 0) * given.get("k2", 0);
    const auto dimensions = static_cast<std::int64_t>(column.dimensions);
    if (dimensions != 0 && std::max(parts, line_parts) > dimensions) {
        std::snprintf(fault.message, sizeof(fault.message), "%s (%lld) must not exceed the number of dimensions (%lld)",
                      parts > dimensions ? "parts" : "line_parts", static_cast<long long>(std::max(parts, line_parts)),
                      static_cast<long long>(dimensions));
        fault.hint = "A part has one dimension or more.";
    } else if (parts != 0 && line_parts % parts != 0) {
        std::snprintf(fault.message, sizeof(fault.message), "line_parts (%lld) must be a multiple of parts (%lld)",
                      static_cast<long long>(line_parts), static_cast<long long>(parts));
        fault.hint = "All parts of a vector have the same number of line parts.";
    } else if (given.get("k1", 0) == 1) {
        std::snprintf(fault.message, sizeof(fault.message), "k1 must be 0 or at least 2");
        fault.hint = "Line codes need two centroids in each part.";
    } else if (leaves > static_cast<std::int64_t>(most_leaves)) {
        std::snprintf(fault.message, sizeof(fault.message), "k1 * k2 (%lld) must not exceed %zu",
                      static_cast<long long>(leaves), most_leaves);
        fault.hint = "It is the number of leaves of a part.";
    }
    return fault;
}

ResultPromise promise_results(const ParameterList& given, ElementType, Metric metric)
{
    const auto refine = static_cast<TreeRefine>(given.get("refine", static_cast<int>(TreeRefine::half)));
    if (refine == TreeRefine::full) return promise_of_vectors(metric == Metric::cosine);
    return {refine == TreeRefine::half ? ResultKind::lower_bound : ResultKind::approximate};
}

// The planner compares this with the count of an inverted file, 2 sqrt(rows) and a fortieth of the rows, although
// searches of both compare fewer. At equal recall they take about 1.7 times as long here (SIFT, 100,000 rows, .95: 70
// us and 43 us). Of it the descent and the terms of all lines take as much as 800 candidates.
double compare_leaves_and_codes(const SearchCostInput& input)
{
    constexpr double fixed = 800;
    const double usual = std::min(8 * std::sqrt(input.rows), input.rows);
    const auto asked = static_cast<double>(input.settings.get("candidates", 0));
    const double candidates = asked > 0 ? std::min(asked, input.rows) : usual;
    const double of_usual = 1.7 * (2 * std::sqrt(input.rows) + input.rows / 40);
    return of_usual * (fixed + candidates) / (fixed + usual);
}

}  // namespace

constexpr MethodDescription pqtree_description = {
    .method = Method::pqtree,
    .name = "pqtree",
    .comment = "product quantization tree with line codes and exact re-rank",
    .options = options,
    .settings = settings,
    .comparisons = product_comparisons,
    .arrays = arrays,
    .forms = {},
    .check_options = check_options,
    .result_promise = promise_results,
    .compared_rows = compare_leaves_and_codes,
    .estimate_build = estimate_pqtree_build,
};

}  // namespace pgwarp
