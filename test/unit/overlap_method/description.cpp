#include "overlap_method/description.h"

namespace pgwarp::test
{

namespace
{

constexpr Comparison comparisons[] = {{ElementType::list, Metric{}}, {ElementType::weighted_list, Metric{}}};

constexpr ArrayDescription arrays[] = {{array_list_offsets, ArrayRole::list_offsets},
                                       {array_list_words, ArrayRole::list_words},
                                       {array_list_weights, ArrayRole::list_weights}};

OptionFault check_options(const ParameterList&, const IndexShape&)
{
    return {};
}

ResultPromise promise_results(const ParameterList&, ElementType, Metric)
{
    return {ResultKind::exact};
}

double compare_all_rows(const SearchCostInput& input)
{
    return input.rows;
}

constexpr MethodDescription describe(Method method, const char* name, ElementSet stores_rows)
{
    return {
        .method = method,
        .name = name,
        .comment = "nearest lists by the integers that they share",
        .options = {},
        .settings = {},
        .comparisons = comparisons,
        .arrays = arrays,
        .forms = {},
        .check_options = check_options,
        .result_promise = promise_results,
        .compared_rows = compare_all_rows,
        .complete = ElementSet::all(),
        .stores_rows = stores_rows,
    };
}

}  // namespace

const MethodDescription overlap_description = describe(overlap_method, "overlap", ElementSet::all());
const MethodDescription encoded_overlap_description = describe(encoded_overlap_method, "overlap_encoded", {});

}  // namespace pgwarp::test
