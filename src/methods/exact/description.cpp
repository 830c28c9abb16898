// The description of exact.
#include <cstdio>

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

constexpr auto comparisons = join_comparisons(dense_comparisons, sparse_comparisons);

constexpr ArrayDescription arrays[] = {{array_vectors, ArrayRole::vectors, true},
                                       {array_list_offsets, ArrayRole::list_offsets},
                                       {array_list_words, ArrayRole::list_words},
                                       {array_list_weights, ArrayRole::list_weights}};

constexpr MethodForm forms[] = {{"half", "vectors = half"}};

// Bits have no inverted lists here. An index of pgvector's misses no row of theirs with as many probes as lists.
constexpr AliasService aliases[] = {{MethodAlias::ivfflat, {ElementType::bit}}};

OptionFault check_options(const ParameterList& options, const IndexShape& column)
{
    if (column.element != ElementType::sparse || options.get("vectors", 0) == 0)
        return check_form_of_bits(options, column);
    OptionFault fault;
    std::snprintf(fault.message, sizeof(fault.message), "vectors = full is the only choice for sparse vectors");
    fault.hint = "Their elements are kept as they are.";
    return fault;
}

// Cosine distances of sparse vectors are computed from the rows as they came.
ResultPromise promise_results(const ParameterList&, ElementType element, Metric metric)
{
    return promise_of_vectors(metric == Metric::cosine && !is_list(element));
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
    .comparisons = comparisons,
    .arrays = arrays,
    .forms = forms,
    .aliases = aliases,
    .check_options = check_options,
    .result_promise = promise_results,
    .compared_rows = compare_all_rows,
    .estimate_build = estimate_exact_build,
    .complete = ElementSet::all(),
    .stores_rows = ElementSet::all(),
    .stores_halves = true,
};

}  // namespace pgwarp
