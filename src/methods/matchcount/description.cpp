// The description of matchcount.
#include "methods/description.h"

namespace pgwarp
{

namespace
{

constexpr ValueDescription options[] = {
    {.name = "gram",
     .help = "Number of characters of the parts that texts are found by",
     .default_value = 3,
     .minimum = 2,
     .maximum = 6},
};

constexpr Comparison comparisons[] = {{ElementType::text, Metric::edit}};

constexpr ArrayDescription arrays[] = {{array_list_offsets, ArrayRole::list_offsets},
                                       {array_list_words, ArrayRole::list_words}};

OptionFault accept_options(const ParameterList&, const IndexShape&)
{
    return {};
}

ResultPromise promise_results(const ParameterList&, Metric)
{
    return {ResultKind::exact};
}

// Most searches compare the rows of some lengths only, each with a few instructions a character.
double compare_rows_of_like_length(const SearchCostInput& input)
{
    return input.rows / 4;
}

}  // namespace

constexpr MethodDescription matchcount_description = {
    .method = Method::matchcount,
    .name = "matchcount",
    .comment = "text by edit distance, over an inverted index of its parts",
    .options = options,
    .settings = {},
    .comparisons = comparisons,
    .arrays = arrays,
    .forms = {},
    .check_options = accept_options,
    .result_promise = promise_results,
    .compared_rows = compare_rows_of_like_length,
    .complete = true,
    .takes_bound = true,
    .stores_rows = true,
};

}  // namespace pgwarp
