// The description of matchcount.
#include "methods/description.h"
#include "methods/matchcount/one_round.h"

#include <cstdio>

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

constexpr SettingDescription settings[] = {
    {.value = {.name = "matchcount_certify",
               .help = "Compare texts until the answer is proved.",
               .kind = ValueKind::boolean,
               .default_value = 1},
     .parameter = matchcount_one_round,
     .detail =
         "off answers after one round: the texts that share most grams with the query, ranked by their distances.",
     .overrides_calibration = true,
     .ends_early = true},
};

constexpr Comparison comparisons[] = {{ElementType::text, Metric::edit},
                                      {ElementType::text, Metric::edit_transpositions},
                                      {ElementType::text, Metric::edit_substring},
                                      {ElementType::text, Metric::gram_jaccard}};

constexpr ArrayDescription arrays[] = {{array_list_offsets, ArrayRole::list_offsets},
                                       {array_list_words, ArrayRole::list_words}};

// The operator <%%> compares 3-grams.
OptionFault check_options(const ParameterList& options, const IndexShape& column)
{
    OptionFault fault;
    if (static_cast<Metric>(column.metric) == Metric::gram_jaccard && options.get("gram", 3) != 3)
        std::snprintf(fault.message, sizeof(fault.message), "gram = 3 is the only choice for text_gram_ops");
    return fault;
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
    .settings = settings,
    .comparisons = comparisons,
    .arrays = arrays,
    .forms = {},
    .check_options = check_options,
    .result_promise = promise_results,
    .compared_rows = compare_rows_of_like_length,
    .complete = true,
    .takes_bound = true,
    .stores_rows = true,
};

}  // namespace pgwarp
