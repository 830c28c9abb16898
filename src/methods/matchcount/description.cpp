// The description of matchcount.
#include "methods/description.h"

#include <cstdio>

#include "methods/matchcount/estimate.h"
#include "methods/matchcount/hash_count.h"
#include "methods/matchcount/one_round.h"

namespace pgwarp
{

namespace
{

using matchcount::fewest_hashes;
using matchcount::most_hashes;

constexpr int usual_gram = 3;
constexpr int least_epsilon = 20000;  // millionths
constexpr int least_delta = 1000;
constexpr int fewest_buckets = 2;
constexpr double cost_of_signature = 0.5;  // of a vector's comparison
constexpr double cost_of_counters = 0.05;  // of a row's comparison
// Of a set's comparison. Sets for which signatures pay have thousands of elements.
constexpr double cost_of_set_signature = 0.02;

constexpr const char* lsh_choices[] = {"stable", "rbh", nullptr};
constexpr ValueDescription options[] = {
    {.name = "gram",
     .help = "Number of characters of the parts that texts are found by",
     .default_value = usual_gram,
     .minimum = 2,
     .maximum = 6},
    {.name = "hashes",
     .help = "Number of hash functions of vectors and minhash_ops, 0 = chosen by epsilon and delta",
     .maximum = static_cast<int>(most_hashes)},
    {.name = "epsilon",
     .help = "Error of the similarity that vectors and minhash_ops are found by, 0 = 0.06",
     .kind = ValueKind::millionths,
     .maximum = 100000},
    {.name = "delta",
     .help = "Probability of a larger error than epsilon, 0 = 0.06",
     .kind = ValueKind::millionths,
     .maximum = 200000},
    {.name = "buckets", .help = "Number of values of a hash function of vectors, 0 = 67", .maximum = 255},
    {.name = "lsh",
     .help = "Hash functions of vectors under the L1 distance",
     .kind = ValueKind::choice,
     .choices = lsh_choices},
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
     .ends_early = true,
     .elements = {ElementType::text}},
    {.value = {.name = "matchcount_candidates",
               .help = "Rows that a search by signatures in a matchcount index compares by their distances.",
               .maximum = static_cast<int>(max_k)},
     .parameter = "candidates",
     .detail = "0 means as many as pgwarp.recall needs.",
     .overrides_calibration = true,
     .is_effort = true,
     .elements = {ElementType::float32, ElementType::float16, ElementType::minhash_set}},
};

constexpr ElementSet exact_elements = {ElementType::text, ElementType::set, ElementType::attribute_set,
                                       ElementType::bag, ElementType::sparse};
constexpr Comparison comparisons[] = {
    {ElementType::text, Metric::edit},
    {ElementType::text, Metric::edit_transpositions},
    {ElementType::text, Metric::edit_substring},
    {ElementType::text, Metric::gram_jaccard},
    {ElementType::float32, Metric::l2},
    {ElementType::float32, Metric::cosine},
    {ElementType::float32, Metric::l1},
    {ElementType::float16, Metric::l2},
    {ElementType::float16, Metric::cosine},
    {ElementType::float16, Metric::l1},
    {ElementType::set, Metric::overlap},
    {ElementType::set, Metric::set_jaccard},
    {ElementType::attribute_set, Metric::overlap},
    {ElementType::bag, Metric::bm25},
    {ElementType::minhash_set, Metric::set_jaccard},
    {ElementType::sparse, Metric::l2},
    {ElementType::sparse, Metric::inner_product},
    {ElementType::sparse, Metric::cosine},
    {ElementType::sparse, Metric::l1},
};

constexpr AliasService aliases[] = {{MethodAlias::hnsw, {ElementType::sparse}}};

constexpr ArrayDescription arrays[] = {
    {array_list_offsets, ArrayRole::list_offsets}, {array_list_words, ArrayRole::list_words},
    {array_list_weights, ArrayRole::list_weights}, {"hashes", ArrayRole::hashes},
    {"signatures", ArrayRole::codes, true},        {array_vectors, ArrayRole::vectors, true},
};

OptionFault refuse(const char* message, const char* hint)
{
    OptionFault fault;
    std::snprintf(fault.message, sizeof(fault.message), "%s", message);
    fault.hint = hint;
    return fault;
}

// Checks the options of the number of functions against each other and their limits.
OptionFault check_hashes(const ParameterList& given)
{
    const std::int64_t hashes = given.get("hashes", 0);
    const std::int64_t epsilon = given.get("epsilon", 0);
    const std::int64_t delta = given.get("delta", 0);
    if (hashes != 0 && hashes < static_cast<std::int64_t>(fewest_hashes))
        return refuse("hashes must be 0 or at least 8", "The fewer functions, the less a match count tells.");
    if (hashes != 0 && (epsilon != 0 || delta != 0))
        return refuse("hashes leaves no choice to epsilon and delta", "Set hashes, or epsilon and delta.");
    constexpr const char* smaller = "Smaller ones ask for more hash functions than an index may have.";
    if (epsilon != 0 && epsilon < least_epsilon) return refuse("epsilon must be 0 or at least 0.02", smaller);
    if (delta != 0 && delta < least_delta) return refuse("delta must be 0 or at least 0.001", smaller);
    const std::int64_t buckets = given.get("buckets", 0);
    if (buckets != 0 && buckets < fewest_buckets)
        return refuse("buckets must be 0 or at least 2", "With one value all rows agree.");
    if (epsilon == 0 && delta == 0) return {};
    const double error = epsilon != 0 ? static_cast<double>(epsilon) * 1e-6 : matchcount::usual_epsilon;
    const double probability = delta != 0 ? static_cast<double>(delta) * 1e-6 : usual_delta;
    if (matchcount::hash_count(error, probability) <= most_hashes) return {};
    return refuse("epsilon and delta ask for more than 1024 hash functions", "Raise one of them.");
}

OptionFault check_options(const ParameterList& given, const IndexShape& column)
{
    const bool of_hashes = given.get("hashes", 0) != 0 || given.get("epsilon", 0) != 0 || given.get("delta", 0) != 0;
    const bool of_values = given.get("buckets", 0) != 0;
    const bool binning = given.get("lsh", 0) != 0;
    if (column.element == ElementType::text) {
        // The operator <%%> compares 3-grams.
        if (static_cast<Metric>(column.metric) == Metric::gram_jaccard && given.get("gram", usual_gram) != usual_gram)
            return refuse("gram = 3 is the only choice for text_gram_ops",
                          "Its distance is that of grams of 3 characters.");
        if (!of_hashes && !of_values && !binning) return {};
        return refuse("hashes, epsilon, delta, buckets and lsh are options of vectors", "Texts are found by gram.");
    }
    if (column.element == ElementType::minhash_set) {
        if (of_values || binning)
            return refuse("buckets and lsh are options of vectors", "Sets have hashes, epsilon and delta.");
        if (given.get("gram", usual_gram) != usual_gram)
            return refuse("gram is an option of texts", "Sets have hashes, epsilon and delta.");
        return check_hashes(given);
    }
    const auto metric = static_cast<Metric>(column.metric);
    if (column.element == ElementType::sparse) {
        if (!of_hashes && !of_values && !binning && given.get("gram", usual_gram) == usual_gram) return {};
        return refuse("an index of sparse vectors has no options", "Its searches are exact.");
    }
    if (is_of_parts(metric)) {
        if (!of_hashes && !of_values && !binning && given.get("gram", usual_gram) == usual_gram) return {};
        if (of_hashes && column.element == ElementType::set)
            return refuse(
                "an index of sets, attributes or documents has no options",
                "Its searches are exact. Those by an operator class such as int4_array_minhash_ops have options.");
        return refuse("an index of sets, attributes or documents has no options", "Its searches are exact.");
    }
    if (column.dimensions == 0) return check_hashes(given);
    if (given.get("gram", usual_gram) != usual_gram)
        return refuse("gram is an option of texts", "Vectors have no grams.");
    if (binning && metric != Metric::l1)
        return refuse("lsh = rbh is for the L1 distance", "Use the operator class vector_l1_ops or halfvec_l1_ops.");
    if (of_values && metric == Metric::cosine)
        return refuse("buckets are of no use for the cosine distance", "Its hash functions have two values.");
    return check_hashes(given);
}

ResultPromise promise_results(const ParameterList&, ElementType element, Metric metric)
{
    return is_list(element) ? ResultPromise{ResultKind::exact} : promise_of_vectors(metric == Metric::cosine);
}

// Most searches of texts compare the rows of some lengths only, each with a few instructions a character. Searches of
// sets and attributes read the counters of all rows, and the lists of some. Others read all signatures.
double compare_rows(const SearchCostInput& input)
{
    if (input.element == ElementType::text) return input.rows / 4;
    if (input.element == ElementType::minhash_set) return cost_of_set_signature * input.rows;
    return (is_list(input.element) ? cost_of_counters : cost_of_signature) * input.rows;
}

}  // namespace

constexpr MethodDescription matchcount_description = {
    .method = Method::matchcount,
    .name = "matchcount",
    .comment = "inverted index of parts: text by edit distance, sets by overlap, vectors by locality-sensitive hashes",
    .options = options,
    .settings = settings,
    .comparisons = comparisons,
    .arrays = arrays,
    .forms = {},
    .aliases = aliases,
    .check_options = check_options,
    .result_promise = promise_results,
    .compared_rows = compare_rows,
    .estimate_build = estimate_matchcount_build,
    .complete = exact_elements,
    .takes_bound = exact_elements,
    .stores_rows = exact_elements,
};

}  // namespace pgwarp
