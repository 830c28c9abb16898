// The description of exact.
#include "methods/comparisons.h"
#include "methods/exact/estimate.h"

namespace pgwarp
{

namespace
{

constexpr const char* vectors_choices[] = {"full", "half", nullptr};
constexpr ValueDescription options[] = {
    {.name = "vectors",
     .help = "Precision in which candidates are found",
     .kind = ValueKind::choice,
     .choices = vectors_choices},
};

constexpr ArrayDescription arrays[] = {{array_vectors, ArrayRole::vectors, true}};

constexpr MethodForm forms[] = {{"half", "vectors = half"}};

// Bits have no inverted lists here. An index of pgvector's misses no row of theirs with as many probes as lists.
constexpr AliasService aliases[] = {{MethodAlias::ivfflat, {ElementType::bit}}};

ResultPromise promise_results(const ParameterList&, ElementType, Metric metric)
{
    return promise_of_vectors(metric == Metric::cosine);
}

double compare_all_rows(const SearchCostInput& input)
{
    return input.rows;
}

}  // namespace

constexpr MethodDescription exact_description = {
    .method = Method::exact,
    .name = "exact",
    .comment = "exact nearest neighbours over resident vectors",
    .options = options,
    .settings = {},
    .comparisons = dense_comparisons,
    .arrays = arrays,
    .forms = forms,
    .aliases = aliases,
    .check_options = check_form_of_bits,
    .result_promise = promise_results,
    .compared_rows = compare_all_rows,
    .estimate_build = estimate_exact_build,
    .complete = ElementSet::all(),
    .stores_rows = ElementSet::all(),
    .stores_halves = true,
};

}  // namespace pgwarp
