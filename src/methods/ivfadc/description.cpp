// The description of ivfadc.
#include "methods/ivfadc/description.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "methods/comparisons.h"
#include "methods/ivfadc/estimate.h"

namespace pgwarp
{

namespace
{

constexpr const char* codes_choices[] = {"pq", "half", "int8", nullptr};
constexpr const char* refine_choices[] = {"none", "half", "full", nullptr};
constexpr ValueDescription options[] = {
    {.name = "lists", .help = "Number of inverted lists, 0 = chosen from the number of rows", .maximum = 65536},
    {.name = "codes", .help = "What the lists hold", .kind = ValueKind::choice, .choices = codes_choices},
    {.name = "subquantizers",
     .help = "Bytes of a product quantizer code, 0 = chosen from the dimensions",
     .maximum = max_dimensions},
    {.name = "opq", .help = "Rotate vectors so that the product quantizer loses less", .kind = ValueKind::boolean},
    {.name = "refine",
     .help = "Vectors kept to re-rank the best candidates",
     .kind = ValueKind::choice,
     .default_value = static_cast<int>(IvfRefine::half),
     .choices = refine_choices},
};

constexpr SettingDescription settings[] = {
    {.value = {.name = "ivfadc_probes", .help = "Lists that a search of an ivfadc index visits.", .maximum = 65536},
     .parameter = "probes",
     .detail = "0 means as many as pgwarp.recall needs.",
     .overrides_calibration = true,
     .is_effort = true},
    {.value = {.name = "refine_factor",
               .help = "Candidates per wanted row that are ranked again by better vectors.",
               .maximum = 10000},
     .parameter = "refine_factor",
     .detail = "0 means as many as pgwarp.recall needs.",
     .overrides_calibration = true},
};

constexpr ArrayDescription arrays[] = {
    {array_centroids, ArrayRole::centroids},
    {array_rotation, ArrayRole::quantizer},
    {array_rotation_signs, ArrayRole::quantizer},
    {array_codebooks, ArrayRole::codebooks},
    {array_half_mean, ArrayRole::half_mean},
    {array_half_scale, ArrayRole::half_scale},
    {array_list_of_row, ArrayRole::list_of_row, true},
    {array_code_scale, ArrayRole::code_scales, true},
    {array_codes, ArrayRole::codes, true},
    {array_half, ArrayRole::half_vectors, true},
    {array_vectors, ArrayRole::vectors, true},
};

constexpr MethodForm forms[] = {{"half", "codes = half"}, {"int8", "codes = int8"}};

// The plain inverted file: with as many probes as lists it misses no row.
void map_ivfflat_options(const ParameterList& given, ParameterList* own)
{
    own->set("lists", given.get("lists", 0));
    own->set("codes", static_cast<int>(IvfCodes::half));
    own->set("refine", static_cast<int>(IvfRefine::none));
}

constexpr AliasService aliases[] = {
    {MethodAlias::ivfflat, {ElementType::float32, ElementType::float16}, map_ivfflat_options, "probes"},
};

OptionFault check_options(const ParameterList& given, const IndexShape& column)
{
    OptionFault fault;
    const std::int64_t subquantizers = given.get("subquantizers", 0);
    if (column.dimensions != 0 && subquantizers > static_cast<std::int64_t>(column.dimensions)) {
        std::snprintf(fault.message, sizeof(fault.message),
                      "subquantizers (%lld) must not exceed the number of dimensions (%u)",
                      static_cast<long long>(subquantizers), column.dimensions);
        fault.hint = "A subquantizer has one dimension or more.";
    }
    return fault;
}

ResultPromise promise_results(const ParameterList& given, ElementType, Metric metric)
{
    const auto refine = static_cast<IvfRefine>(given.get("refine", static_cast<int>(IvfRefine::half)));
    if (refine == IvfRefine::full) return promise_of_vectors(metric == Metric::cosine);
    const bool keeps_halves =
        refine == IvfRefine::half || static_cast<IvfCodes>(given.get("codes", 0)) == IvfCodes::half;
    return {keeps_halves ? ResultKind::lower_bound : ResultKind::approximate};
}

// A code is compared in about half of the time that a row of floats takes.
double compare_lists_and_codes(const SearchCostInput& input)
{
    auto lists = static_cast<double>(input.options.get("lists", 0));
    if (lists <= 0) lists = std::floor(2.0 * std::sqrt(input.rows));
    lists = std::max(1.0, std::min(lists, input.rows));
    auto probes = static_cast<double>(input.settings.get("probes", 0));
    if (probes <= 0) probes = std::max(1.0, lists * 0.05);
    return lists + 0.5 * input.rows * std::min(1.0, probes / lists);
}

}  // namespace

constexpr MethodDescription ivfadc_description = {
    .method = Method::ivfadc,
    .name = "ivfadc",
    .comment = "inverted file with product quantizer codes and exact re-rank",
    .options = options,
    .settings = settings,
    .comparisons = product_comparisons,
    .arrays = arrays,
    .forms = forms,
    .aliases = aliases,
    .check_options = check_options,
    .result_promise = promise_results,
    .compared_rows = compare_lists_and_codes,
    .estimate_build = estimate_ivfadc_build,
    .spread_option = "lists",
};

}  // namespace pgwarp
